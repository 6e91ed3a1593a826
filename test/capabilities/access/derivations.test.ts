import assert from 'node:assert/strict';
import { scryptSync } from 'node:crypto';
import { test } from 'node:test';
import { DerivationQueue, SECRET_COST, secretDerivation } from '../../../src/capabilities/access/derivations.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { QuotaHolder } from '../../../src/foundation/quota.ts';
import { cheapDerivation } from '../../support/cheap-scrypt.ts';

const SALT = new Uint8Array(16).fill(1);

/** A stranger, or a trusted caller. */
function holder(source: string, named = false, caller = source): QuotaHolder {
  return { key: caller, node: caller, source, named };
}

/** A derivation that the test completes. */
function gate() {
  const running: (() => void)[] = [];
  const derive = (secret: string) =>
    new Promise<Uint8Array>((resolve) => running.push(() => resolve(new TextEncoder().encode(secret))));
  /** Completes derivation number `n` after it started. */
  const finish = async (n: number) => {
    while (running[n] === undefined) await new Promise((resolve) => setImmediate(resolve));
    running[n]();
  };
  return { running, finish, queue: new DerivationQueue(derive) };
}

const isBusy = (error: unknown) =>
  error instanceof SvcError && error.code === 'rate_limited' && error.details?.['retry_after_s'] === 1;

test('a secret hashes to the same 32 bytes only with the same salt, in every Unicode form', async () => {
  const hash = await cheapDerivation('caf\u00e9', SALT);
  assert.equal(hash.length, 32);
  assert.deepEqual(await cheapDerivation('cafe\u0301', SALT), hash);
  assert.notDeepEqual(await cheapDerivation('caf\u00e9', new Uint8Array(16)), hash);
});

test('stored hashes are scrypt with N = 2^15, r = 8, p = 1 in every version', async () => {
  const hash = await secretDerivation(SECRET_COST)('caf\u00e9', SALT);
  assert.deepEqual(Buffer.from(hash), scryptSync('caf\u00e9', SALT, 32, { N: 32_768, r: 8, p: 1, maxmem: 2 ** 26 }));
});

test('derivations run one at a time, in order', async () => {
  const { queue, running, finish } = gate();
  const results = ['a', 'b'].map((secret) => queue.run(holder('192.0.2.1'), secret, SALT));
  await finish(0);
  assert.equal(running.length, 1);
  assert.deepEqual(await results[0], new TextEncoder().encode('a'));
  await finish(1);
  assert.deepEqual(await results[1], new TextEncoder().encode('b'));
});

test('a source has four places, the queue has 32 with eight reserved for trusted callers, and all are released', async () => {
  const { queue, finish } = gate();
  const waiting: Promise<unknown>[] = [];
  for (let source = 0; source < 6; source++)
    for (let i = 0; i < 4; i++) waiting.push(queue.run(holder(`10.0.${source}.1`, false, `${source} ${i}`), 'x', SALT));
  assert.throws(() => queue.run(holder('10.0.0.1', false, 'another'), 'x', SALT), isBusy);
  for (let caller = 0; caller < 8; caller++) waiting.push(queue.run(holder('10.0.0.1', true, `t${caller}`), 'x', SALT));
  assert.throws(() => queue.run(holder('10.0.0.1', false, 'another'), 'x', SALT), isBusy);
  for (const [i, turn] of waiting.entries()) {
    await finish(i);
    await turn;
  }
  const again = queue.run(holder('10.0.0.1'), 'x', SALT);
  await finish(32);
  await again;
});

test('a full queue evicts a guess for a source with fewer places, and for trusted callers', async () => {
  const { queue, running, finish } = gate();
  const ended: string[] = [];
  const guess = (source: string, named = false, caller = source) =>
    queue.run(holder(source, named, caller), caller, SALT).then(
      () => ended.push(`${caller} done`),
      (error: unknown) => ended.push(`${caller} ${isBusy(error) ? 'busy' : 'failed'}`),
    );
  const crowd = [0, 1].flatMap((network) =>
    Array.from({ length: 12 }, (_, n) => guess(`10.0.${network}.${n % 3}`, false, `${network}-${n}`)),
  );
  const quiet = guess('198.51.100.1', false, 'quiet');
  const trusted = Array.from({ length: 9 }, (_, n) => guess('10.0.0.1', true, `trusted-${n}`));
  await Promise.resolve();
  let turns = 0;
  const all = Promise.all([...crowd, quiet, ...trusted]).then(() => {
    turns = -1;
  });
  while (turns >= 0) {
    await new Promise((resolve) => setImmediate(resolve));
    if (running[turns] !== undefined) await finish(turns++);
  }
  await all;
  assert.equal(ended.filter((one) => one.endsWith('busy')).length, 2);
  assert.ok(ended.includes('quiet done'));
  for (let n = 0; n < 9; n++) assert.ok(ended.includes(`trusted-${n} done`));
});

test('a failed derivation does not stop the next', async () => {
  let calls = 0;
  const queue = new DerivationQueue(() =>
    calls++ === 0 ? Promise.reject(new Error('no memory')) : Promise.resolve(SALT),
  );
  await assert.rejects(queue.run(holder('192.0.2.1'), 'x', SALT), /no memory/);
  assert.equal(await queue.run(holder('192.0.2.1'), 'x', SALT), SALT);
});

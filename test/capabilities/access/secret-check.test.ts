import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SecretCheck } from '../../../src/capabilities/access/secret-check.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { TestClock } from '../../support/test-clock.ts';

const SALT = new Uint8Array(16);

test('addresses of one IPv6 network share places in the derivation queue', async () => {
  const ends: (() => void)[] = [];
  const derive = (): Promise<Uint8Array> => new Promise((resolve) => ends.push(() => resolve(new Uint8Array(32))));
  const check = new SecretCheck(new TestClock(), derive);
  let refused = 0;
  const guess = async (n: number, source: string): Promise<void> => {
    const guesser = { caller: `caller ${n}`, node: `node ${n}`, source };
    try {
      await check.check('subject', SALT, `guess ${n}`, guesser, () => false);
    } catch (error) {
      assert.ok(error instanceof SvcError && error.code === 'rate_limited');
      refused++;
    }
  };
  const guesses = [1, 2, 3, 4, 5, 6].map((n) => guess(n, `2001:db8:1:2::${n}`));
  guesses.push(guess(7, '2001:db8:2:2::7'));
  // In sequence: five derivations for seven guessers.
  while (ends.length < 5) {
    ends.at(-1)?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  ends.at(-1)?.();
  await Promise.all(guesses);
  assert.equal(refused, 2);
});

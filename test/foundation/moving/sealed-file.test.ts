import assert from 'node:assert/strict';
import { createDecipheriv, scryptSync } from 'node:crypto';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { PASSPHRASE_COST } from '../../../src/foundation/keys/passphrase.ts';
import type { ByteSource } from '../../../src/foundation/moving/byte-reader.ts';
import { SEALED_PREFIX, seal, unseal } from '../../../src/foundation/moving/sealed-file.ts';
import { cheapPassphrase } from '../../support/cheap-scrypt.ts';

const CHUNK = 64 * 1024;
const TAG = 16;
const TEXT = 'correct horse';
const PASSWORD = cheapPassphrase(TEXT);

async function collect(source: ByteSource): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of source) pieces.push(piece);
  return Buffer.concat(pieces);
}

function failsWith(code: string): (error: unknown) => boolean {
  return (error) => error instanceof SvcError && error.code === code;
}

test('decrypts data of any length in any chunks', async () => {
  for (const length of [0, CHUNK, CHUNK + 1, 3 * CHUNK + 5]) {
    const plain = Buffer.alloc(length, length % 251);
    const sealed = await collect(seal('agent', PASSWORD, [plain.subarray(0, 7), plain.subarray(7)]));
    const crumbs = Array.from({ length: Math.ceil(sealed.length / 1000) }, (_, i) =>
      sealed.subarray(i * 1000, (i + 1) * 1000),
    );
    assert.ok((await collect(unseal('agent', PASSWORD, crumbs))).equals(plain), `${length}`);
  }
});

test('the format is the documented one: a program of a few lines opens it', async () => {
  const plain = Buffer.from('the content');
  const sealed = await collect(seal('node', { text: TEXT, cost: PASSPHRASE_COST }, [plain]));
  const end = sealed.indexOf('\n') + 1;
  const line = sealed.subarray(0, end);
  assert.ok(line.toString().startsWith(SEALED_PREFIX));
  const header = JSON.parse(line.toString()) as Record<string, string | number>;
  const { n: N, r, p } = header;
  assert.deepEqual([N, r, p], [131_072, 8, 1]);
  const salt = Buffer.from(String(header['salt']), 'hex');
  const key = scryptSync(TEXT, salt, 32, { N: Number(N), r: Number(r), p: Number(p), maxmem: 512 * 1024 * 1024 });
  const nonce = Buffer.from('000000000000000000000001', 'hex');
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG }).setAAD(line);
  decipher.setAuthTag(sealed.subarray(-TAG));
  assert.equal(
    Buffer.concat([decipher.update(sealed.subarray(end, -TAG)), decipher.final()]).toString(),
    'the content',
  );
});

test('distinguishes a wrong password, another kind and a damaged line', async () => {
  const sealed = await collect(seal('agent', PASSWORD, [Buffer.from('x')]));
  await assert.rejects(collect(unseal('agent', cheapPassphrase('wrong horse'), [sealed])), failsWith('wrong_password'));
  await assert.rejects(collect(unseal('node', PASSWORD, [sealed])), failsWith('bad_file'));
  for (const other of [
    Buffer.alloc(0),
    Buffer.from('{}\n'),
    Buffer.alloc(5000, 65),
    Buffer.from('{"svcd_sealed":2}\n'),
  ])
    await assert.rejects(collect(unseal('agent', PASSWORD, [other])), failsWith('bad_file'));
});

test('the file does not control the cost of a guess', async () => {
  const sealed = await collect(seal('agent', PASSWORD, [Buffer.from('x')]));
  const full = { text: TEXT, cost: PASSPHRASE_COST };
  await assert.rejects(collect(unseal('agent', full, [sealed])), failsWith('bad_file'), 'a cheaper one');
  for (const [written, other] of [
    ['"n":2,', '"n":4,'],
    ['"n":2,', '"n":131072,'],
    ['"n":2,', '"n":2.0,'],
    ['"r":1,', '"r":4096,'],
    ['"p":1,', '"p":4096,'],
  ] as const) {
    assert.ok(sealed.includes(written));
    const changed = Buffer.from(sealed.toString('latin1').replace(written, other), 'latin1');
    await assert.rejects(collect(unseal('agent', PASSWORD, [changed])), failsWith('bad_file'), other);
  }
});

test('the same password in another normal form opens it', async () => {
  const sealed = await collect(seal('agent', cheapPassphrase('Zürich Zoo'), [Buffer.from('x')]));
  assert.equal(
    (await collect(unseal('agent', cheapPassphrase('Zürich Zoo'.normalize('NFD')), [sealed]))).toString(),
    'x',
  );
});

test('nothing can be cut off, put elsewhere or changed', async () => {
  const plain = Buffer.alloc(3 * CHUNK + 100, 1);
  const sealed = await collect(seal('agent', PASSWORD, [plain]));
  const start = sealed.indexOf('\n') + 1;
  const line = sealed.subarray(0, start);
  const chunk = (i: number): Buffer => sealed.subarray(start + i * (CHUNK + TAG), start + (i + 1) * (CHUNK + TAG));
  const variants: Record<string, readonly Buffer[]> = {
    'the last chunk gone': [line, chunk(0), chunk(1), chunk(2)],
    'all but the first gone': [line, chunk(0)],
    'a chunk left out': [line, chunk(0), chunk(2), chunk(3)],
    'two chunks exchanged': [line, chunk(0), chunk(2), chunk(1), chunk(3)],
    'something behind it': [sealed, Buffer.from('x')],
    'the last byte gone': [sealed.subarray(0, -1)],
  };
  for (const [what, pieces] of Object.entries(variants))
    await assert.rejects(collect(unseal('agent', PASSWORD, pieces)), failsWith('bad_file'), what);
});

test('no bit of a sealed file can be another one, in its line or behind it', async () => {
  const sealed = await collect(seal('agent', PASSWORD, [Buffer.from('the content')]));
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const at = bit >> 3;
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ (1 << (bit & 7));
    await assert.rejects(
      collect(unseal('agent', PASSWORD, [changed])),
      (error) => failsWith('bad_file')(error) || failsWith('wrong_password')(error),
      `bit ${bit}`,
    );
  }
});

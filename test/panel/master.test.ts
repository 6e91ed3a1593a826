import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  aidOfKey,
  groupsOf,
  issueTime,
  keyOf,
  lastDigits,
  masterFileText,
  newSeed,
  proofHex,
  readSeed,
} from '../../panel/src/lib/master.ts';
import { toHex } from '../../src/foundation/bytes.ts';
import { decodeDelegation } from '../../src/foundation/identity/delegation.ts';
import { verifyDelegation } from '../../src/foundation/identity/delegation-verifier.ts';
import { hex, readVectors } from '../support/vectors.ts';

interface Vectors {
  readonly master_seed_hex: string;
  readonly valid: readonly {
    readonly name: string;
    readonly agent: string;
    readonly operational_public_key_hex: string;
    readonly issued_at: number;
    readonly expires_at: number;
    readonly proof_hex: string;
  }[];
}

const vectors = readVectors('delegation') as Vectors;
const native = vectors.valid.find(({ name }) => name === 'native');

test('the page signs what the daemon does, byte for byte', async () => {
  assert.ok(native !== undefined);
  const master = await keyOf(hex(vectors.master_seed_hex));
  assert.equal(aidOfKey(master), native.agent);
  const proof = await proofHex(master, hex(native.operational_public_key_hex), native.issued_at, native.expires_at);
  assert.equal(proof, native.proof_hex);
});

test('a new key delegates to another, and the daemon accepts it until it expires', async () => {
  const master = await keyOf(newSeed());
  const { publicKey } = await keyOf(newSeed());
  const proof = decodeDelegation(hex(await proofHex(master, publicKey, 1_000_000, 2_000_000)));
  verifyDelegation(proof, 1_500_000);
  assert.throws(() => verifyDelegation(proof, 3_000_000));
  await assert.rejects(proofHex(master, publicKey, 2_000_000, 1_000_000));
});

test('a file is read back as svc writes it, typed keys with blanks too, and nothing else', () => {
  const seed = newSeed();
  const text = masterFileText('aid1x', seed);
  assert.match(text, /^# Master key of aid1x: .*\n[0-9a-f]{64}\n$/);
  assert.deepEqual(readSeed(text), seed);
  assert.deepEqual(readSeed(text.replaceAll('\n', '\r\n')), seed);
  assert.deepEqual(readSeed(` ${groupsOf(seed).join(' ').toUpperCase()} `), seed);
  assert.deepEqual(readSeed(`${toHex(seed)}${'0'.repeat(64)}`), seed);
  for (const wrong of ['', 'zz', toHex(seed).slice(2), `${toHex(seed)}00`]) assert.equal(readSeed(wrong), null);
  assert.equal(lastDigits(seed, 8), toHex(seed).slice(-8));
});

test('a new delegation is later than the current one, and not in the past', () => {
  const now = Date.parse('2026-01-01T00:00:10.900Z');
  assert.equal(issueTime('', now), Date.parse('2026-01-01T00:00:10Z') / 1000);
  assert.equal(issueTime('2026-01-01T00:00:10.000Z', now), Date.parse('2026-01-01T00:00:11Z') / 1000);
  assert.equal(issueTime('2026-01-01T00:01:00.000Z', now), Date.parse('2026-01-01T00:01:01Z') / 1000);
  assert.equal(issueTime('2025-01-01T00:00:00.000Z', now), Date.parse('2026-01-01T00:00:10Z') / 1000);
});

import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { signDelegation } from '../../../src/foundation/identity/wallet.ts';
import { generateWalletKey, walletAid, walletPublicKey } from '../../../src/foundation/identity/wallet-keys.ts';
import { decodeRecord, type SignedRecord, signRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { testRecord } from '../../support/records.ts';
import { failsWith } from '../../support/vectors.ts';

const NOW = Date.UTC(2026, 0, 2) / 1000;

function newVerifier(maxEntries?: number): RecordVerifier {
  const options = maxEntries === undefined ? {} : { maxEntries };
  return new RecordVerifier(options, { delegations: new DelegationVerifier(options) });
}

/** A foreign record. Locally signed records need no verification. */
function newRecord(): SignedRecord {
  return decodeRecord(testRecord(newIdentity(), RECORD.endpoints, { timestamp: NOW }).encoded);
}

/** Counts the signatures that are looked at. */
function countVerifications(t: TestContext) {
  const verify = t.mock.method(crypto, 'verify');
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return verify.mock;
}

/** The record as a stranger would send it, with one bit of its signature turned. */
function withBadSignature(record: SignedRecord): SignedRecord {
  const bytes = Uint8Array.from(record.encoded);
  const at = Buffer.from(bytes).indexOf(record.signature);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return decodeRecord(bytes);
}

test('rejects a record after its end', async () => {
  const verifier = newVerifier();
  const record = newRecord();
  verifier.verify(record, NOW);
  verifier.verify(record, NOW + 3600);
  assert.throws(() => verifier.verify(record, NOW + 3601), failsWith('bad_record'));
  assert.throws(() => verifier.verify(record, NOW - 61), failsWith('bad_record'));
  await assert.rejects(verifier.verifyAsync(record, NOW + 3601), failsWith('bad_record'));
});

test('rejects a record after the end of its delegation', () => {
  const verifier = newVerifier();
  const owner = delegateAnew(newIdentity().master, NOW - 10, NOW + 100);
  const record = testRecord(owner, RECORD.endpoints, { timestamp: NOW });
  verifier.verify(record, NOW);
  assert.throws(() => verifier.verify(record, NOW + 161), failsWith('bad_delegation'));
});

test('a good record does not vouch for a forged one', async () => {
  const verifier = newVerifier();
  const record = newRecord();
  verifier.verify(record, NOW);
  const forged = withBadSignature(record);
  for (let time = 0; time < 2; time++) {
    assert.throws(() => verifier.verify(forged, NOW), failsWith('bad_record'));
    await assert.rejects(verifier.verifyAsync(forged, NOW), failsWith('bad_record'));
  }
});

test('of many records every one gets its own verdict', async () => {
  const verifier = newVerifier();
  const owner = newIdentity();
  const good = [
    newRecord(),
    newRecord(),
    testRecord(owner, 2, { timestamp: NOW }),
    testRecord(owner, 3, { timestamp: NOW }),
  ];
  const bad = [withBadSignature(newRecord()), testRecord(owner, 4, { timestamp: NOW + 999 })];
  const all = [...good, ...bad];
  for (let time = 0; time < 2; time++) {
    const verdicts = await verifier.verifyAll(all, NOW);
    assert.deepEqual(
      verdicts.map((error) => error?.code ?? null),
      [null, null, null, null, 'bad_record', 'bad_record'],
    );
  }
  assert.deepEqual(await verifier.verifyAll([], NOW), []);
});

test('verifies an evicted record again', () => {
  const verifier = newVerifier(1);
  const records = [newRecord(), newRecord()];
  for (const record of [...records, ...records]) verifier.verify(record, NOW);
});

test('a record that was signed here with the key that its delegation names is taken as it is, no other one', async (t) => {
  const owner = newIdentity();
  const signedBy = (signer: Parameters<typeof signRecord>[1]): SignedRecord => {
    const { aid, delegation } = owner;
    const payload = new Uint8Array();
    return signRecord({ aid, type: RECORD.endpoints, seq: 1, timestamp: NOW, ttl: 3600, payload, delegation }, signer);
  };
  const own = signedBy(owner.operational);
  const verifier = newVerifier();
  const verify = countVerifications(t);
  verifier.verify(own, NOW);
  await verifier.verifyAsync(own, NOW);
  assert.equal(verify.callCount(), 1, 'its delegation');
  assert.throws(() => verifier.verify(own, NOW + 3601), failsWith('bad_record'));
  // The same bytes from elsewhere are anybody's.
  verifier.verify(decodeRecord(own.encoded), NOW);
  assert.equal(verify.callCount(), 2);
  const other = newIdentity().operational;
  const sign = (message: Uint8Array): Uint8Array => other.sign(message);
  for (const forged of [signedBy(other), signedBy({ sign })]) {
    assert.throws(() => verifier.verify(forged, NOW), failsWith('bad_record'));
    await assert.rejects(verifier.verifyAsync(forged, NOW), failsWith('bad_record'));
  }
});

test('verifies concurrent copies of a record once', async (t) => {
  const verify = countVerifications(t);
  const verifier = newVerifier();
  const record = newRecord();
  const copies = [record, decodeRecord(Uint8Array.from(record.encoded))];
  await Promise.all(copies.map((copy) => verifier.verifyAsync(copy, NOW)));
  assert.equal(verify.callCount(), 2, 'its delegation and itself');
  const forged = [withBadSignature(record), withBadSignature(record)];
  const results = await Promise.allSettled(forged.map((copy) => verifier.verifyAsync(copy, NOW)));
  assert.ok(results.every((result) => result.status === 'rejected' && failsWith('bad_record')(result.reason)));
  assert.equal(verify.callCount(), 3);
  // A bad record is verified again and does not affect good ones.
  await assert.rejects(verifier.verifyAsync(withBadSignature(record), NOW), failsWith('bad_record'));
  await verifier.verifyAsync(record, NOW);
  assert.equal(verify.callCount(), 4);
});

test('verifies a few records per turn on this thread', async (t) => {
  const verify = countVerifications(t);
  /** Number of signatures verified on this thread, and on others, which report through a callback. */
  const counted = (): readonly [number, number] => {
    const elsewhere = verify.calls.filter(({ arguments: args }) => args.some((arg) => typeof arg === 'function'));
    const all = verify.callCount();
    verify.resetCalls();
    return [all - elsewhere.length, elsewhere.length];
  };
  const verifier = newVerifier();
  const verifyAll = (count: number) =>
    Promise.all(Array.from({ length: count }, () => verifier.verifyAsync(newRecord(), NOW)));
  await verifyAll(5);
  assert.deepEqual(counted(), [4, 6], 'each with its delegation');
  await turn();
  await verifyAll(1);
  assert.deepEqual(counted(), [2, 0]);
});

test("a record under a wallet's delegation is never verified between two others", async () => {
  const verifier = newVerifier();
  const { operational } = newIdentity();
  const key = generateWalletKey();
  const agent = walletAid('ethereum', walletPublicKey(key));
  const grant = { agent, operationalKey: operational.publicKey, scope: 1, issuedAt: NOW - 10, expiresAt: 0 };
  const delegation = signDelegation('ethereum', key, grant);
  const content = { aid: agent, type: RECORD.endpoints, seq: 1, timestamp: NOW, ttl: 3600, payload: new Uint8Array() };
  const record = signRecord({ ...content, delegation }, operational);
  let isTurned = false;
  setImmediate(() => {
    isTurned = true;
  });
  await verifier.verifyAsync(record, NOW);
  assert.ok(isTurned);
});

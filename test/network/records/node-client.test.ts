import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import type { DhtEngine } from '../../../src/network/records/engine.ts';
import {
  COMMAND,
  encodeFindReply,
  encodeFindRequest,
  encodeRemoveReply,
  encodeRemoveRequest,
  encodeStoreReply,
  type StoreReply,
} from '../../../src/network/records/messages.ts';
import { nodeId } from '../../../src/network/records/node-address.ts';
import { NodeClient } from '../../../src/network/records/node-client.ts';
import { newIdentity } from '../../support/identities.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { endpointRecord, testRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

const NODE = nodeAddress(1);
const AT = answerOf(NODE, nodeId(NODE));

/** A client of a node that answers every record with this verdict. */
function setUp(verdict: StoreReply = { code: 'kept' }) {
  const clock = new TestClock();
  const retried = new Map<number, boolean>();
  const values = new Map<number, Uint8Array>([
    [COMMAND.find, encodeFindReply({ ...AT.reply, time: unixSeconds(clock) })],
    [COMMAND.store, encodeStoreReply(verdict)],
    [COMMAND.remove, encodeRemoveReply(1)],
  ]);
  const request: DhtEngine['request'] = async (_to, { command }, options) => {
    retried.set(command, options?.retry === true);
    return { from: { ...NODE, id: null }, to: NODE, token: null, error: 0, value: values.get(command) ?? null };
  };
  const verifier = new RecordVerifier({}, { delegations: new DelegationVerifier() });
  const nodeRequests = { request: async () => new Uint8Array(), onRequest: () => {} };
  const client = new NodeClient(clock, verifier, nodeRequests, new Uint8Array(8), { request });
  return { client, retried, now: { timestamp: unixSeconds(clock) } };
}

test('writes without an answer are retried, lookups are not', async () => {
  const { client, retried, now } = setUp();
  const { key, record } = endpointRecord(newIdentity(), now);
  await client.find(NODE, AT.id, key, encodeFindRequest({ types: [], wantsRecords: false }));
  assert.equal((await client.store(AT, key, record))?.code, 'kept');
  assert.equal(await client.removeNotes(AT, key, encodeRemoveRequest([])), 1);
  assert.deepEqual(Object.fromEntries(retried), {
    [COMMAND.find]: false,
    [COMMAND.store]: true,
    [COMMAND.remove]: true,
  });
});

test('a newer record in a response counts only if it is a valid record of the same agent and type', async () => {
  const owner = newIdentity();
  const { now } = setUp();
  const ours = endpointRecord(owner, { ...now, seq: 1 });
  const newer = endpointRecord(owner, { ...now, seq: 2 }).record;
  const forged = Uint8Array.from(newer.encoded);
  const at = Buffer.from(forged).indexOf(newer.signature);
  forged.set([(forged[at] ?? 0) ^ 1], at);
  const verdictOn = async (record: Uint8Array) =>
    (await setUp({ code: 'newer', record }).client.store(AT, ours.key, ours.record))?.newer ?? null;
  assert.deepEqual((await verdictOn(newer.encoded))?.encoded, newer.encoded);
  assert.equal(await verdictOn(forged), null);
  assert.equal(await verdictOn(testRecord(owner, RECORD.encryptionKeys, { ...now, seq: 2 }).encoded), null);
  assert.equal(await verdictOn(endpointRecord(newIdentity(), { ...now, seq: 2 }).record.encoded), null);
});

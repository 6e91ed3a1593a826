import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { mailboxKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import type { FindReply, FindRequest } from '../../../src/network/records/messages.ts';
import { nodeId } from '../../../src/network/records/node-address.ts';
import { RecordStore } from '../../../src/network/records/record-store.ts';
import { reconcile } from '../../../src/network/records/replication.ts';
import { newIdentity } from '../../support/identities.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { removableNote } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

/** A local store with notes for one recipient, and a node that answers as the test configures. */
function setUp(count: number) {
  const clock = new TestClock();
  const timestamp = unixSeconds(clock);
  const store = new RecordStore({ file: ':memory:', maxBytes: 1 << 24 }, { clock, log: silentLog });
  const recipient = newIdentity(timestamp);
  const key = mailboxKey(recipient.aid);
  for (let n = 0; n < count; n++) {
    const { record } = removableNote(recipient, new Uint8Array(16).fill(n), { timestamp, ttl: 7 * 86_400 });
    assert.equal(store.offer(key, record, 'a').code, 'kept');
  }
  const rows = store.replicationQueue.under(key, timestamp, 1000);
  const asked: FindRequest[] = [];
  const says = (reply: Partial<FindReply>, parts: (request: FindRequest) => Partial<FindReply> | null = () => null) => {
    const answer = (more: Partial<FindReply>) => answerOf(nodeAddress(1), nodeId(nodeAddress(1)), more);
    const ask = async (_at: unknown, _key: Uint8Array, request: FindRequest): Promise<FindReply | null> => {
      asked.push(request);
      const part = parts(request);
      return part === null ? null : answer(part).reply;
    };
    return reconcile(answer(reply), key, rows, store, { ask });
  };
  return { store, key, rows, asked, says, all: new Set(rows.map(({ digest }) => toHex(digest))) };
}

test('a node with the same digest has the same records, and receives no further request', async () => {
  const { store, key, asked, says, all } = setUp(40);
  const { count, digest } = store.summarize(key, { types: [RECORD.note] });
  assert.deepEqual(await says({ count, digest }), all);
  assert.equal(asked.length, 0);
  assert.equal(await says({ count, digest: new Uint8Array(8) }), null, 'same count, other records');
  assert.equal(await says({ count: count + 1, digest }), null);
});

test('a complete answer lists all records of the node', async () => {
  const { rows, asked, says } = setUp(3);
  const [first] = rows;
  assert.ok(first);
  assert.deepEqual(await says({ count: 1, summaries: [first] }), new Set([toHex(first.digest)]));
  assert.deepEqual(await says({ count: 0 }), new Set());
  assert.equal(asked.length, 0);
});

test('if one response is not enough, the reader requests parts, of the same types and of the local notes', async () => {
  const { rows, asked, says, all } = setUp(40);
  const ofPart = ({ part }: FindRequest) => rows.filter((row) => part && row.part % part.of === part.index);
  assert.deepEqual(await says({ count: 64 }, (request) => ({ summaries: ofPart(request) })), all);
  assert.deepEqual(new Set(asked.map(({ part }) => part?.of)), new Set([8]));
  assert.deepEqual(new Set(asked.map(({ part }) => part?.index)), new Set(rows.map(({ part }) => part % 8)));
  for (const { types, wantsRecords } of asked) assert.deepEqual([types, wantsRecords], [[RECORD.note], true]);
});

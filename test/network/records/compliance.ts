/** The rules of every record network, independent of its transport. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import { agentKey, mailboxKey, serviceKey } from '../../../src/foundation/records/keys.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { MAX_NOTE_PAYLOAD_BYTES, RECORD } from '../../../src/foundation/records/types.ts';
import type { RecordNetwork } from '../../../src/network/records/types.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { endpointRecord, noteRecord, removableNote, serviceRecord, testRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Starts three nodes that know each other. */
export type Harness = (
  t: TestContext,
  clock: TestClock,
) => Promise<readonly [RecordNetwork, RecordNetwork, RecordNetwork]>;

function ascending<T extends string | number>(a: T, b: T): number {
  return a < b ? -1 : Number(a > b);
}

function codeIs(...codes: readonly string[]): (error: unknown) => boolean {
  return (error) => error instanceof SvcError && codes.includes(error.code);
}

function same(actual: SignedRecord | null | undefined, expected: SignedRecord): void {
  assert.ok(actual);
  assert.deepEqual(Buffer.from(actual.encoded), Buffer.from(expected.encoded));
}

export function recordNetworkCompliance(name: string, harness: Harness): void {
  describe(`${name}: record network`, () => {
    test('every node can read a record that one node published', async (t) => {
      const clock = new TestClock();
      const [a, b, c] = await harness(t, clock);
      const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock) });
      assert.deepEqual(await a.put(key, record), { replicas: 2, newer: null, refused: {}, isHere: true });
      for (const node of [a, b, c]) same(await node.get(key, RECORD.endpoints), record);
      same(await c.get(key, RECORD.endpoints, { thorough: true }), record);
      assert.equal(await b.get(key, RECORD.profile), null);
      assert.equal(await b.get(agentKey(newIdentity().aid), RECORD.endpoints), null);
    });

    test('a newer record replaces an older one. An older record is rejected with the newer one', async (t) => {
      const clock = new TestClock();
      const [a, b, c] = await harness(t, clock);
      const owner = newIdentity();
      const timestamp = unixSeconds(clock);
      const { key, record: second } = endpointRecord(owner, { timestamp, seq: 2 });
      const { record: first } = endpointRecord(owner, { timestamp, seq: 1 });
      const { record: third } = endpointRecord(owner, { timestamp, seq: 3 });
      await a.put(key, second);
      const refused = await b.put(key, first);
      assert.equal(refused.replicas, 0);
      same(refused.newer, second);
      same(await c.get(key, RECORD.endpoints), second);
      assert.deepEqual(await c.put(key, third), { replicas: 2, newer: null, refused: {}, isHere: true });
      same(await a.get(key, RECORD.endpoints), third);
    });

    test('publishing the same record again succeeds again', async (t) => {
      const clock = new TestClock();
      const [a, b] = await harness(t, clock);
      const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock) });
      await a.put(key, record);
      assert.deepEqual(await b.put(key, record), { replicas: 2, newer: null, refused: {}, isHere: true });
    });

    test('a later delegation wins over a higher seq', async (t) => {
      const clock = new TestClock();
      const [a, b] = await harness(t, clock);
      const stolen = newIdentity();
      const rotated = delegateAnew(stolen.master, unixSeconds(clock) + 10);
      clock.advance(20_000);
      const timestamp = unixSeconds(clock);
      const { key, record: thief } = endpointRecord(stolen, { timestamp, seq: 1000 });
      const { record: owner } = endpointRecord(rotated, { timestamp, seq: 1 });
      await a.put(key, thief);
      assert.equal((await b.put(key, owner)).newer, null);
      same(await a.get(key, RECORD.endpoints), owner);
      same((await a.put(key, thief)).newer, owner);
    });

    test('a record expires at the end of its lifetime', async (t) => {
      const clock = new TestClock();
      const [a, b] = await harness(t, clock);
      const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock), ttl: 60 });
      await a.put(key, record);
      clock.jump(60_000);
      same(await b.get(key, RECORD.endpoints), record);
      clock.jump(1000);
      assert.equal(await b.get(key, RECORD.endpoints), null);
      assert.deepEqual(await b.list(key, []), []);
      await assert.rejects(a.put(key, record), codeIs('bad_record'));
    });

    test('a forged or misplaced record never leaves the node', async (t) => {
      const clock = new TestClock();
      const [a] = await harness(t, clock);
      const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock) });
      await assert.rejects(a.put(key, { ...record, seq: 9 }), codeIs('bad_record'));
      await assert.rejects(a.put(agentKey(newIdentity().aid), record), codeIs('bad_record'));
      const early = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock) + 120 });
      await assert.rejects(a.put(early.key, early.record), codeIs('bad_record'));
    });

    test('a list contains the records of an agent, of all types or of some', async (t) => {
      const clock = new TestClock();
      const [a, b] = await harness(t, clock);
      const owner = newIdentity();
      const key = agentKey(owner.aid);
      const timestamp = unixSeconds(clock);
      const types = [RECORD.endpoints, RECORD.profile, 0x07, RECORD.encryptionKeys];
      for (const type of types) await a.put(key, testRecord(owner, type, { timestamp }));
      const all = await b.list(key, []);
      assert.deepEqual(all.map((r) => r.type).sort(ascending), [...types].sort(ascending));
      const some = await b.list(key, [RECORD.profile, RECORD.endpoints]);
      assert.deepEqual(some.map((r) => r.type).sort(ascending), [RECORD.endpoints, RECORD.profile]);
    });

    test('a search returns the newest record of each provider of a service, up to a limit', async (t) => {
      const clock = new TestClock();
      const [a, b, c] = await harness(t, clock);
      const timestamp = unixSeconds(clock);
      const key = serviceKey('lang.translate');
      const owners = Array.from({ length: 40 }, () => newIdentity());
      for (const owner of owners) {
        await a.put(key, serviceRecord('lang.translate', owner, { timestamp, seq: 1 }).record);
        await b.put(key, serviceRecord('lang.translate', owner, { timestamp, seq: 2 }).record);
      }
      const found = await c.list(key, [RECORD.service]);
      assert.deepEqual(found.map((r) => r.aid).sort(ascending), owners.map((o) => o.aid).sort(ascending));
      assert.ok(found.every((r) => r.seq === 2));
      assert.equal((await c.list(key, [RECORD.service], { limit: 7 })).length, 7);
      assert.deepEqual(await c.list(serviceKey('lang.other'), [RECORD.service]), []);
    });

    test('records too large for a datagram are stored and read', async (t) => {
      const clock = new TestClock();
      const [a, b, c] = await harness(t, clock);
      const timestamp = unixSeconds(clock);
      const owner = newIdentity();
      const key = agentKey(owner.aid);
      const large = testRecord(owner, RECORD.profile, { timestamp, payload: new Uint8Array(4096).fill(7) });
      const small = testRecord(owner, RECORD.endpoints, { timestamp });
      assert.equal((await a.put(key, large)).replicas, 2);
      await a.put(key, small);
      same(await b.get(key, RECORD.profile), large);
      same(await b.get(key, RECORD.endpoints), small);
      assert.equal((await c.list(key, [])).length, 2);
      const older = testRecord(owner, RECORD.profile, { timestamp: timestamp - 1, payload: new Uint8Array(4096) });
      same((await c.put(key, older)).newer, large);
    });

    test('one recipient can have many notes', async (t) => {
      const clock = new TestClock();
      const [a, b, c] = await harness(t, clock);
      const timestamp = unixSeconds(clock);
      const recipient = newIdentity();
      const notes = [
        ...Array.from({ length: 12 }, () => noteRecord(recipient, 200, { timestamp })),
        ...Array.from({ length: 3 }, () => noteRecord(recipient, MAX_NOTE_PAYLOAD_BYTES - 32, { timestamp })),
      ];
      for (const [i, note] of notes.entries()) await [a, b][i % 2]?.put(note.key, note.record);
      const found = await c.list(mailboxKey(recipient.aid), [RECORD.note]);
      assert.deepEqual(found.map((r) => r.aid).sort(ascending), notes.map((n) => n.record.aid).sort(ascending));
    });

    test('a list omits the records that the reader has', async (t) => {
      const clock = new TestClock();
      const [a, , c] = await harness(t, clock);
      const timestamp = unixSeconds(clock);
      const recipient = newIdentity();
      const notes = Array.from({ length: 20 }, (_, i) => noteRecord(recipient, i < 10 ? 200 : 3000, { timestamp }));
      for (const note of notes) await a.put(note.key, note.record);
      const key = mailboxKey(recipient.aid);
      const known = new Set(notes.slice(5).map(({ record }) => toHex(recordDigest(record.encoded))));
      const rest = await c.list(key, [RECORD.note], { known });
      const wanted = notes.slice(0, 5).map(({ record }) => record.aid);
      assert.deepEqual(rest.map((r) => r.aid).sort(ascending), wanted.sort(ascending));
      const all = new Set(notes.map(({ record }) => toHex(recordDigest(record.encoded))));
      assert.deepEqual(await c.list(key, [RECORD.note], { known: all }), []);
    });

    test('a note is removed only with its token', async (t) => {
      const clock = new TestClock();
      const [a, , c] = await harness(t, clock);
      const timestamp = unixSeconds(clock);
      const recipient = newIdentity();
      const notes = Array.from({ length: 40 }, () => {
        const token = new Uint8Array(randomBytes(16));
        return { token, ...removableNote(recipient, token, { timestamp }) };
      });
      for (const { key, record } of notes) await a.put(key, record);
      const key = mailboxKey(recipient.aid);
      const removals = notes.map(({ record, token }) => ({ digest: recordDigest(record.encoded), token }));
      const wrong = removals.map(({ digest }) => ({ digest, token: new Uint8Array(16) }));
      assert.equal(await c.removeNotes(key, wrong), 0);
      assert.equal(await c.removeNotes(mailboxKey(newIdentity().aid), removals), 0);
      assert.equal((await c.list(key, [RECORD.note])).length, 40);
      assert.ok((await c.removeNotes(key, removals.slice(1))) >= 39);
      same((await c.list(key, [RECORD.note]))[0], notes[0]?.record ?? assert.fail());
      assert.equal((await a.list(key, [RECORD.note])).length, 1);
    });

    test('an aborted signal cancels a request', async (t) => {
      const clock = new TestClock();
      const [a] = await harness(t, clock);
      const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock) });
      const signal = AbortSignal.abort();
      await assert.rejects(a.put(key, record, { signal }), codeIs('cancelled'));
      await assert.rejects(a.get(key, RECORD.endpoints, { signal }), codeIs('cancelled'));
      await assert.rejects(a.list(key, [], { signal }), codeIs('cancelled'));
    });

    test('the status shows the peers and the stored records', async (t) => {
      const clock = new TestClock();
      const [a, b, c] = await harness(t, clock);
      const ports = [b, c].map((node) => node.address.port).sort(ascending);
      assert.deepEqual(
        a
          .peers()
          .map((peer) => peer.port)
          .sort(ascending),
        ports,
      );
      const { ready, peers, inRoutingTables, observed } = a.reachability();
      assert.deepEqual({ ready, peers, inRoutingTables }, { ready: true, peers: 2, inRoutingTables: true });
      assert.deepEqual(observed, [a.address]);
      const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock) });
      const before = a.usage();
      await b.put(key, record);
      const after = a.usage();
      assert.equal(after.records, before.records + 1);
      assert.ok(after.bytes - before.bytes >= record.encoded.length && after.maxBytes > 0);
    });
  });
}

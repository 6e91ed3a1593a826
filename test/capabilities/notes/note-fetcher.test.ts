import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Verdict } from '../../../src/capabilities/notes/inbox.ts';
import { NoteFetcher, ROUND_LOOK_BURST, ROUND_LOOKS_PER_S } from '../../../src/capabilities/notes/note-fetcher.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { mailboxKey } from '../../../src/foundation/records/keys.ts';
import { newIdentity } from '../../support/identities.ts';
import { MemoryRecordHub, MemoryRecordNetwork } from '../../support/memory-records.ts';
import { noteRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

/** A fetcher, and the mailboxes that it fetched, in order. */
async function newFetcher(t: TestContext, aids: readonly Aid[] = [], verdict: Verdict = 'refused') {
  const clock = new TestClock();
  const hub = new MemoryRecordHub(clock);
  const network = new MemoryRecordNetwork(hub);
  await network.start();
  const sender = new MemoryRecordNetwork(hub);
  await sender.start();
  const { mock } = t.mock.method(network, 'list');
  const fetcher = new NoteFetcher({
    network,
    inbox: { accept: async (_aid, records) => records.map(() => ({ verdict, removal: null })) },
    clock,
    log: silentLog,
    random: () => 0,
    agents: () => ({ aids, next: null }),
  });
  fetcher.start();
  await clock.run(0);
  const looks = (): string[] => {
    const keys = mock.calls.map(({ arguments: [key] }) => toHex(key));
    mock.resetCalls();
    return keys;
  };
  const breadths = (): string[] => {
    const all = mock.calls.map(({ arguments: [, , options] }) => (options?.brief === true ? 'few' : 'all'));
    mock.resetCalls();
    return all;
  };
  const mailbox = (aid: Aid): string => toHex(mailboxKey(aid));
  return { clock, fetcher, looks, breadths, mailbox, sender };
}

test('a mailbox with a delay is fetched after it, and other mailboxes meanwhile', async (t) => {
  const { clock, fetcher, looks, mailbox } = await newFetcher(t);
  const [later, now] = [newIdentity().aid, newIdentity().aid];
  fetcher.soon(later, 1000);
  fetcher.soon(now);
  await clock.run(999);
  assert.deepEqual(looks(), [mailbox(now)]);
  await clock.run(1);
  assert.deepEqual(looks(), [mailbox(later)]);
  await clock.run(5000);
  assert.deepEqual(looks(), []);
  await fetcher.stop();
  assert.equal(clock.timers, 0);
});

test('of two requests for one mailbox, the earlier time counts', async (t) => {
  const { clock, fetcher, looks, mailbox } = await newFetcher(t);
  const { aid } = newIdentity();
  fetcher.soon(aid, 1000);
  fetcher.soon(aid);
  fetcher.soon(aid, 500);
  await clock.run(10);
  assert.deepEqual(looks(), [mailbox(aid)]);
  await clock.run(2000);
  assert.deepEqual(looks(), []);
  await fetcher.stop();
});

test('all mailboxes are fetched at the start, and later one each second beyond the first of a round', async (t) => {
  const aids = Array.from({ length: ROUND_LOOK_BURST + 40 }, () => newIdentity().aid);
  const { clock, fetcher, looks, mailbox } = await newFetcher(t, aids);
  const all = aids.map(mailbox);
  await clock.run(10_000);
  assert.deepEqual(looks(), all);
  await clock.run(59_000);
  const burst = looks().length;
  assert.ok(burst >= ROUND_LOOK_BURST && burst < ROUND_LOOK_BURST + 10, `${burst}`);
  await clock.run(10_000);
  const { length } = looks();
  assert.ok(length >= 9 * ROUND_LOOKS_PER_S && length <= 11 * ROUND_LOOKS_PER_S, `${length}`);
  fetcher.soon(aids[0] ?? assert.fail());
  await clock.run(0);
  assert.deepEqual(looks(), all.slice(0, 1));
  await fetcher.stop();
  assert.equal(clock.timers, 0);
});

test('the first round queries all nodes near a mailbox, and of later rounds every fourth', async (t) => {
  const { clock, fetcher, breadths } = await newFetcher(t, [newIdentity().aid]);
  await clock.run(8 * 60_000 + 1000);
  assert.deepEqual(breadths(), ['all', 'few', 'few', 'few', 'all', 'few', 'few', 'few', 'all']);
  await fetcher.stop();
});

test('if the few closest nodes have a note, the other nodes near the mailbox are queried too', async (t) => {
  const owner = newIdentity();
  const { clock, fetcher, breadths, sender } = await newFetcher(t, [owner.aid]);
  const { key, record } = noteRecord(owner, 200, { timestamp: unixSeconds(clock) });
  await sender.put(key, record);
  breadths();
  await clock.run(60_000);
  assert.deepEqual(breadths(), ['few', 'all']);
  await fetcher.stop();
});

test('a mailbox that had a note for its agent is fetched again a minute later, unlike that of a deleted agent', async (t) => {
  for (const [verdict, again] of [
    ['kept', 1],
    ['refused', 0],
  ] as const) {
    const { clock, fetcher, looks, mailbox, sender } = await newFetcher(t, [], verdict);
    const owner = newIdentity();
    const { key, record } = noteRecord(owner, 200, { timestamp: unixSeconds(clock) });
    await sender.put(key, record);
    fetcher.soon(owner.aid);
    await clock.run(59_000);
    assert.deepEqual(looks(), [mailbox(owner.aid)]);
    await clock.run(2000);
    assert.equal(looks().length, again, verdict);
    await fetcher.stop();
    t.mock.reset();
  }
});

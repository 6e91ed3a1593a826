import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { NoteFetcher } from '../../../src/capabilities/notes/note-fetcher.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { mailboxKey } from '../../../src/foundation/records/keys.ts';
import { newIdentity } from '../../support/identities.ts';
import { MemoryRecordHub, MemoryRecordNetwork } from '../../support/memory-records.ts';
import { TestClock } from '../../support/test-clock.ts';

/** A fetcher without agents, and the mailboxes that it fetched on request, in order. */
async function newFetcher(t: TestContext) {
  const clock = new TestClock();
  const hub = new MemoryRecordHub(clock);
  const network = new MemoryRecordNetwork(hub);
  await network.start();
  await new MemoryRecordNetwork(hub).start();
  const { mock } = t.mock.method(network, 'list');
  const fetcher = new NoteFetcher({
    network,
    inbox: { accept: async () => [] },
    clock,
    log: silentLog,
    random: () => 0,
    agents: () => ({ aids: [], next: null }),
  });
  fetcher.start();
  await clock.run(0);
  const looks = (): string[] => {
    const keys = mock.calls.map(({ arguments: [key] }) => toHex(key));
    mock.resetCalls();
    return keys;
  };
  const mailbox = (aid: Aid): string => toHex(mailboxKey(aid));
  return { clock, fetcher, looks, mailbox };
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

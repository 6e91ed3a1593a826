import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready, TestNetwork } from '../support/network.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface Contacts {
  readonly friends: readonly { readonly peer: string; readonly unread_count: number }[];
  readonly in_pending: readonly { readonly peer: string; readonly note: string }[];
}

interface Conversation {
  readonly entries: readonly { readonly text?: string; readonly dir: string }[];
}

async function texts(daemon: TestDaemon, aid: string, peer: string): Promise<string[]> {
  const { entries } = await daemon.call<Conversation>('GET', `/agents/${aid}/chat/peers/${peer}`);
  return entries.filter((entry) => entry.dir === 'in').map((entry) => entry.text ?? '');
}

test('two agents become friends and talk; messages sent while one is offline arrive once, in order', async (t) => {
  const dataDir = temporaryDirectory(t);
  await using network = await TestNetwork.start(2);
  const near = network.at(0);
  const bootstrap = [near.dhtAddress];
  const away = await TestDaemon.start({ dataDir, bootstrap });
  await ready(away);
  const mine = await near.newAgent();
  const theirs = await away.newAgent();
  for (const [daemon, aid] of [
    [near, mine],
    [away, theirs],
  ] as const)
    await daemon.call('POST', `/agents/${aid}/publish`);
  const early = await near.request('POST', `/agents/${mine}/chat/send`, { peer: theirs, text: 'too early' });
  assert.equal(early.status, 403);
  assert.equal((early.body as { error: string }).error, 'not_friends');

  await near.call('POST', `/agents/${mine}/chat/request`, { peer: theirs, note: 'It is me' });
  await eventually('the request was delivered', async () => {
    const { in_pending } = await away.call<Contacts>('GET', `/agents/${theirs}/chat/contacts`);
    return in_pending[0]?.note === 'It is me';
  });
  await away.call('POST', `/agents/${theirs}/chat/accept`, { peer: mine });
  await eventually(
    'both are friends',
    async () => (await near.call<Contacts>('GET', `/agents/${mine}/chat/contacts`)).friends.length === 1,
  );
  await near.call('POST', `/agents/${mine}/chat/send`, { peer: theirs, text: 'one' });
  await eventually('the first text was delivered', async () => (await texts(away, theirs, mine)).length === 1);

  await away.kill('SIGKILL');
  for (const text of ['two', 'three']) {
    const { status } = await near.call<{ status: string }>('POST', `/agents/${mine}/chat/send`, { peer: theirs, text });
    assert.equal(status, 'queued');
  }
  await using back = await TestDaemon.start({ dataDir, bootstrap });
  await ready(back);
  await back.call('POST', `/agents/${theirs}/publish`);
  // A message from the returned agent tells the other one that it is online.
  await back.call('POST', `/agents/${theirs}/chat/send`, { peer: mine, text: 'I am back' });
  await eventually('everything was delivered', async () => (await texts(back, theirs, mine)).length === 3);
  assert.deepEqual(await texts(back, theirs, mine), ['one', 'two', 'three']);
  await eventually('the answer was delivered', async () => (await texts(near, mine, theirs)).length === 1);
  const { pending } = await back.call<{ pending?: Record<string, { chat_unread?: number }> }>('GET', '/status');
  assert.equal(pending?.[theirs]?.chat_unread, 3);
  await back.call('POST', `/agents/${theirs}/chat/mark-read`, { peer: mine });
  assert.equal((await back.call<Contacts>('GET', `/agents/${theirs}/chat/contacts`)).friends[0]?.unread_count, 0);
});

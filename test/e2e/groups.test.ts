import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { TestNetwork } from '../support/network.ts';

interface Page {
  readonly entries: readonly {
    readonly entry_id: string;
    readonly author: string;
    readonly kind: string;
    readonly body?: string;
  }[];
}

async function tool<T = Record<string, unknown>>(daemon: TestDaemon, name: string, args: object): Promise<T> {
  return daemon.call<T>('POST', '/mcp/call', { tool: name, args });
}

async function texts(daemon: TestDaemon, aid: string, group: string): Promise<string[]> {
  const { entries } = await tool<Page>(daemon, 'group_read', { aid, group_id: group, kind: 'msg' });
  return entries.map((entry) => Buffer.from(entry.body ?? '', 'base64').toString());
}

const body = (text: string): string => Buffer.from(text).toString('base64');

test('three agents on three daemons share a group: by invitation, by link, and after one was offline', async () => {
  await using network = await TestNetwork.start(3);
  const daemons = [network.at(0), network.at(1), network.at(2)] as const;
  const [alice, bob, carol] = await Promise.all(
    daemons.map(async (daemon) => {
      const aid = await daemon.newAgent();
      await daemon.call('POST', `/agents/${aid}/publish`);
      return aid;
    }),
  );
  assert.ok(alice !== undefined && bob !== undefined && carol !== undefined);
  const { group_id: group, link } = await tool<{ group_id: string; link: string }>(daemons[0], 'group_create', {
    aid: alice,
    title: 'Test',
  });
  await tool(daemons[0], 'group_append', { aid: alice, group_id: group, body: body('first') });

  await eventually('bob can be invited', async () => {
    const answer = await daemons[0].request('POST', '/mcp/call', {
      tool: 'group_invite',
      args: { aid: alice, group_id: group, target_aid: bob },
    });
    return answer.status === 200;
  });
  await tool(daemons[2], 'group_join', { aid: carol, link });
  await eventually('bob has the invitation', async () => {
    const answer = await daemons[1].request('POST', '/mcp/call', {
      tool: 'group_join',
      args: { aid: bob, group_id: group, creator_aid: alice },
    });
    return answer.status === 200;
  });
  for (const [daemon, aid] of [
    [daemons[1], bob],
    [daemons[2], carol],
  ] as const)
    await eventually('the first entry was delivered', async () =>
      (await texts(daemon, aid, group).catch((): string[] => [])).includes('first'),
    );

  await tool(daemons[1], 'group_append', { aid: bob, group_id: group, body: body('from bob'), to: [carol] });
  await tool(daemons[2], 'group_append', { aid: carol, group_id: group, body: body('from carol') });
  for (const [i, aid] of [alice, bob, carol].entries())
    await eventually(`all entries are at ${i}`, async () => {
      const seen = await texts(daemons[i] ?? daemons[0], aid, group);
      return ['first', 'from bob', 'from carol'].every((text) => seen.includes(text));
    });
  const { groups } = await daemons[2].call<{ groups: { mention_count: number }[] }>('GET', `/agents/${carol}/groups`);
  assert.equal(groups[0]?.mention_count, 1);
  await daemons[1].call('POST', `/agents/${bob}/groups/${group}/leave`, {});
  const creator = await daemons[0].request('POST', `/agents/${alice}/groups/${group}/leave`, {});
  assert.equal(creator.status, 409);
});

/** Sends a request, and closes the connection without reading the response. */
async function giveUp(daemon: TestDaemon, path: string, content: object): Promise<void> {
  const text = JSON.stringify(content);
  const head = ['POST', path, 'HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:'];
  const socket = connect(Number(new URL(daemon.api).port), '127.0.0.1');
  socket.end(`${head.join(' ')} ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  await once(socket.resume(), 'close');
}

test('a client that gave up and repeats its request creates one entry, chat text and invitation', async () => {
  await using daemon = await TestDaemon.start();
  const [alice, bob] = [await daemon.newAgent(), await daemon.newAgent()];
  await daemon.call('POST', `/agents/${alice}/chat/request`, { peer: bob });
  await daemon.call('POST', `/agents/${bob}/chat/accept`, { peer: alice });
  const { group_id: group } = await tool<{ group_id: string }>(daemon, 'group_create', { aid: alice });
  const append = { tool: 'group_append', args: { aid: alice, group_id: group, text: 'hello' } };
  const invite = { tool: 'group_invite', args: { aid: alice, group_id: group, target_aid: bob } };
  const requests: readonly (readonly [string, object])[] = [
    ['/mcp/call', append],
    ['/mcp/call', invite],
    [`/agents/${alice}/chat/send`, { peer: bob, text: 'hello' }],
  ];
  for (const [path, content] of requests) {
    await giveUp(daemon, path, content);
    await giveUp(daemon, path, content);
    await daemon.call('POST', path, content);
  }
  assert.deepEqual(await texts(daemon, alice, group), ['hello']);
  const { entries } = await tool<Page>(daemon, 'group_read', { aid: alice, group_id: group });
  assert.equal(entries.filter(({ kind }) => kind === 'invite').length, 1);
  const { entries: chat } = await daemon.call<Page>('GET', `/agents/${alice}/chat/peers/${bob}`);
  assert.equal(chat.length, 1);
  const page = await daemon.call<{ readonly invitations: readonly object[] }>(
    'GET',
    `/agents/${bob}/group-invitations`,
  );
  assert.equal(page.invitations.length, 1);
});

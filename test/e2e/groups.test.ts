import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestDaemon } from '../support/daemon.ts';
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

/**
 * Groups between real daemons: time from an entry to the event at twenty online members (one author on a separate
 * daemon, four daemons with five members each), entries per second of one author, and time for a new member to fetch
 * ten thousand entries.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { TestDaemon } from '../test/support/daemon.ts';
import { eventually } from '../test/support/eventually.ts';
import { ready, TestNetwork } from '../test/support/network.ts';
import { SseClient } from '../test/support/sse.ts';
import { fillGroup, knownAgent } from './support/filled-group.ts';
import { type BenchTable, quantile } from './table.ts';

const DAEMONS = 4;
const MEMBERS_EACH = 5;
const APPENDS = 100;
const DELIVERY_AIM_MS = 500;
const WRITTEN = 500;
const ENTRIES = 10_000;
const SYNC_AIM_MS = 5000;
/** Number of measured joining daemons. */
const JOINERS = 3;

interface Member {
  readonly daemon: TestDaemon;
  readonly aid: string;
}

function tool<T = object>(daemon: TestDaemon, name: string, args: object): Promise<T> {
  return daemon.call<T>('POST', '/mcp/call', { tool: name, args });
}

async function published(daemon: TestDaemon): Promise<string> {
  const aid = await daemon.newAgent();
  await daemon.call('POST', `/agents/${aid}/publish`);
  return aid;
}

/** Joins, and waits until the agent is a member. */
async function enter({ daemon, aid }: Member, group_id: string, link: string): Promise<void> {
  await eventually('the joining', async () => {
    const answer = await daemon.request('POST', '/mcp/call', { tool: 'group_join', args: { aid, link } });
    return answer.status === 200;
  });
  await eventually('the member', async () => {
    const { role } = await tool<{ role: string }>(daemon, 'group_head', { aid, group_id });
    return role === 'member';
  });
}

/** The unread count in an event, or 0 for other events. */
function unreadOf(data: unknown): number {
  const inner = typeof data === 'object' && data !== null && 'data' in data ? data.data : data;
  return typeof inner === 'object' && inner !== null && 'unread_count' in inner ? Number(inner.unread_count) : 0;
}

/** Milliseconds from a request to append to the event at each of the members. */
async function spread(author: Member, members: readonly Member[]): Promise<{ each: number[]; last: number[] }> {
  const { daemon, aid } = author;
  const { group_id, link } = await tool<{ group_id: string; link: string }>(daemon, 'group_create', { aid });
  for (const member of members) await enter(member, group_id, link);
  await eventually('all members are known', async () => {
    const { members: known } = await tool<{ members: object[] }>(daemon, 'group_members', { aid, group_id });
    return known.length === members.length + 1;
  });
  const arrivals = members.map(() => [] as number[]);
  const streams = await Promise.all(
    members.map(async (member, i) => {
      const url = `${member.daemon.api}/agents/${member.aid}/events?types=group.unread`;
      const stream = await SseClient.open(url);
      void stream
        .until(({ frames }) => {
          const unread = Math.max(0, ...frames.map(({ data }) => unreadOf(data)));
          while ((arrivals[i]?.length ?? unread) < unread) arrivals[i]?.push(performance.now());
          return unread >= APPENDS;
        })
        .catch(() => {});
      return stream;
    }),
  );
  const sent: number[] = [];
  for (let i = 0; i < APPENDS; i++) {
    sent.push(performance.now());
    await tool(daemon, 'group_append', { aid, group_id, body: Buffer.from(`entry ${i}`).toString('base64') });
    await delay(100);
  }
  await eventually('all events', () => arrivals.every((times) => times.length >= APPENDS));
  for (const stream of streams) stream.close();
  const each = sent.map((at, i) => arrivals.map((times) => (times[i] ?? Number.NaN) - at));
  return { each: each.flat(), last: each.map((times) => Math.max(...times)) };
}

/** Entries per second of one author, with sequential requests. */
async function written({ daemon, aid }: Member): Promise<number> {
  const { group_id } = await tool<{ group_id: string }>(daemon, 'group_create', { aid });
  const body = Buffer.from('x'.repeat(100)).toString('base64');
  const started = performance.now();
  for (let i = 0; i < WRITTEN; i++) await tool(daemon, 'group_append', { aid, group_id, body });
  return (WRITTEN / (performance.now() - started)) * 1000;
}

/** Milliseconds from the request to join until a new member has all entries. */
async function measureSync(root: TestDaemon): Promise<number[]> {
  const first = await TestDaemon.start({ bootstrap: [root.dhtAddress] });
  await ready(first);
  const agent = await knownAgent(first);
  await first.kill('SIGTERM');
  const { groupId: group_id, link } = fillGroup(first.dataDir, agent, ENTRIES);
  const bootstrap = [root.dhtAddress];
  const holder = await TestDaemon.start({ dataDir: first.dataDir, bootstrap });
  await ready(holder);
  await holder.call('POST', `/agents/${agent.aid}/publish`);
  const took: number[] = [];
  try {
    for (let i = 0; i < JOINERS; i++) {
      await using daemon = await TestDaemon.start({ bootstrap });
      await ready(daemon);
      const aid = await published(daemon);
      const started = performance.now();
      await enter({ daemon, aid }, group_id, link);
      const { entry_count } = await tool<{ entry_count: number }>(daemon, 'group_head', { aid, group_id });
      if (entry_count < ENTRIES) throw new Error(`only ${entry_count} entries`);
      took.push(performance.now() - started);
    }
  } finally {
    await holder.stop();
    await first.stop();
  }
  return took;
}

export async function run(): Promise<BenchTable> {
  await using network = await TestNetwork.start(DAEMONS + 1);
  const author = { daemon: network.at(0), aid: await published(network.at(0)) };
  const members: Member[] = [];
  for (let i = 0; i < DAEMONS * MEMBERS_EACH; i++) {
    const daemon = network.at(1 + (i % DAEMONS));
    members.push({ daemon, aid: await published(daemon) });
  }
  const { each, last } = await spread(author, members);
  const perSecond = await written(author);
  const took = await measureSync(network.at(0));
  const p95 = quantile(each, 0.95);
  const slowest = Math.max(...took);
  return {
    title: `Groups: ${members.length} members on ${DAEMONS} daemons, the author on another one`,
    rows: [
      { what: 'append to the event at a member, p50', value: quantile(each, 0.5), unit: 'ms' },
      {
        what: 'append to the event at a member, p95',
        value: p95,
        unit: 'ms',
        aim: `≤ ${DELIVERY_AIM_MS} ms`,
        ok: p95 <= DELIVERY_AIM_MS,
      },
      { what: 'append to the event at the last member, p95', value: quantile(last, 0.95), unit: 'ms' },
      { what: 'appended, sequential requests', value: perSecond, unit: 'entries/s' },
      {
        what: `new member has ${ENTRIES} entries, slowest of ${JOINERS}`,
        value: slowest,
        unit: 'ms',
        aim: `≤ ${SYNC_AIM_MS} ms`,
        ok: slowest <= SYNC_AIM_MS,
      },
    ],
  };
}

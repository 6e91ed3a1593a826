/**
 * Two daemons with a conversation and a group of a hundred thousand entries, compared with small ones on the same
 * daemons.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { TestDaemon } from '../test/support/daemon.ts';
import { eventually } from '../test/support/eventually.ts';
import { ready } from '../test/support/network.ts';
import { fillChat } from './support/filled-chat.ts';
import { fillGroup, type KnownAgent, knownAgent } from './support/filled-group.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const ENTRIES = 100_000;
const FEW = 5000;
/** Number of measurements of each operation. */
const TIMES = 100;
/** Maximum slowdown of an operation, compared with a small group or conversation. */
const AIM_RATIO = 2;
/** A page without a match scans 20,000 entries; in a small group it scans all of them. */
const SEARCH = 'group: read, dates without a hit';
const SEARCH_AIM_MS = 25;
/** Milliseconds between two checks whether a daemon responds. */
const LOOK_MS = 20;

interface Pair {
  readonly a: TestDaemon;
  readonly b: TestDaemon;
  readonly alice: KnownAgent;
  readonly bob: KnownAgent;
  readonly group: string;
  readonly link: string;
}

function tool<T = object>(daemon: TestDaemon, name: string, args: object): Promise<T> {
  return daemon.call<T>('POST', '/mcp/call', { tool: name, args });
}

async function friends(a: TestDaemon, b: TestDaemon, alice: string, bob: string): Promise<void> {
  await eventually('the request was sent', async () => {
    const answer = await a.request('POST', `/agents/${alice}/chat/request`, { peer: bob });
    return answer.status < 300;
  });
  await eventually('the request', async () => {
    const path = `/agents/${bob}/chat/contacts`;
    return (await b.call<{ in_pending: unknown[] }>('GET', path)).in_pending.length === 1;
  });
  await b.call('POST', `/agents/${bob}/chat/accept`, { peer: alice });
  await eventually('the answer', async () => {
    const path = `/agents/${alice}/chat/contacts`;
    return (await a.call<{ friends: unknown[] }>('GET', path)).friends.length === 1;
  });
}

/** Client operations, each at a later position in the data. */
function operations({ a, alice, bob, group }: Pair, entries: number): [string, (i: number) => Promise<unknown>][] {
  const aid = alice.aid;
  const chat = `/agents/${aid}/chat`;
  const place = (i: number): number => Math.floor((i / TIMES) * entries);
  const read = (i: number, filter: object): Promise<unknown> =>
    tool(a, 'group_read', { aid, group_id: group, after_seq: place(i), ...filter });
  const body = Buffer.from('x'.repeat(100)).toString('base64');
  return [
    ['chat: send', () => a.call('POST', `${chat}/send`, { peer: bob.aid, text: 'x'.repeat(100) })],
    ['chat: read 200', (i) => a.call('GET', `${chat}/peers/${bob.aid}?limit=200&after_seq=${place(i)}`)],
    ['chat: contacts', () => a.call('GET', `${chat}/contacts`)],
    ['chat: mark read', (i) => tool(a, 'chat_mark_read', { aid, peer: bob.aid, scanned_to: 1 + place(i) })],
    ['group: append', () => tool(a, 'group_append', { aid, group_id: group, body })],
    ['group: read 50', (i) => read(i, {})],
    ['group: read, kind', (i) => read(i, { kind: 'msg' })],
    ['group: read, author', (i) => read(i, { author: aid })],
    ['group: read, to', (i) => read(i, { to: aid })],
    [SEARCH, (i) => read(i, { since_ts: '2001-01-01T00:00:00Z', until_ts: '2001-01-02T00:00:00Z' })],
    ['group: list', () => tool(a, 'group_list', { aid })],
    ['group: head', () => tool(a, 'group_head', { aid, group_id: group })],
    ['group: mark read', (i) => tool(a, 'group_mark_read', { aid, group_id: group, seq: 1 + place(i) })],
  ];
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** The median time of each operation in both, alternating, so that other work affects both equally. */
async function measure(few: Pair, many: Pair): Promise<{ what: string; value: number; yardstick: number }[]> {
  const small = operations(few, FEW);
  const medians = [];
  for (const [n, [what, work]] of operations(many, ENTRIES).entries()) {
    const times: { large: number[]; small: number[] } = { large: [], small: [] };
    for (let i = 0; i < TIMES; i++) {
      times.large.push(await timed(() => work(i)));
      times.small.push(await timed(async () => small[n]?.[1](i)));
    }
    medians.push({ what, value: quantile(times.large, 0.5), yardstick: quantile(times.small, 0.5) });
  }
  return medians;
}

/** Maximum time without a response from a daemon during some work. */
async function longestSilence(daemon: TestDaemon, work: Promise<unknown>): Promise<number> {
  let longest = 0;
  const over = new AbortController();
  const looking = (async () => {
    while (!over.signal.aborted) {
      longest = Math.max(longest, await timed(() => daemon.call('GET', '/health')));
      await delay(LOOK_MS);
    }
  })();
  await work.finally(() => over.abort());
  await looking;
  return longest;
}

/** Two friends on two daemons, with a group and `entries` entries in both. */
async function filled(a: TestDaemon, b: TestDaemon, entries: number): Promise<Pair> {
  const [alice, bob] = [await knownAgent(a), await knownAgent(b)];
  await friends(a, b, alice.aid, bob.aid);
  await a.kill('SIGTERM');
  await b.kill('SIGTERM');
  fillChat(a.dataDir, alice.aid, bob.aid, entries, 'received');
  fillChat(b.dataDir, bob.aid, alice.aid, entries, 'sent');
  const { groupId: group, link } = fillGroup(a.dataDir, alice, entries);
  const back = await TestDaemon.start({ dataDir: a.dataDir });
  const peer = await TestDaemon.start({ dataDir: b.dataDir, bootstrap: [back.dhtAddress] });
  await ready(peer);
  await back.call('POST', `/agents/${alice.aid}/publish`);
  await peer.call('POST', `/agents/${bob.aid}/publish`);
  return { a: back, b: peer, alice, bob, group, link };
}

export async function run(): Promise<BenchTable> {
  const [first, second] = [await TestDaemon.start(), await TestDaemon.start()];
  await first.kill('SIGTERM');
  const empty = await timed(async () => (await TestDaemon.start({ dataDir: first.dataDir })).kill('SIGTERM'));
  const root = await TestDaemon.start({ dataDir: first.dataDir });
  await second.kill('SIGTERM');
  const other = await TestDaemon.start({ dataDir: second.dataDir, bootstrap: [root.dhtAddress] });
  const few = await filled(root, other, FEW);
  const many = await filled(few.a, few.b, ENTRIES);
  const medians = await measure({ ...few, a: many.a, b: many.b }, many);

  const { a, b, bob, alice, group, link } = many;
  const enter = async (): Promise<void> => {
    await tool(b, 'group_join', { aid: bob.aid, link });
    for (;;) {
      const { role } = await tool<{ role: string }>(b, 'group_head', { aid: bob.aid, group_id: group });
      if (role === 'member') return;
      await delay(LOOK_MS);
    }
  };
  const joining = timed(enter);
  const [silenceB, silenceA] = await Promise.all([longestSilence(b, joining), longestSilence(a, joining)]);
  const took = await joining;
  const again = await timed(() => tool(b, 'group_sync', { aid: bob.aid, group_id: group, peer_aid: alice.aid }));
  await a.kill('SIGTERM');
  const restart = await timed(async () => (await TestDaemon.start({ dataDir: a.dataDir })).kill('SIGTERM'));
  await b.stop();
  await first.stop();
  await second.stop();
  const rows: BenchRow[] = medians.map(({ what, value, yardstick }) => {
    const ratio = value / yardstick;
    if (what === SEARCH)
      return { what, value, unit: 'ms', yardstick, aim: `≤ ${SEARCH_AIM_MS} ms`, ok: value <= SEARCH_AIM_MS };
    return { what, value, unit: 'ms', yardstick, ratio, aim: `≤ ${AIM_RATIO} ×`, ok: ratio <= AIM_RATIO };
  });
  return {
    title: `A conversation and a group of ${ENTRIES} entries; yardstick: ${FEW} entries; medians`,
    rows: [
      ...rows,
      { what: 'start and stop', value: restart, unit: 'ms', yardstick: empty, ratio: restart / empty },
      { what: 'group: new member in sync', value: took, unit: 'ms' },
      { what: 'longest silence of the new member meanwhile', value: silenceB, unit: 'ms' },
      { what: 'longest silence of the other side meanwhile', value: silenceA, unit: 'ms' },
      { what: 'group: compare two equal copies', value: again, unit: 'ms' },
    ],
  };
}

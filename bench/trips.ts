/**
 * Round trips of single steps between daemons on a switch that delays each direction by 100 ms: the elapsed time in
 * whole delays, so the speed of the machine does not matter. Needs namespaces, `/dev/net/tun` and `node:ffi`.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as pathOf } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LabDaemon } from '../test/support/lab/daemons.ts';
import { Internet } from '../test/support/lab/internet.ts';
import type { Machine } from '../test/support/lab/namespaces.ts';
import type { BenchRow, BenchTable } from './table.ts';

const SERVICE = fileURLToPath(new URL('support/plain-http.ts', import.meta.url));
/** One direction, milliseconds. Work of the machines is shorter. */
const ONE_WAY_MS = 100;
const NODES = 8;
/** Each machine is in a separate network, because nodes of one network count as one. */
const networkOf = (number: number): string => `${11 + number}.0.1`;
const HOST = 10;
const BOOTSTRAP = [`${networkOf(0)}.${HOST}:4121`];
/** Otherwise nodes of one switch find each other by multicast. */
const NO_MULTICAST = `table inet quiet {
  chain out { type filter hook output priority 0; ip daddr 224.0.0.0/4 drop; ip6 daddr ff02::fb drop
  }
}`;
const CONFIG = 'lan_tcp = false\n';
/** Time until the nodes stop asking the network, milliseconds. */
const REST_MS = 3_000;
const POLL_LIMIT_MS = 20_000;

/** A UDP socket at the QUIC port, in `/proc/net/udp`. */
const QUIC_SOCKET = /:101A /;

interface Party {
  readonly machine: Machine;
  daemon: LabDaemon;
}

const rows: BenchRow[] = [];

/** Adds a row: round trips since a time, in halves. */
function row(what: string, startedAt: number, aim: number, endedAt = performance.now()): void {
  const value = Math.floor((endedAt - startedAt) / ONE_WAY_MS) / 2;
  console.error(`${what}: ${value} (${Math.round(endedAt - startedAt)} ms)`);
  rows.push({ what, value, unit: 'round trips', aim: `≤ ${aim}`, ok: value <= aim });
}

async function measure(what: string, aim: number, work: () => Promise<unknown>): Promise<void> {
  const startedAt = performance.now();
  await work();
  row(what, startedAt, aim);
}

function tool<T = object>({ daemon }: Party, name: string, args: object): Promise<T> {
  return daemon.call<T>('POST', '/mcp/call', { tool: name, args });
}

const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, REST_MS));

/** Polls until something holds. @returns when it did */
async function until(what: string, ask: () => Promise<boolean>): Promise<number> {
  const limit = performance.now() + POLL_LIMIT_MS;
  while (performance.now() < limit) if (await ask()) return performance.now();
  throw new Error(`${what} did not happen`);
}

/** The first notification of an agent after this call. */
async function watch(party: Party, aid: string, type: string): Promise<() => Promise<number>> {
  const read = (after_seq: number) =>
    tool<{ events: { type: string }[]; last_seq: number }>(party, 'svc_events_poll', { aid, after_seq });
  const { last_seq } = await read(0);
  const poll = () => read(last_seq);
  return () => until(type, async () => (await poll()).events.some((event) => event.type === type));
}

/** Ends a node and starts it again while another one calls it all the time. Counts from its bound UDP port. */
async function restart(
  party: Party,
  signal: 'SIGTERM' | 'SIGKILL',
  start: () => Promise<LabDaemon>,
  call: () => Promise<unknown>,
): Promise<void> {
  const what = signal === 'SIGTERM' ? 'restart until called again' : 'killed until called again';
  await call();
  await party.daemon.signal(signal);
  const calling = until(what, () =>
    call().then(
      () => true,
      () => false,
    ),
  );
  const starting = start();
  const isBound = async (): Promise<boolean> => QUIC_SOCKET.test(await party.machine.run('cat', ['/proc/net/udp']));
  const boundAt = await until('its port', isBound);
  row(what, boundAt, 6, await calling);
  await party.daemon[Symbol.asyncDispose]();
  party.daemon = await starting;
}

export async function run(): Promise<BenchTable> {
  await using internet = await Internet.open({ slowness: { delayMs: ONE_WAY_MS, loss: 0 } });
  const nodes: Party[] = [];
  let count = 0;
  const start = async (name: string, options: object): Promise<Party> => {
    const isFirst = count === 0;
    const machine = await internet.publicMachine(name, [HOST + count], networkOf(count++));
    await machine.nft(NO_MULTICAST);
    const daemon = await LabDaemon.start(machine, isFirst ? [] : BOOTSTRAP, CONFIG, options);
    await daemon.until('the network', ({ network_ready }) => network_ready || isFirst);
    return { machine, daemon };
  };
  await using stack = new AsyncDisposableStack();
  const join = async (name: string, options = {}): Promise<Party> => {
    const party = await start(name, options);
    stack.defer(() => party.daemon[Symbol.asyncDispose]());
    return party;
  };
  const dataDir = mkdtempSync(pathOf(tmpdir(), 'svcd-trips-'));
  stack.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  for (let i = 0; i < NODES; i++) nodes.push(await join(`node-${i}`));
  const caller = await join('caller');
  const called = await join('called', { dataDir });
  await rest();

  const local = await caller.daemon.register();
  await measure('publish, first', 3, () => caller.daemon.call('POST', `/agents/${local}/publish`));
  await measure('publish again', 1, () => caller.daemon.call('POST', `/agents/${local}/publish`));
  const web = called.machine.fork(SERVICE);
  const [{ port } = { port: 0 }]: { port: number }[] = await once(web, 'message');
  const first = await called.daemon.serve(`127.0.0.1:${port}`);
  const second = await called.daemon.serve(`127.0.0.1:${port}`);
  await rest();
  const fetchOf = (aid: string) => caller.daemon.call('POST', `/fetch/${aid}`, { local_aid: local, path: '/' });
  await measure('first call, agent and node unknown', 3, () => fetchOf(first));
  await measure('call', 1, () => fetchOf(first));
  await measure('first call of a second agent on the node', 2, () => fetchOf(second));

  const startCalled = (): Promise<LabDaemon> => LabDaemon.start(called.machine, BOOTSTRAP, CONFIG, { dataDir });
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    await restart(called, signal, startCalled, () => fetchOf(first));
    await rest();
  }

  const service = { services: ['trips.echo'], name: 'trips', protocols: ['http'], brief: 'a service' };
  await called.daemon.call('POST', `/agents/${first}/services`, service);
  const discover = () => caller.daemon.call('POST', '/discover', { services: ['trips.echo'] });
  await measure('discover, first', 4, discover);
  await measure('discover, again', 2, discover);

  // A second pair without a connection, for messages.
  const sender = await join('sender');
  const receiver = await join('receiver');
  const [alice, bob] = [await sender.daemon.serve(), await receiver.daemon.serve()];
  await rest();
  const send = (to: string) =>
    sender.daemon.call('POST', `/agents/${alice}/mailbox/send`, {
      recipient: to,
      msg_type: 3,
      body_base64: Buffer.from('note').toString('base64'),
    });
  const large = () => sender.daemon.call('POST', `/fetch/${first}`, { local_aid: alice, path: '/1MB' });
  await measure('1 MB on a new connection', 7.5, large);
  await measure('1 MB again', 7.5, large);
  const noted = await watch(receiver, bob, 'mailbox.received');
  const sentAt = performance.now();
  const sending = send(bob);
  row('first note: event at the receiver', sentAt, 2.5, await noted());
  await sending;
  row('first note: answered', sentAt, 3);
  const again = await watch(receiver, bob, 'mailbox.received');
  const againAt = performance.now();
  const resending = send(bob);
  row('another note: event at the receiver', againAt, 0.5, await again());
  await resending;
  row('another note: answered', againAt, 1);

  const requested = await watch(receiver, bob, 'chat.invites');
  const requestedAt = performance.now();
  const requesting = sender.daemon.call('POST', `/agents/${alice}/chat/request`, { peer: bob });
  row('chat invitation: event at the receiver', requestedAt, 0.5, await requested());
  await requesting;
  row('chat invitation: answered', requestedAt, 1);

  const { group_id, link } = await tool<{ group_id: string; link: string }>(sender, 'group_create', { aid: alice });
  await measure('group: join', 3, async () => {
    await tool(receiver, 'group_join', { aid: bob, link });
    await until(
      'membership',
      async () => (await tool<{ role: string }>(receiver, 'group_head', { aid: bob, group_id })).role === 'member',
    );
  });
  await rest();
  const unread = await watch(receiver, bob, 'group.unread');
  const appendedAt = performance.now();
  await tool(sender, 'group_append', { aid: alice, group_id, body: Buffer.from('entry').toString('base64') });
  row('group entry: event at the receiver', appendedAt, 0.5, await unread());

  // Nodes that end without a word.
  const gone = await receiver.daemon.serve();
  const onDead = await called.daemon.serve();
  await receiver.daemon.signal('SIGKILL');
  await rest();
  await measure('note to an agent that is off', 3, () => send(gone));
  for (const { daemon } of nodes.slice(-3)) await daemon.signal('SIGKILL');
  await measure('resolve with 3 of 8 nodes dead', 2, () => sender.daemon.ask('POST', `/resolve/${onDead}`));
  const late = await sender.daemon.register();
  await measure('publish with 3 of 8 nodes dead', 4, () => sender.daemon.call('POST', `/agents/${late}/publish`));
  return { title: 'Round trips of single steps', rows };
}

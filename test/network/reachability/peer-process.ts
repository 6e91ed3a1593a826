/**
 * A node in its own process on a lab machine, with the reachability modules and the modules below. The test drives it
 * over IPC. It echoes on punched and relayed connections, and passes all others to the pool.
 */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { Address } from '../../../src/foundation/address.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import { systemClock as clock } from '../../../src/foundation/clock.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { silentLog as log } from '../../../src/foundation/log.ts';
import { PooledNodeRequests } from '../../../src/network/links/node-requests.ts';
import { PeerTable } from '../../../src/network/peers/peer-table.ts';
import { Helper, type ObservedNode } from '../../../src/network/reachability/helper.ts';
import { isPublicIpv6, publicIpv6SourceFor } from '../../../src/network/reachability/interface-addresses.ts';
import { PortLender } from '../../../src/network/reachability/port-lender.ts';
import { PunchGuard } from '../../../src/network/reachability/punch-guard.ts';
import { PunchInitiator } from '../../../src/network/reachability/punch-initiator.ts';
import { type Introduced, introducedWay, PunchResponder } from '../../../src/network/reachability/punch-responder.ts';
import { Relay } from '../../../src/network/reachability/relay.ts';
import {
  ATTEMPT_BYTES,
  decodeHelperReply,
  decodeIntroduction,
  decodeIntroductionAnswer,
  encodeHelperRequest,
  encodeIntroduction,
  encodeIntroductionAnswer,
} from '../../../src/network/reachability/signals.ts';
import { TurnServers } from '../../../src/network/reachability/turn/turn-servers.ts';
import { DhtEngine } from '../../../src/network/records/engine.ts';
import { networkTag } from '../../../src/network/records/node-address.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { BIRTHDAY_SPACING_MS } from '../../../src/network/transport/engine-connection.ts';
import { EngineClientPool } from '../../../src/network/transport/quic/client-pool.ts';
import { EngineLentPort } from '../../../src/network/transport/quic/lent-port.ts';
import { NativeQuicEndpoint } from '../../../src/network/transport/quic/native-endpoint.ts';
import type { Connection, Stream } from '../../../src/network/transport/types.ts';
import { hostileSockets } from './hostile-relay.ts';

/** The keys and addresses of a node for the test. */
export interface PeerAddress {
  readonly key: string;
  readonly quic: Address;
  readonly dht: Address;
}

export type PeerCommand =
  /** Connects to its helpers, and detects its NAT. */
  | { readonly do: 'join'; readonly helpers: readonly PeerAddress[] }
  /** Calls another node in up to `tries` attempts, and sends `bytes` in both directions. */
  | {
      readonly do: 'call';
      readonly key: string;
      readonly by: 'punch' | 'relay' | 'ipv6';
      /** The IPv6 address of the other node; null without IPv6. */
      readonly ipv6: string | null;
      readonly tries: number;
      readonly bytes: number;
    }
  /** Acts as a malicious helper: introduces callers at a host `times` times, many callers or one. */
  | {
      readonly do: 'lie';
      readonly to: string;
      readonly host: string;
      readonly times: number;
      readonly of: 'many' | 'one';
    }
  /** Acts as a malicious caller: `times` times, claims to its helper that it listens at a host. */
  | { readonly do: 'demand'; readonly of: string; readonly host: string; readonly times: number }
  /** Returns the counters of its relay. */
  | { readonly do: 'use' };

export interface PeerReply {
  readonly key?: string;
  readonly quicPort?: number;
  /** Its public IPv6 address; null without IPv6. */
  readonly ipv6?: string | null;
  readonly dhtPort?: number;
  readonly mapping?: string;
  readonly seenAt?: Address;
  /** Milliseconds until the connection was open. */
  readonly ms?: number;
  readonly outbound?: boolean;
  readonly kind?: string;
  readonly echoed?: number;
  readonly relayed?: number;
  readonly dropped?: number;
  readonly outcomes?: readonly string[];
  readonly error?: string;
}

/**
 * `opens` is `no` in the control test, which shows that nothing gets through without open ports. `relays` can be
 * `hostile`.
 */
const [, , host = '0.0.0.0', opens = 'yes', relays = 'fair'] = process.argv;
const FIRST_BYTE = Buffer.from('!');
const key = KeyPair.generate();
const endpoint = new NativeQuicEndpoint({ key, host, port: 0 }, { log, clock });
const own = new Set(
  Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address)),
);
const isOwnHost = (address: string): boolean => own.has(address);
const engine = new DhtEngine(
  { host: host.includes(':') ? '0.0.0.0' : host, port: 0, tag: networkTag('lab') },
  { clock, health: new PeerHealth({ clock }), isOwnHost, sourceTo: () => null },
);

let takePooled: (connection: Connection) => void = () => {};
const pool = new PeerTable(
  { nodeKey: key.publicKey, network: 'lab' },
  {
    endpoint: { dial: (...args) => endpoint.dial(...args), onConnection: (handler) => (takePooled = handler) },
    clock,
    log,
  },
);
const requests = new PooledNodeRequests({ pool, clock });

function echo(connection: Connection): void {
  connection.onStream((stream) => void stream.on('error', () => {}).pipe(stream));
}

endpoint.onConnection((connection) => {
  const { kind } = connection.path;
  if (kind === 'punched' || kind === 'relay') echo(connection);
  else takePooled(connection);
});

function adopt(introduced: Introduced): Connection {
  const { native, outbound } = introduced;
  const connection = endpoint.adopt(native, { outbound, way: introducedWay(introduced) });
  if (outbound) echo(connection);
  return connection;
}

async function firstStream(connection: Connection): Promise<Stream> {
  const stream = await connection.openStream();
  stream.on('error', () => {});
  stream.write(FIRST_BYTE);
  await once(stream, 'data');
  return stream;
}

let helpers: readonly ObservedNode[] = [];
let observers: readonly Address[] = [];
const lender = new PortLender({
  clock,
  listen: (options) => new EngineLentPort(options, endpoint.parts, clock),
  openPort: (family) => {
    const port = engine.openPort(family);
    if (opens === 'yes') return port;
    return {
      port: port.port,
      seenBy: (node) => port.seenBy(node),
      send: async () => {},
      waitForDatagram: (...args) => port.waitForDatagram(...args),
      handOver: () => port.handOver(),
      close: () => port.close(),
    };
  },
  observers: () => observers,
  isOwnHost,
  natUnchangedSince: () => 0,
});
const clients = new EngineClientPool(() => endpoint.parts, { clock });
const guard = new PunchGuard(clock, pool.known);
const turn = new TurnServers([], clock, log);
const common = { turn, lender, pool: clients, guard, random: Math.random };
const called = new PunchResponder({
  ...common,
  log,
  ownIpv6: publicIpv6SourceFor,
  isHelper: (nodeKey) => helpers.some((helper) => toHex(helper.nodeKey) === toHex(nodeKey)),
  mayCall: () => true,
  mayRelay: () => true,
  accept: (introduced) => {
    const connection = adopt(introduced);
    if (introduced.outbound) firstStream(connection).catch(() => {});
  },
  dial: async (address, nodeKey, source) => {
    const connection = await endpoint.dial(address, nodeKey, { way: { kind: 'punched', source } });
    echo(connection);
    await firstStream(connection);
  },
});
const caller = new PunchInitiator({
  ...common,
  clock,
  request: (helper, body, signal) => requests.request('signal', helper, body, signal === undefined ? {} : { signal }),
  dial: async (address, nodeKey, { kind, source, timeoutMs }) =>
    await endpoint.dial(address, nodeKey, { timeoutMs, way: { kind, source } }),
  ownIpv6: async (to) => {
    const from = await publicIpv6SourceFor(to);
    return from === null ? null : { host: from, port: await endpoint.ipv6DialPort() };
  },
  adopt,
});
const plainSocket = () => engine.plainSocket();
const relay = new Relay(
  {},
  { clock, log, createSocket: relays === 'fair' ? plainSocket : hostileSockets(plainSocket) },
);
const helper = new Helper({
  clock,
  known: pool.known,
  canReach: () => Promise.reject(new Error('this node dials no one back')),
  relay,
  isReached: () => true,
  tlsPorts: () => [],
  observedAddress: (nodeKey) => pool.current(nodeKey)?.connection.path.remote ?? null,
  request: (nodeKey, body) => {
    const at = pool.current(nodeKey)?.connection.path.remote ?? { host: '', port: 0 };
    return requests.request('signal', { nodeKey, address: at }, body);
  },
});
requests.onRequest('record', () => Promise.reject(new Error('this node stores no records')));
requests.onRequest('signal', async (body, { nodeKey, path }) => {
  const from = { nodeKey, address: path.remote };
  const introduction = decodeIntroduction(body);
  if (introduction === null) return await helper.answer(body, from);
  return encodeIntroductionAnswer(await called.answer(introduction, from));
});

async function join(nodes: readonly PeerAddress[]): Promise<PeerReply> {
  helpers = nodes.map((node) => ({ nodeKey: new Uint8Array(Buffer.from(node.key, 'hex')), address: node.quic }));
  observers = nodes.map(({ dht }) => dht);
  const seen = await Promise.all(
    helpers.map(async (node) =>
      decodeHelperReply(await requests.request('signal', node, encodeHelperRequest({ kind: 'hello' }))),
    ),
  );
  const seenAt = seen[0]?.seenAt;
  if (seenAt === undefined) throw new Error('no helper answers');
  return { seenAt, mapping: await lender.detectMapping() };
}

async function punch(nodeKey: Uint8Array, tries: number): Promise<Connection> {
  for (let round = 1; ; round++) {
    try {
      return await caller.punch(nodeKey, helpers);
    } catch (error) {
      if (round >= tries) throw error;
      await delay(BIRTHDAY_SPACING_MS);
    }
  }
}

async function call({ key: hex, by, ipv6, tries, bytes }: Extract<PeerCommand, { do: 'call' }>): Promise<PeerReply> {
  const nodeKey = new Uint8Array(Buffer.from(hex, 'hex'));
  const [first] = helpers;
  if (first === undefined) throw new Error('no helpers');
  const began = performance.now();
  const dial = async (): Promise<Connection> => {
    if (by === 'relay') return await caller.relay(nodeKey, first);
    if (by === 'punch') return await punch(nodeKey, tries);
    return await caller.punchOverIpv6(nodeKey, first, { host: ipv6 ?? '', port: 1 });
  };
  const connection = await dial();
  const stream = await firstStream(connection);
  const ms = performance.now() - began;
  let echoed = 0;
  const sent = randomBytes(bytes);
  stream.on('data', (chunk: Buffer) => {
    if (!chunk.equals(sent.subarray(echoed, echoed + chunk.length))) stream.destroy(new Error('the echo differs'));
    echoed += chunk.length;
  });
  stream.end(sent);
  await once(stream, 'end');
  connection.close();
  return { ms, echoed, outbound: connection.outbound, kind: connection.path.kind };
}

async function lie({ to, host: victim, times, of }: Extract<PeerCommand, { do: 'lie' }>): Promise<PeerReply> {
  const nodeKey = new Uint8Array(Buffer.from(to, 'hex'));
  const address = pool.current(nodeKey)?.connection.path.remote;
  if (address === undefined) throw new Error('the node is not connected');
  const outcomes = new Set<string>();
  const one = KeyPair.generate().publicKey;
  for (let i = 0; i < times; i++) {
    const mapping = i % 2 === 0 ? 'cone' : 'symmetric';
    const introduction = encodeIntroduction({
      caller: of === 'one' ? one : KeyPair.generate().publicKey,
      attempt: new Uint8Array(ATTEMPT_BYTES),
      means: 'punch',
      mapping,
      seenAt: { host: victim, port: 2000 + i },
      listensAt: null,
      needsFullHops: false,
      relay: null,
    });
    const answer = decodeIntroductionAnswer(await requests.request('signal', { nodeKey, address }, introduction));
    outcomes.add(answer?.outcome ?? 'none');
  }
  return { outcomes: [...outcomes].sort() };
}

async function demand({ of, host: victim, times }: Extract<PeerCommand, { do: 'demand' }>): Promise<PeerReply> {
  const to = new Uint8Array(Buffer.from(of, 'hex'));
  const [first] = helpers;
  if (first === undefined) throw new Error('no helpers');
  const outcomes = new Set<string>();
  for (let i = 0; i < times; i++) {
    const attempt = new Uint8Array(ATTEMPT_BYTES).fill(i);
    const listensAt = { host: victim, port: 2000 + i };
    const mapping = i % 2 === 0 ? 'symmetric' : 'cone';
    const means = isPublicIpv6(listensAt) ? 'ipv6' : 'listening';
    const request = { kind: 'introduce', to, attempt, means, mapping, listensAt, needsFullHops: true } as const;
    const reply = decodeHelperReply(await requests.request('signal', first, encodeHelperRequest(request)));
    outcomes.add(reply?.called?.outcome ?? 'none');
  }
  return { outcomes: [...outcomes].sort() };
}

async function obey(command: PeerCommand): Promise<PeerReply> {
  switch (command.do) {
    case 'join':
      return await join(command.helpers);
    case 'call':
      return await call(command);
    case 'lie':
      return await lie(command);
    case 'demand':
      return await demand(command);
    case 'use':
      return { relayed: relay.usage.bytes, dropped: relay.usage.dropped };
  }
}

process.on('message', (command: PeerCommand) => {
  obey(command).then(
    (reply) => process.send?.(reply),
    (error: unknown) => process.send?.({ error: error instanceof Error ? (error.stack ?? error.message) : 'unknown' }),
  );
});
process.once('disconnect', () => process.exit(0));
await engine.start();
await endpoint.start();
await pool.start();
process.send?.({
  key: toHex(key.publicKey),
  quicPort: endpoint.address.port,
  dhtPort: engine.address.port,
  ipv6: [...own].find((one) => isPublicIpv6({ host: one })) ?? null,
});

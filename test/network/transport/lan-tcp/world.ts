/** LAN peers with real local TCP connections and a QUIC connection in memory. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { type Clock, systemClock } from '../../../../src/foundation/clock.ts';
import {
  type AgreementAnswer,
  type AgreementRequest,
  type ConnectionSeals,
  connectionSeals,
  decodeAnswer,
  decodeRequest,
  encodeAnswer,
  encodeRequest,
  FrameOpener,
  FrameWriter,
} from '../../../../src/network/transport/lan-tcp/greeting.ts';
import { LanTcp } from '../../../../src/network/transport/lan-tcp/lan-tcp.ts';
import { LanTcpConnection } from '../../../../src/network/transport/lan-tcp/lan-tcp-connection.ts';
import type { Stream, UpgradeCaller, UpgradePeer, UpgradeState } from '../../../../src/network/transport/types.ts';
import { eventually } from '../../../support/eventually.ts';
import { MemoryNetwork } from '../../../support/memory-network.ts';
import { connectedPair, type Harness, inbox, type Pair, type StreamPair } from '../world.ts';

export const HOST = '127.0.0.1';
/** File descriptors of a process without a tight limit. */
export const MANY = 65_536;

const network = new MemoryNetwork({ clock: systemClock });
const memory: Harness = {
  create: (key, options) => network.endpoint({ publicKey: key.publicKey, ...options }),
  silentAddress: async () => ({ host: HOST, port: network.freePort() }),
};

/** Two nodes with a QUIC connection in memory. */
export async function quicPair(t: TestContext): Promise<Pair> {
  return await connectedPair(t, memory);
}

export function newUpgradeState(): UpgradeState {
  return { sent: 0, received: 0, isReady: false };
}

/** Both ends of a local TCP connection: first the connecting end, then the accepting one. */
export async function socketPair(t: TestContext): Promise<[Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }).listen(0, HOST);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const ours = connect({ host: HOST, port: address.port, allowHalfOpen: true, noDelay: true });
  const theirs = await accepted;
  server.close();
  for (const socket of [ours, theirs]) {
    // Users of the socket see its errors.
    socket.on('error', () => {});
    t.after(() => socket.destroy());
  }
  return [ours, theirs];
}

/** How the two ends of a connection seal their data. */
export function sealsOf(isSealed: boolean): [ConnectionSeals, ConnectionSeals] {
  const open = (): ConnectionSeals => ({ sealer: new FrameWriter(), opener: new FrameOpener() });
  if (!isSealed) return [open(), open()];
  const [secret, salt] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
  return [connectionSeals(secret, salt, 'connects'), connectionSeals(secret, salt, 'accepts')];
}

export interface ConnectionOptions {
  readonly isSealed: boolean;
  readonly clock?: Clock;
  readonly quic?: Pair;
}

/** One end of a connection, and its events. */
export interface End {
  readonly connection: LanTcpConnection;
  readonly socket: Socket;
  readonly state: UpgradeState;
  /** How often the connection became idle. */
  idle: number;
  /** How often the other end answered a pulse. */
  pulses: number;
  isClosed: boolean;
}

/** An end of a LAN TCP connection over a socket. */
export function connectionEnd(
  socket: Socket,
  seals: ConnectionSeals,
  { clock = systemClock, quic }: ConnectionOptions & { readonly quic: Pair },
  onStream: ((stream: Stream) => void) | null,
): End {
  const state = newUpgradeState();
  const lanTcp = new LanTcpConnection({
    clock,
    connection: onStream === null ? quic.client : quic.server,
    socket,
    seals,
    state,
    onStream,
    onPulse: onStream === null ? () => void end.pulses++ : null,
    onIdle: () => void end.idle++,
    onClosed: () => {
      end.isClosed = true;
    },
  });
  const end: End = { connection: lanTcp, socket, state, idle: 0, pulses: 0, isClosed: false };
  return end;
}

export interface ConnectionPair {
  readonly ours: End;
  readonly theirs: End;
  /** The next stream that the other end receives. */
  readonly incoming: () => Promise<Stream>;
}

/** A LAN TCP connection with both ends: ours opens streams. */
export async function connectionPair(t: TestContext, options: ConnectionOptions): Promise<ConnectionPair> {
  const all = { ...options, quic: options.quic ?? (await quicPair(t)) };
  const [local, remote] = await socketPair(t);
  const [seals, theirSeals] = sealsOf(options.isSealed);
  const streams = inbox<Stream>();
  return {
    ours: connectionEnd(local, seals, all, null),
    theirs: connectionEnd(remote, theirSeals, all, (stream) => streams.push(stream)),
    incoming: streams.next,
  };
}

/** Streams on separate connections, as a pair of nodes opens them. */
export async function connectionStreams(
  t: TestContext,
  isSealed: boolean,
  clock: Clock = systemClock,
): Promise<StreamPair> {
  const quic = await quicPair(t);
  const streams = inbox<Stream>();
  const opened: ConnectionPair[] = [];
  const openStream = async (): Promise<Stream> => {
    const pair = await connectionPair(t, { isSealed, quic, clock });
    opened.push(pair);
    void pair.incoming().then((stream) => streams.push(stream));
    return pair.ours.connection.begin();
  };
  void quic.client.closed.then(() => {
    for (const { ours } of opened) ours.connection.close();
  });
  void quic.server.closed.then(() => {
    for (const { theirs } of opened) theirs.connection.close();
  });
  return { ...pairOf(quic, openStream, () => opened.map(({ ours }) => ours.state)), incoming: streams.next };
}

function pairOf(
  { client, server }: Pair,
  openStream: () => Promise<Stream>,
  states: () => readonly UpgradeState[],
): Pick<StreamPair, 'client' | 'server'> {
  const sum = (key: 'sent' | 'received'): number => states().reduce((all, one) => all + one[key], 0);
  const stats = () => ({ bytesSent: sum('sent'), bytesReceived: sum('received'), packetsSent: 0, packetsLost: 0 });
  return { client: { openStream, stats, closed: client.closed, close: () => client.close() }, server };
}

interface LanPeersOptions {
  readonly clock?: Clock;
  /** Changes the answer of the other node in transit. */
  readonly change?: (answer: AgreementAnswer) => Promise<AgreementAnswer | null>;
}

/** Two nodes that may use LAN TCP next to their QUIC connection: the first asks, the second answers. */
export class LanPeers implements StreamPair {
  readonly quic: Pair;
  readonly local: LanTcp;
  readonly remote: LanTcp;
  readonly to: UpgradePeer;
  readonly from: UpgradeCaller;
  readonly incoming: () => Promise<Stream>;
  readonly client: StreamPair['client'];
  readonly server: StreamPair['server'];
  /** All requests, and below their answers. */
  readonly asked: AgreementRequest[] = [];
  readonly answered: (AgreementAnswer | null)[] = [];
  /** How often a first connection became ready. */
  ready = 0;

  constructor(quic: Pair, { clock = systemClock, change = async (answer) => answer }: LanPeersOptions = {}) {
    this.quic = quic;
    this.local = new LanTcp({ clock, descriptors: () => MANY });
    this.remote = new LanTcp({ clock, descriptors: () => MANY });
    const streams = inbox<Stream>();
    this.incoming = streams.next;
    this.from = { connection: quic.server, state: newUpgradeState(), onStream: (stream) => streams.push(stream) };
    this.to = {
      connection: quic.client,
      state: newUpgradeState(),
      request: async (body) => {
        const request = decodeRequest(body);
        if (request === null) throw new Error('malformed request');
        this.asked.push(request);
        const answer = await this.answer(request);
        this.answered.push(answer);
        const changed = answer === null ? null : await change(answer);
        return changed === null ? null : encodeAnswer(changed);
      },
      onReady: () => void this.ready++,
    };
    const { client, server } = pairOf(
      quic,
      () => this.stream(),
      () => [this.to.state],
    );
    this.client = client;
    this.server = server;
  }

  static async start(t: TestContext, options: LanPeersOptions = {}): Promise<LanPeers> {
    const peers = new LanPeers(await quicPair(t), options);
    t.after(() => peers.stop());
    return peers;
  }

  /** The answer of the second node. */
  async answer(request: AgreementRequest, from: UpgradeCaller = this.from): Promise<AgreementAnswer | null> {
    const body = await this.remote.answer(encodeRequest(request), from);
    return body === null ? null : decodeAnswer(body);
  }

  /** A stream over LAN TCP, as soon as a connection is ready. */
  async stream(): Promise<Stream> {
    return await eventually('a connection', () => this.local.open(this.to) ?? undefined);
  }

  async stop(): Promise<void> {
    await Promise.all([this.local.stop(), this.remote.stop()]);
  }
}

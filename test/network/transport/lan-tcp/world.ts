/** Neighbours with real TCP connections of this machine between them, beside a QUIC connection in memory. */
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
import { MemoryNetwork } from '../../../../src/network/transport/memory/memory-network.ts';
import type { Stream, UpgradeCaller, UpgradePeer, UpgradeState } from '../../../../src/network/transport/types.ts';
import { eventually } from '../../../support/eventually.ts';
import { connectedPair, type Harness, inbox, type Pair, type StreamPair } from '../world.ts';

export const HOST = '127.0.0.1';
/** Descriptors of a process that has as many as it needs. */
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

/** Both ends of a TCP connection of this machine: who connects, who accepts. */
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
    // What ends it is seen by who uses it.
    socket.on('error', () => {});
    t.after(() => socket.destroy());
  }
  return [ours, theirs];
}

/** How two ends of a channel seal what they send. */
export function sealsOf(isSealed: boolean): [ConnectionSeals, ConnectionSeals] {
  const open = (): ConnectionSeals => ({ sealer: new FrameWriter(), opener: new FrameOpener() });
  if (!isSealed) return [open(), open()];
  const [secret, salt] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
  return [connectionSeals(secret, salt, 'connects'), connectionSeals(secret, salt, 'accepts')];
}

export interface ChannelOptions {
  readonly isSealed: boolean;
  readonly clock?: Clock;
  readonly quic?: Pair;
}

/** One end of a channel, and what it has told. */
export interface End {
  readonly channel: LanTcpConnection;
  readonly socket: Socket;
  readonly state: UpgradeState;
  /** How often no stream was under way any more. */
  idle: number;
  /** How often the other end has given a sign of life. */
  pulses: number;
  isClosed: boolean;
}

/** The end of a channel at a socket. */
export function channelEnd(
  socket: Socket,
  seals: ConnectionSeals,
  { clock = systemClock, quic }: ChannelOptions & { readonly quic: Pair },
  onStream: ((stream: Stream) => void) | null,
): End {
  const state = newUpgradeState();
  const channel = new LanTcpConnection({
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
  const end: End = { channel, socket, state, idle: 0, pulses: 0, isClosed: false };
  return end;
}

export interface ChannelPair {
  readonly ours: End;
  readonly theirs: End;
  /** The next stream that the other end gets to see. */
  readonly incoming: () => Promise<Stream>;
}

/** A channel with its two ends: ours begins streams. */
export async function channelPair(t: TestContext, options: ChannelOptions): Promise<ChannelPair> {
  const all = { ...options, quic: options.quic ?? (await quicPair(t)) };
  const [near, far] = await socketPair(t);
  const [seals, theirSeals] = sealsOf(options.isSealed);
  const streams = inbox<Stream>();
  return {
    ours: channelEnd(near, seals, all, null),
    theirs: channelEnd(far, theirSeals, all, (stream) => streams.push(stream)),
    incoming: streams.next,
  };
}

/** Streams that have a channel each, as a pair of nodes opens them. */
export async function channelStreams(t: TestContext, isSealed: boolean): Promise<StreamPair> {
  const quic = await quicPair(t);
  const streams = inbox<Stream>();
  const opened: ChannelPair[] = [];
  const openStream = async (): Promise<Stream> => {
    const pair = await channelPair(t, { isSealed, quic });
    opened.push(pair);
    void pair.incoming().then((stream) => streams.push(stream));
    return pair.ours.channel.begin();
  };
  void quic.client.closed.then(() => {
    for (const { ours } of opened) ours.channel.close();
  });
  void quic.server.closed.then(() => {
    for (const { theirs } of opened) theirs.channel.close();
  });
  return { ...pairOf(quic, openStream, () => opened.map(({ ours }) => ours.state)), incoming: streams.next };
}

function pairOf(
  { client, server }: Pair,
  openStream: () => Promise<Stream>,
  besides: () => readonly UpgradeState[],
): Pick<StreamPair, 'client' | 'server'> {
  const sum = (key: 'sent' | 'received'): number => besides().reduce((all, one) => all + one[key], 0);
  const stats = () => ({ bytesSent: sum('sent'), bytesReceived: sum('received'), packetsSent: 0, packetsLost: 0 });
  return { client: { openStream, stats, closed: client.closed, close: () => client.close() }, server };
}

interface NeighbourOptions {
  readonly clock?: Clock;
  /** What the answer of the other node becomes on its way. */
  readonly change?: (answer: AgreementAnswer) => Promise<AgreementAnswer | null>;
}

/** Two nodes that may connect beside their QUIC connection: the first asks, the second answers. */
export class Neighbours implements StreamPair {
  readonly quic: Pair;
  readonly near: LanTcp;
  readonly far: LanTcp;
  readonly to: UpgradePeer;
  readonly from: UpgradeCaller;
  readonly incoming: () => Promise<Stream>;
  readonly client: StreamPair['client'];
  readonly server: StreamPair['server'];
  /** What was asked, and answered. */
  readonly asked: AgreementRequest[] = [];
  readonly answered: (AgreementAnswer | null)[] = [];
  /** How often a first channel was ready. */
  ready = 0;

  constructor(quic: Pair, { clock = systemClock, change = async (answer) => answer }: NeighbourOptions = {}) {
    this.quic = quic;
    this.near = new LanTcp({ clock, descriptors: () => MANY });
    this.far = new LanTcp({ clock, descriptors: () => MANY });
    const streams = inbox<Stream>();
    this.incoming = streams.next;
    this.from = { connection: quic.server, state: newUpgradeState(), onStream: (stream) => streams.push(stream) };
    this.to = {
      connection: quic.client,
      state: newUpgradeState(),
      request: async (body) => {
        const request = decodeRequest(body);
        if (request === null) throw new Error('a malformed request');
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

  static async start(t: TestContext, options: NeighbourOptions = {}): Promise<Neighbours> {
    const neighbours = new Neighbours(await quicPair(t), options);
    t.after(() => neighbours.stop());
    return neighbours;
  }

  /** The response of the second node. */
  async answer(request: AgreementRequest, from: UpgradeCaller = this.from): Promise<AgreementAnswer | null> {
    const body = await this.far.answer(encodeRequest(request), from);
    return body === null ? null : decodeAnswer(body);
  }

  /** A stream on a channel, as soon as one is ready. */
  async stream(): Promise<Stream> {
    return await eventually('a channel', () => this.near.open(this.to) ?? undefined);
  }

  async stop(): Promise<void> {
    await Promise.all([this.near.stop(), this.far.stop()]);
  }
}

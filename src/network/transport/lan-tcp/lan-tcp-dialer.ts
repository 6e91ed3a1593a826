/** The dialing side: TCP connections to one LAN peer, some of them opened in advance. */
import { connect, type Socket } from 'node:net';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { SilenceWatch } from '../../../foundation/stall.ts';
import type { Connection, Stream, UpgradeState } from '../types.ts';
import { type AgreementAnswer, type AgreementRequest, greet } from './greeting.ts';
import { LanTcpConnection } from './lan-tcp-connection.ts';

/** Idle connections that are opened in advance … */
const READY = 4;
/** … and idle connections that are kept after use. */
const MAX_READY = 16;
/** Connections to one LAN peer at one time. Further streams use the QUIC connection. */
export const MAX_CHANNELS = 256;
/** Delay before new connections replace a used one, so that they do not slow down its stream, milliseconds. */
const REFILL_MS = 5;
/** Interval at which an idle connection must send a pulse while others are in use, milliseconds … */
export const PULSE_MS = 3_000;
/**
 * … and must answer within this time. If it does not, or a new connection gets no answer, although QUIC works and
 * another new connection fails too, all connections are closed: a firewall may drop only TCP.
 */
export const PULSE_SILENCE_MS = 3_000;

/** Errors of a TCP connection attempt that something has answered. */
const REFUSALS: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ECONNRESET']);

/**
 * The purpose of a new connection: to carry streams, to check whether anything answers, or to close the used ones if it
 * fails.
 */
type Purpose = 'streams' | 'probe' | 'proof';

/** The number of connections, and its limit. */
export interface Made {
  channels: number;
  readonly most: number;
}

interface NearDialerOptions {
  readonly clock: Clock;
  readonly connection: Connection;
  readonly request: AgreementRequest;
  readonly answer: AgreementAnswer;
  readonly state: UpgradeState;
  /** Connections from this node to all LAN peers. */
  readonly made: Made;
  /** Checks whether the peer's process answers over QUIC. */
  readonly isThere: () => Promise<boolean>;
  /** The first connection is open. */
  readonly onReady: () => void;
  /** New connections fail. Streams on the existing ones continue. */
  readonly onFailed: () => void;
  /** After that the last connection has closed, or the dialer was stopped. */
  readonly onOver: () => void;
}

export class LanTcpDialer {
  readonly #options: NearDialerOptions;
  readonly #channels = new Set<LanTcpConnection>();
  readonly #ready: LanTcpConnection[] = [];
  readonly #dialling = new Set<Socket>();
  #refill: Timer | null = null;
  readonly #pulses: RepeatingTask;
  /** The connection that must answer a pulse, and its timeout. */
  #awaited: { readonly channel: LanTcpConnection; readonly watch: SilenceWatch } | null = null;
  /** A check is running whether TCP still works. */
  #isDoubting = false;
  #isFailed = false;
  #isStopped = false;
  #wasReady = false;

  constructor(options: NearDialerOptions) {
    this.#options = options;
    const { clock } = options;
    this.#pulses = every(clock, { periodMs: PULSE_MS, onError: () => this.stop() }, () => this.#pulse());
    this.#fill();
  }

  /** A new stream, or null if no connection is idle. */
  take(): Stream | null {
    const channel = this.#ready.pop();
    this.#noteReady();
    if (this.#ready.length < READY) this.#refill ??= this.#options.clock.after(REFILL_MS, () => this.#fill());
    return channel?.begin() ?? null;
  }

  /** Closes all connections and their streams. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#refill?.cancel();
    this.#pulses.stop();
    this.#noteAlive();
    for (const channel of this.#channels) channel.close();
    for (const socket of this.#dialling) socket.destroy();
    this.#options.onOver();
  }

  /** Connections with an open stream. */
  get #inUse(): number {
    return this.#channels.size - this.#ready.length;
  }

  #fill(): void {
    this.#refill = null;
    while (
      !this.#isFailed &&
      !this.#isStopped &&
      this.#ready.length + this.#dialling.size < READY &&
      this.#channels.size + this.#dialling.size < MAX_CHANNELS &&
      this.#options.made.channels < this.#options.made.most
    )
      this.#dial('streams');
  }

  #dial(purpose: Purpose): void {
    const { clock, connection, request, answer, state } = this.#options;
    this.#options.made.channels++;
    const socket = connect({ host: request.host, port: answer.port, noDelay: true, allowHalfOpen: true });
    this.#dialling.add(socket);
    let isAnswered = false;
    socket.on('end', () => {
      isAnswered = true;
    });
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      isAnswered = REFUSALS.has(code ?? '');
    });
    socket.on('close', () => {
      this.#options.made.channels--;
      if (!this.#dialling.delete(socket)) return;
      if (purpose === 'proof') this.#isDoubting = false;
      if (this.#isStopped) return;
      const isSilent = !isAnswered && socket.bytesRead === 0;
      if (purpose === 'proof') this.#lose();
      else if (isSilent && this.#inUse > 0) this.#beginDoubt();
      else if (purpose === 'streams') this.#fail();
    });
    greet(socket, { ...request, name: answer.name }, clock, (seals, rest) => {
      this.#dialling.delete(socket);
      if (purpose === 'proof') this.#isDoubting = false;
      const channel: LanTcpConnection = new LanTcpConnection({
        clock,
        connection,
        socket,
        seals,
        state,
        onStream: null,
        onPulse: () => this.#noteAlive(),
        onIdle: () => this.#rest(channel),
        onClosed: () => this.#closed(channel),
      });
      this.#channels.add(channel);
      // It was only a test: the number of idle connections does not grow.
      if (purpose === 'probe') channel.retire();
      else this.#rest(channel);
      if (rest.length > 0) channel.feed(rest);
    });
  }

  #rest(channel: LanTcpConnection): void {
    if (this.#isFailed || this.#isStopped || this.#ready.length >= MAX_READY) return channel.retire();
    this.#ready.push(channel);
    this.#options.state.isReady = true;
    if (this.#wasReady) return;
    this.#wasReady = true;
    this.#options.onReady();
  }

  #noteReady(): void {
    this.#options.state.isReady = this.#ready.length > 0;
  }

  #pulse(): void {
    // protocol-lan.md, step 11
    if (this.#inUse === 0 || this.#awaited !== null || this.#isDoubting) return;
    // The connection that was idle longest is most similar to those in use.
    const [channel] = this.#ready;
    if (channel === undefined) {
      if (this.#dialling.size === 0) this.#dial('probe');
      return;
    }
    const watch = new SilenceWatch(this.#options.clock, PULSE_SILENCE_MS, () => this.#silent(channel));
    this.#awaited = { channel, watch };
    channel.pulse();
  }

  #noteAlive(): void {
    this.#awaited?.watch.stop();
    this.#awaited = null;
  }

  #silent(channel: LanTcpConnection): void {
    this.#noteAlive();
    const at = this.#ready.indexOf(channel);
    if (at >= 0) this.#ready.splice(at, 1)[0]?.retire();
    this.#noteReady();
    this.#beginDoubt();
  }

  #beginDoubt(): void {
    if (this.#isDoubting) return;
    this.#isDoubting = true;
    detach(this.#doubt());
  }

  /**
   * A connection is silent. The process of the peer may be paused, or the reader of that connection. If QUIC gets an
   * answer and a new TCP connection right after that does not, something drops TCP.
   */
  async #doubt(): Promise<void> {
    // protocol-lan.md, step 12
    const isThere = await this.#options.isThere();
    if (isThere && !this.#isStopped) this.#dial('proof');
    else this.#isDoubting = false;
  }

  #closed(channel: LanTcpConnection): void {
    if (this.#awaited?.channel === channel) this.#noteAlive();
    this.#channels.delete(channel);
    const at = this.#ready.indexOf(channel);
    if (at >= 0) this.#ready.splice(at, 1);
    this.#noteReady();
    if (this.#isFailed && this.#channels.size === 0) this.stop();
  }

  /** TCP does not work. Streams continue over QUIC if they can. */
  #lose(): void {
    this.#fail();
    for (const channel of this.#channels) channel.close();
  }

  /** After a failure, no further connection is attempted. */
  #fail(): void {
    if (this.#isFailed) return;
    this.#isFailed = true;
    this.#refill?.cancel();
    for (const channel of this.#ready.splice(0)) channel.retire();
    this.#noteReady();
    this.#options.onFailed();
    if (this.#channels.size === 0) this.stop();
  }
}

/** The end that connects: channels to one neighbour, some of them ready before anybody needs them. */
import { connect, type Socket } from 'node:net';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { SilenceWatch } from '../../../foundation/stall.ts';
import type { Connection, Stream, UpgradeState } from '../types.ts';
import { type AgreementAnswer, type AgreementRequest, greet } from './greeting.ts';
import { LanTcpConnection } from './lan-tcp-connection.ts';

/** Channels that wait for their first or next stream: so many are made ahead … */
const READY = 4;
/** … and so many stay once they were used. */
const MAX_READY = 16;
/** Channels to one neighbour at one time; more streams go over the QUIC connection. */
export const MAX_CHANNELS = 256;
/** How long new channels wait, so that they are not in the way of what the last one was taken for: milliseconds. */
const REFILL_MS = 5;
/** While channels are in use, an idle one is asked for a sign of life so often, milliseconds … */
export const PULSE_MS = 3_000;
/** … and where none comes within this, or a new channel is not answered, but then QUIC is, and no further channel comes about, all are lost: a firewall may swallow TCP alone. */
export const PULSE_SILENCE_MS = 3_000;

/** How a TCP connection fails to which something has answered. */
const REFUSALS: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ECONNRESET']);

/** What a new channel is for: streams, to see whether something answers, or to lose those in use where it does not come about. */
type Purpose = 'streams' | 'probe' | 'proof';

/** How many there are, and how many there may be. */
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
  /** Channels that this node has made to all neighbours; counted here. */
  readonly made: Made;
  /** Whether the other process answers over QUIC. */
  readonly isThere: () => Promise<boolean>;
  /** The first channel is ready. */
  readonly onReady: () => void;
  /** No new channel comes about any more; those in use go on. */
  readonly onFailed: () => void;
  /** The last channel is gone after that, or it was stopped. */
  readonly onOver: () => void;
}

export class LanTcpDialer {
  readonly #options: NearDialerOptions;
  readonly #channels = new Set<LanTcpConnection>();
  readonly #ready: LanTcpConnection[] = [];
  readonly #dialling = new Set<Socket>();
  #refill: Timer | null = null;
  readonly #pulses: RepeatingTask;
  /** While a sign of life is awaited: on which channel, and what gives it up. */
  #awaited: { readonly channel: LanTcpConnection; readonly watch: SilenceWatch } | null = null;
  /** Whether it is being found out if anything gets through. */
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

  /** A new stream; null where no channel is ready. */
  take(): Stream | null {
    const channel = this.#ready.pop();
    this.#noteReady();
    if (this.#ready.length < READY) this.#refill ??= this.#options.clock.after(REFILL_MS, () => this.#fill());
    return channel?.begin() ?? null;
  }

  /** Ends all channels and what is under way on them. */
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

  /** Channels on which a stream is under way. */
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
      // There may be as many as there may be without it.
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
    // The one that has been idle for longest is most like those in use.
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
   * A channel is silent, old or new. The other process may stand still, or the reader of that channel may have paused: who
   * answers over QUIC, and not a new TCP connection right after that, is behind something that swallows TCP.
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

  /** Nothing gets through any more: what is under way goes on over QUIC, where it can. */
  #lose(): void {
    this.#fail();
    for (const channel of this.#channels) channel.close();
  }

  /** Where one does not come about, none is waited for any more. */
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

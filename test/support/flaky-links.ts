/**
 * Links over a seeded faulty network: it refuses, delays, cuts streams (data in transit is lost, and neither side knows
 * how much arrived), stalls in a partition, and delivers bytes of an old stream late, after bytes of a newer one.
 */
import { Duplex } from 'node:stream';
import type { Clock } from '../../src/foundation/clock.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { asLink } from '../../src/network/links/stream.ts';
import type { LinkNames, LinkStream, Links, OpenOptions, Purpose } from '../../src/network/links/types.ts';
import { StreamError } from '../../src/network/transport/stream.ts';
import { Random } from './random.ts';

export interface Trouble {
  /** Probability that a link cannot be opened. */
  readonly refuse: number;
  /** Probability that a stream is cut. */
  readonly cut: number;
  /** Largest delay of a chunk, milliseconds. */
  readonly delayMs: number;
}

export const CALM: Trouble = { refuse: 0, cut: 0, delayMs: 1 };

/** Timeout of a stalled connection, as in QUIC, milliseconds. */
const STALL_MS = 20_000;
/** A stream is cut within this number of bytes. */
const CUT_WITHIN_BYTES = 3000;

export class FlakyNetwork {
  readonly clock: Clock;
  readonly random: Random;
  trouble: Trouble = CALM;
  readonly #nodes = new Set<FlakyNode>();
  /** Partitioned pairs of nodes. */
  readonly #apart = new Set<string>();

  constructor(clock: Clock, seed: number) {
    this.clock = clock;
    this.random = new Random(seed);
  }

  node(name: string): FlakyNode {
    const node = new FlakyNode(this, name);
    this.#nodes.add(node);
    return node;
  }

  remove(node: FlakyNode): void {
    this.#nodes.delete(node);
  }

  /** The newest node that hosts an agent, as in a directory. */
  hostOf(aid: Aid): FlakyNode | undefined {
    return [...this.#nodes].findLast((node) => node.agents.has(aid));
  }

  part(a: FlakyNode, b: FlakyNode): void {
    this.#apart.add([a.name, b.name].sort().join(' '));
  }

  heal(): void {
    this.#apart.clear();
  }

  areApart(a: FlakyNode, b: FlakyNode): boolean {
    return this.#apart.has([a.name, b.name].sort().join(' '));
  }
}

/** One end of a stream. */
class FlakyStream extends Duplex {
  readonly #between: () => boolean;
  readonly #network: FlakyNetwork;
  #peer: FlakyStream | null = null;
  #arrival = 0;
  /** Cut: data in transit is lost. */
  #broken = false;
  #stalled = false;
  #bytesLeft: number;
  #underWay = 0;
  /** Writers that wait for the reader. */
  readonly #waiting: (() => void)[] = [];

  constructor(network: FlakyNetwork, between: () => boolean, bytesLeft: number) {
    super({ allowHalfOpen: true });
    this.#network = network;
    this.#between = between;
    this.#bytesLeft = bytesLeft;
  }

  join(peer: FlakyStream): void {
    this.#peer = peer;
  }

  override _read(): void {
    for (const goOn of this.#waiting.splice(0)) goOn();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#bytesLeft -= chunk.length;
    const { readableHighWaterMark: room } = this;
    const isFull = this.#underWay + (this.#peer?.readableLength ?? 0) >= room;
    this.#underWay += chunk.length;
    this.#later((peer) => {
      this.#underWay -= chunk.length;
      peer.push(chunk);
    });
    if (this.#bytesLeft < 0) this.cut();
    if (isFull && this.#peer !== null && !this.#peer.destroyed) this.#peer.#waiting.push(callback);
    else callback();
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#later((peer) => peer.push(null));
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    const peer = this.#peer;
    const whole = this.writableFinished && this.readableEnded;
    this.#broken = !whole;
    if (peer !== null && !peer.destroyed && !whole)
      this.#network.clock.after(0, () => peer.destroy(new StreamError('stream_reset')));
    callback(error);
  }

  /** Breaks both ends, now or a little later, with the data in transit. */
  cut(): void {
    const peer = this.#peer;
    const ms = this.#network.random.below(this.#network.trouble.delayMs + 1);
    this.#network.clock.after(ms, () => {
      this.destroy(new StreamError('stream_reset'));
      peer?.destroy(new StreamError('stream_reset'));
    });
  }

  #later(deliver: (peer: FlakyStream) => void): void {
    const { clock, random, trouble } = this.#network;
    this.#arrival = Math.max(this.#arrival, clock.now() + random.below(trouble.delayMs + 1));
    const peer = this.#peer;
    clock.after(this.#arrival - clock.now(), () => {
      // Data after a lost chunk never arrives: a stream has no gaps.
      if (!this.#stalled && !this.#between()) {
        this.#stalled = true;
        clock.after(STALL_MS, () => this.cut());
      }
      if (this.#stalled) return;
      if (peer !== null && !peer.destroyed && !this.#broken) deliver(peer);
    });
  }
}

export class FlakyNode implements Links {
  readonly name: string;
  readonly agents = new Set<Aid>();
  readonly #network: FlakyNetwork;
  readonly #handlers = new Map<Purpose, (stream: LinkStream) => void>();
  readonly #streams = new Set<FlakyStream>();
  #down = false;
  /** Number of links opened here. */
  opened = 0;
  /** The bytes that went with the header of the last link. */
  lastFirst: Uint8Array = new Uint8Array(0);
  /** True if older links are outdated because a faster path exists. */
  isQuicker = false;

  constructor(network: FlakyNetwork, name: string) {
    this.#network = network;
    this.name = name;
  }

  accept(purpose: Purpose, handler: (stream: LinkStream) => void): void {
    this.#handlers.set(purpose, handler);
  }

  reset(): void {}

  /** Crashes this node: all of its streams break, and it becomes unreachable. */
  crash(): void {
    this.#down = true;
    this.#network.remove(this);
    for (const stream of this.#streams) stream.cut();
  }

  async open(local: Aid, remote: Aid, purpose: Purpose, options: OpenOptions = {}): Promise<LinkStream> {
    const { clock, random, trouble } = this.#network;
    await new Promise<void>((resolve) => {
      clock.after(random.below(trouble.delayMs + 1), resolve);
    });
    if (options.signal?.aborted === true) throw new SvcError('cancelled');
    const other = this.#network.hostOf(remote);
    if (other === undefined || this.#down) throw new SvcError('resolve_failed');
    const passes = (): boolean => !this.#network.areApart(this, other) && !this.#down && !other.#down;
    if (!passes() || (other !== this && random.chance(trouble.refuse))) throw new SvcError('connect_failed');
    const handler = other.#handlers.get(purpose);
    if (handler === undefined) throw new SvcError('protocol_error');
    const limit =
      other !== this && random.chance(trouble.cut) ? random.below(CUT_WITHIN_BYTES) : Number.POSITIVE_INFINITY;
    const near = this.#stream(passes, limit);
    const far = other.#stream(passes, random.chance(0.5) ? limit : Number.POSITIVE_INFINITY);
    near.join(far);
    far.join(near);
    const nodeKey = other === this ? null : new Uint8Array(32);
    const names: LinkNames = { caller: local, called: remote, purpose, accessToken: undefined, nodeKey };
    const path = () => ({ kind: 'direct', remote: null, source: null, rttMs: 1 }) as const;
    this.opened++;
    clock.after(0, () => handler(asLink(far, names, path)));
    this.lastFirst = options.first?.bytes({ instance: '', isFresh: false }) ?? new Uint8Array(0);
    near.write(this.lastFirst);
    if (options.first?.isAll === true) near.end();
    const wasQuicker = this.isQuicker;
    return Object.assign(asLink(near, names, path), { isOutdated: () => this.isQuicker && !wasQuicker });
  }

  #stream(passes: () => boolean, bytes: number): FlakyStream {
    const stream = new FlakyStream(this.#network, passes, bytes);
    stream.on('error', () => {});
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
    return stream;
  }
}

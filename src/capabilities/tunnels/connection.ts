/**
 * One end of a tunnel connection. It joins a TCP connection with a link: bytes with back-pressure, an end of a direction as
 * an end, a reset as a reset. It keeps the bytes that the other end has not acknowledged, so it can continue on another
 * link: after its path is lost, on a better path, or on a lane. It is not a stream itself, which would cost more per byte
 * than all the rest.
 */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../foundation/clock.ts';
import type { SvcError } from '../../foundation/errors.ts';
import type { LruCache } from '../../foundation/lru-cache.ts';
import type { Quota, QuotaHolder, QuotaShare } from '../../foundation/quota.ts';
import { resetSocket } from '../../foundation/sockets.ts';
import { isLong, isLossyNode, LossWatch } from '../../network/links/loss-watch.ts';
import type { LinkPath, LinkStream } from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { StreamError } from '../../network/transport/stream.ts';
import { FrameReader, type FrameTaker, lastFrame, lossyFrame, outcomeOf, receivedFrame, writeData } from './frames.ts';
import { KeptBytes, MAX_KEPT_BYTES } from './kept-bytes.ts';

/** Received bytes are acknowledged after this many, bytes: much less than a sender may have unacknowledged … */
export const ACK_BYTES: number = 512 * 1024;
/** … and after this time, milliseconds. */
export const ACK_DELAY_MS = 100;
/** How long the first byte of the called side waits for the service's first bytes, so that both use one packet: milliseconds. */
export const HELD_MS = 1;
/** Acknowledgements that a full link takes. Later ones wait, so a peer that reads nothing cannot fill the memory. */
export const MAX_ACKS_WHEN_FULL = 256;
/** Received bytes without acknowledgement: the other side stops after the piece that exceeds what it may keep. */
const MAX_UNACKNOWLEDGED_BYTES: number = MAX_KEPT_BYTES + 256 * 1024;
/** Shorter pieces, on average, are joined before they go to the TCP connection, bytes: each write costs hundreds. */
const SHORT_BYTES = 4096;

/** Unacknowledged bytes on a long path at first. More would delay what follows them, such as the report of packet loss. */
const FIRST_WINDOW_BYTES: number = 64 * 1024;
/** An acknowledgement that takes two round trips and this much longer has waited in a queue, milliseconds … */
const QUEUE_MS: number = ACK_DELAY_MS + 50;
/** … and in a long queue if its delay is this many times longer. */
const LONG_QUEUE_TIMES = 2;

/** On a path that is slow for bulk data, requests a lane after this many bytes in both directions, and again after as many more. */
export const SLOW_PATH_BYTES: number = 1024 * 1024;

/** How long a connection waits for another link, milliseconds. */
export const RESUME_MS = 60_000;

/** The shared state of all connections of one side, and their reports. */
export interface ConnectionSide {
  readonly clock: Clock;
  /** Limits the kept bytes: `keptQuota`. */
  readonly kept: Quota;
  readonly acks: AckTurns;
  /** `lossyNodes`. */
  readonly lossy: LruCache<string, true>;
  /** A link was lost. False if the connection may not wait for another one. */
  lost(connection: TunnelConnection): boolean;
  /** The other side uses the new link. */
  resumed(connection: TunnelConnection): void;
  /** Packet loss slows one direction down. */
  slowed(connection: TunnelConnection, direction: 'sending' | 'receiving'): void;
  /** Reports its end, clean or not. Called once. */
  over(connection: TunnelConnection): void;
}

/** Receives the reports of a joined connection. */
export interface ConnectionObserver {
  /** Bytes from the TCP connection to the link. */
  sent?(bytes: number): void;
  /** Bytes from the link to the TCP connection. */
  received?(bytes: number): void;
  /** The called side could not connect. Both ends are reset. */
  refused?(failure: SvcError): void;
  /** The called side received bytes, sent none, and ended first. The TCP connection ends too. */
  unanswered?(): void;
  /** The TCP connection and the link are closed. Called once. */
  closed?(): void;
}

/** Sends the delayed acknowledgements of all connections, with one timer. */
export class AckTurns {
  readonly #clock: Clock;
  readonly #due = new Set<TunnelConnection>();
  #timer: Timer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(one: TunnelConnection): void {
    this.#due.add(one);
    this.#timer ??= this.#clock.after(ACK_DELAY_MS, () => this.#turn());
  }

  delete(one: TunnelConnection): void {
    this.#due.delete(one);
    if (this.#due.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #turn(): void {
    this.#timer = null;
    const due = [...this.#due];
    this.#due.clear();
    for (const one of due) one.acknowledge();
  }
}

const NOTHING: Buffer = Buffer.alloc(0);
/** Bytes of the outcome, before the first byte of the service. */
const STATUS_BYTES = 1;

export class TunnelConnection implements FrameTaker {
  /** The link with which it began: the names of both agents. */
  readonly first: LinkStream;
  readonly #side: ConnectionSide;
  readonly #kept: KeptBytes;
  /** Counts received bytes that wait for the TCP connection while this side waits for an acknowledgement. */
  readonly #waiting: QuotaShare;
  /** False if it ends with its link. */
  #keeps: boolean;
  #link: LinkStream | null = null;
  /** The previous link, until the other side uses the new one. */
  #old: LinkStream | null = null;
  /** The newest link, and its last known path. */
  #newest: LinkStream;
  #path: LinkPath;
  /** False until the other side has acknowledged its bytes on this link. */
  #isSynced = true;
  #reader = new FrameReader(this);
  /** Unacknowledged bytes that the link may have. Null until that matters. */
  #window: number | null = null;
  /** An offset whose acknowledgement is timed, and when it was sent. */
  #timed: { readonly offset: number; readonly at: number } | null = null;
  /** Exists while the TCP connection waits for the link. */
  #loss: LossWatch | null = null;
  /** The other side knows that packet loss slows us down. */
  #toldLossy = false;
  #socket: Socket | null = null;
  #observer: ConnectionObserver = {};
  #awaitsStatus = false;
  /** The number of moved bytes at which the path is checked again. */
  #lookAt = SLOW_PATH_BYTES;
  /** Received bytes are thrown away. */
  #discards = false;
  #sent = 0;
  /** Offset of the first byte that was sent on this link. */
  #linkFrom = 0;
  #endSent = false;
  /** Waits for the first bytes of the TCP connection. */
  #held: { readonly bytes: Buffer; readonly timer: Timer } | null = null;
  /** Bytes that the other side has acknowledged, and that we have acknowledged. An end counts as one more. */
  #acked = 0;
  #acknowledged = 0;
  #received = 0;
  #gotEnd = false;
  /** Acknowledgements since the link was full. */
  #acksWhenFull = 0;
  /** Pieces in the current chunk. */
  #came: Buffer[] = [];
  #isOver = false;

  /**
   * @param holder whose share of the kept bytes it uses
   * @param chunks bytes that the link has sent already
   */
  constructor(link: LinkStream, holder: QuotaHolder, side: ConnectionSide, chunks: readonly Buffer[] = []) {
    this.first = link;
    this.#side = side;
    this.#kept = new KeptBytes(side.kept, holder, () => this.#evicted());
    this.#waiting = side.kept.share(holder, () => this.destroy());
    this.#newest = link;
    this.#path = link.path();
    // A link on this daemon is never lost.
    this.#keeps = this.#path.kind !== 'local';
    for (const chunk of chunks) this.#keep(chunk);
    this.#use(link);
  }

  get destroyed(): boolean {
    return this.#isOver;
  }

  /** True while it has a link. */
  get isCarried(): boolean {
    return this.#link !== null;
  }

  /** True if it can continue on another link: it has all bytes that the other side may miss. */
  get isResumable(): boolean {
    return this.#keeps && !this.#isOver;
  }

  /** True if it could change to a better link. */
  get mayMove(): boolean {
    return this.isResumable && this.#isSynced;
  }

  /** The path of its link, or of the last one. */
  path(): LinkPath {
    if (!this.#newest.destroyed) this.#path = this.#newest.path();
    return this.#path;
  }

  /** Sends bytes before the TCP connection is joined: together with its first bytes, if the other side expects any. */
  write(bytes: Uint8Array): void {
    const copy = Buffer.from(bytes);
    if (this.#link === null || this.#link.readableLength === 0 || this.#held !== null)
      return this.#send(this.#withHeld(copy));
    this.#held = { bytes: copy, timer: this.#side.clock.after(HELD_MS, () => this.#sendHeld()) };
  }

  /** Sends last bytes, if no TCP connection will be joined. They end with the link. */
  end(bytes: Uint8Array): void {
    this.write(bytes);
    this.#end();
    this.#keeps = false;
    if (this.#link === null) this.destroy();
  }

  /** Reads received bytes and throws them away. */
  resume(): void {
    this.#discards = true;
    this.#link?.resume();
  }

  /**
   * Joins it with a TCP connection, which has no other use afterwards.
   * @param awaitsStatus true if the first received byte is the outcome of the called side
   */
  join(socket: Socket, observer: ConnectionObserver, awaitsStatus = false): void {
    this.#socket = socket;
    this.#observer = observer;
    this.#awaitsStatus = awaitsStatus;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      observer.sent?.(chunk.length);
      this.#send(this.#withHeld(chunk));
    });
    socket.on('drain', () => {
      this.#waiting.set(0);
      this.#link?.resume();
      if (this.#acknowledged < this.#has) this.#side.acks.add(this);
    });
    socket.on('end', () => this.#end());
    socket.on('error', () => this.destroy());
    socket.on('close', (hadError: boolean) => {
      if (hadError || !socket.readableEnded) this.destroy();
      if (this.#isOver) observer.closed?.();
    });
    if (this.#isOver) return resetSocket(socket);
    // Its bytes and its end may have been read early.
    if (socket.readableEnded) this.#end();
    this.#goOn();
    this.#link?.resume();
  }

  /** Continues on another link, which names this connection to the other side. */
  attach(link: LinkStream): void {
    // protocol-tunnels.md, step 11
    if (!this.isResumable) return void link.destroy();
    // The other side may still use the old one if the link between them was lost: its end would be the connection's end.
    if (this.#link !== null) {
      this.#old?.destroy();
      this.#old = this.#link;
    }
    this.#isSynced = false;
    this.#linkFrom = this.#sent;
    this.#newest = link;
    this.#toldLossy = false;
    this.#use(link);
    // The other side repeats what follows.
    this.#acknowledge(link, this.#has);
    if (this.#socket !== null || this.#discards) link.resume();
  }

  /** Resets both ends. */
  destroy(): void {
    if (this.#isOver) return;
    // After both ends, the TCP connection still takes the received bytes.
    const isWhole = this.#endSent && this.#gotEnd;
    const link = this.#link;
    this.#finish();
    link?.destroy();
    if (this.#socket !== null && !isWhole) resetSocket(this.#socket);
  }

  /** Tells the other side, which is the calling one, that packet loss slows this side down. */
  reportLoss(): void {
    if (this.#toldLossy || !this.#isSynced) return;
    this.#toldLossy = true;
    this.#link?.write(lossyFrame());
  }

  /** Acknowledges received bytes, even if the link is full: the other side may wait for that before it reads on. */
  acknowledge(): void {
    if (this.#link !== null && this.#acknowledged < this.#toAcknowledge && this.#mayAcknowledge(this.#link))
      this.#acknowledge(this.#link);
  }

  onData(piece: Buffer): void {
    if (this.#isOver) return;
    if (this.#gotEnd) return this.destroy();
    this.#received += piece.length;
    this.#came.push(piece);
  }

  onEnd(): void {
    if (this.#gotEnd) return this.destroy();
    this.#gotEnd = true;
  }

  onAck(received: number): void {
    // protocol-tunnels.md, step 7
    const link = this.#link;
    if (this.#isOver || link === null) return;
    if (received < this.#acked || received > this.#sentLength) return this.destroy();
    this.#acked = received;
    // Links on this daemon pass on the memory itself, which the other end may still read.
    const written = link.release === undefined ? 0 : this.#sent - link.writableLength;
    this.#kept.drop(received, { from: this.#linkFrom, to: written });
    if (!this.#isSynced) this.#sync(link);
    this.#adaptWindow(link);
    this.#watchLoss(link);
    this.#watchVolume(link);
    this.#goOn();
  }

  onLossy(): void {
    this.#side.slowed(this, 'receiving');
  }

  /** Received bytes, including the end. */
  get #has(): number {
    return this.#received + (this.#gotEnd ? 1 : 0);
  }

  /** Received bytes to acknowledge, without bytes that wait for the TCP connection. After the end, all bytes. */
  get #toAcknowledge(): number {
    const waiting = this.#socket?.writableNeedDrain === true && !this.#gotEnd ? this.#socket.writableLength : 0;
    return Math.max(this.#acknowledged, this.#has - waiting);
  }

  /** Sent bytes, including the end. */
  get #sentLength(): number {
    return this.#sent + (this.#endSent ? 1 : 0);
  }

  #use(link: LinkStream): void {
    this.#link = link;
    this.#loss = null;
    this.#window = null;
    this.#timed = null;
    this.#reader = new FrameReader(this);
    let error: unknown;
    // Nothing is read before `join` or `resume`.
    link.pause();
    link.on('error', (cause) => {
      error = cause;
    });
    link.on('data', (chunk: Buffer) => {
      if (this.#link === link) this.#take(link, chunk);
    });
    link.on('drain', () => {
      if (this.#acknowledged < this.#has) this.#side.acks.add(this);
      this.#goOn();
    });
    // The other side ends the link only after everything is acknowledged.
    link.on('end', () => {
      if (this.#link === link) this.destroy();
    });
    link.on('close', () => this.#closed(link, error));
    // It may have been reset right after its answer.
    if (link.destroyed) process.nextTick(() => this.#closed(link, link.errored));
  }

  #take(link: LinkStream, chunk: Buffer): void {
    const pieces: Buffer[] = [];
    this.#came = pieces;
    const ended = this.#gotEnd;
    const before = this.#received;
    try {
      this.#reader.feed(chunk);
    } catch {
      return this.destroy();
    }
    if (this.#isOver) return;
    this.#deliver(link, chunk, pieces, this.#received - before);
    if (this.#isOver) return;
    if (this.#gotEnd && !ended) {
      if (this.#awaitsStatus && this.#socket !== null) resetSocket(this.#socket);
      else this.#socket?.end();
      if (!this.#endSent && this.#sent > 0 && this.#received === STATUS_BYTES) this.#observer.unanswered?.();
      // Otherwise the acknowledgement goes with our own end, or a little later.
      if (this.#endSent) this.#acknowledge(link);
      else this.#side.acks.add(this);
    } else if (this.#toAcknowledge - this.#acknowledged >= ACK_BYTES && this.#mayAcknowledge(link))
      this.#acknowledge(link);
    else if (pieces.length > 0) this.#side.acks.add(this);
    this.#watchVolume(link);
    this.#checkWhole();
  }

  #deliver(link: LinkStream, chunk: Buffer, pieces: Buffer[], length: number): void {
    const socket = this.#socket;
    if (this.#awaitsStatus && pieces[0] !== undefined) {
      this.#takeStatus(pieces[0]);
      if (this.#isOver) return;
      length--;
      pieces[0] = pieces[0].subarray(1);
      if (pieces[0].length === 0) pieces.shift();
    }
    if (socket === null || pieces.length === 0) {
      link.release?.(chunk);
      return;
    }
    this.#observer.received?.(length);
    if (pieces.length > 1 && length < SHORT_BYTES * pieces.length) pieces = [Buffer.concat(pieces, length)];
    let left = pieces.length;
    const done = (error: Error | null | undefined): void => {
      left--;
      if (left === 0 && !error) link.release?.(chunk);
    };
    let wantsMore = true;
    for (const piece of pieces) wantsMore = socket.write(piece, done);
    if (!wantsMore && !this.#readsOn()) link.pause();
  }

  /**
   * True if nothing may be sent before an acknowledgement. It follows bytes that the TCP connection may not take before
   * it is read itself, as with an echo service. The bytes are read but not acknowledged, so the other side stops after
   * `MAX_KEPT_BYTES`: what follows are acknowledgements.
   */
  #readsOn(): boolean {
    const bytes = this.#socket?.writableLength ?? 0;
    return this.#isFull && this.#has - this.#acknowledged < MAX_UNACKNOWLEDGED_BYTES && this.#waiting.set(bytes);
  }

  #takeStatus(first: Buffer): void {
    this.#awaitsStatus = false;
    const failure = outcomeOf(first[0]);
    if (failure === null) return;
    this.#observer.refused?.(failure);
    this.destroy();
  }

  #withHeld(chunk: Buffer): Buffer {
    const held = this.#held;
    if (held === null) return chunk;
    this.#held = null;
    held.timer.cancel();
    return Buffer.concat([held.bytes, chunk]);
  }

  #sendHeld(): void {
    if (this.#held !== null) this.#send(this.#withHeld(NOTHING));
  }

  #send(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#keep(chunk);
    const link = this.#isSynced ? this.#link : null;
    if (link === null && !this.#keeps) return this.destroy();
    this.#timed ??= { offset: this.#sent, at: this.#side.clock.monotonic() };
    if (link !== null && this.#window === null && this.#sent - this.#acked > FIRST_WINDOW_BYTES) this.#openWindow(link);
    const isStalled = link === null || !writeData(link, chunk);
    if (!isStalled && !this.#isFull) return;
    this.#socket?.pause();
    if (link !== null && this.#readsOn()) link.resume();
  }

  #keep(chunk: Buffer): void {
    this.#sent += chunk.length;
    if (!this.#keeps || this.#kept.add(chunk)) return;
    // It continues and ends with its link: others may need the room more.
    this.#keeps = false;
    this.#kept.clear();
  }

  /** Another connection has evicted the kept bytes. */
  #evicted(): void {
    this.#keeps = false;
    if (this.#link === null || !this.#isSynced) this.destroy();
    else this.#goOn();
  }

  #end(): void {
    if (this.#isOver || this.#endSent) return;
    this.#sendHeld();
    this.#endSent = true;
    if (this.#isSynced) this.#link?.write(this.#acknowledged < this.#has ? this.#acknowledgedAndLast() : lastFrame());
  }

  #acknowledgedAndLast(): Buffer {
    this.#acknowledged = this.#toAcknowledge;
    return Buffer.concat([receivedFrame(this.#acknowledged), lastFrame()]);
  }

  /** The other side uses the link too: sends the bytes again that it does not have. */
  #sync(link: LinkStream): void {
    this.#isSynced = true;
    this.#old?.destroy();
    this.#old = null;
    for (const piece of this.#kept.after(this.#acked)) writeData(link, piece);
    if (this.#endSent && this.#acked <= this.#sent) link.write(lastFrame());
    // Otherwise each new link would bring more bytes for a TCP connection that takes none.
    if (this.#socket?.writableNeedDrain === true && !this.#readsOn()) link.pause();
    this.#side.resumed(this);
  }

  /** True if the other side must acknowledge before more is sent. */
  get #isFull(): boolean {
    const unacknowledged = this.#sent - this.#acked;
    if (this.#kept.isFull) return true;
    return unacknowledged >= (this.#window ?? MAX_KEPT_BYTES);
  }

  /** The first bytes beyond the first window follow. */
  #openWindow(link: LinkStream): void {
    this.#window = isLong(link) ? FIRST_WINDOW_BYTES : MAX_KEPT_BYTES;
    if (isLong(link) && isLossyNode(link, this.#side.lossy)) this.#side.slowed(this, 'sending');
  }

  /** Keeps the path busy and its queue short. */
  #adaptWindow(link: LinkStream): void {
    const timed = this.#timed;
    if (timed === null || this.#acked < timed.offset) return;
    this.#timed = null;
    if (this.#window === null || !isLong(link)) return;
    const tookMs = this.#side.clock.monotonic() - timed.at;
    const shortMs = 2 * link.path().rttMs + QUEUE_MS;
    if (tookMs <= shortMs) this.#window = Math.min(2 * this.#window, MAX_KEPT_BYTES);
    else if (tookMs > LONG_QUEUE_TIMES * shortMs) this.#window = Math.max(this.#window / 2, FIRST_WINDOW_BYTES);
  }

  #watchLoss(link: LinkStream): void {
    if (this.#socket?.isPaused() !== true || !this.#isSynced) {
      this.#loss = null;
      return;
    }
    this.#loss ??= new LossWatch(link, this.#side.lossy, this.#side.clock);
    if (this.#loss.isLossy(this.#acked)) this.#side.slowed(this, 'sending');
  }

  /** Only the side that borrows its port knows that the path is slow, so it tells the other side each time. */
  #watchVolume(link: LinkStream): void {
    const moved = this.#received + this.#acked;
    if (moved < this.#lookAt) return;
    this.#lookAt = moved + SLOW_PATH_BYTES;
    if (link.path().isSlowForBulk !== true) return;
    this.#toldLossy = false;
    this.#side.slowed(this, 'sending');
  }

  /** Reads on from the TCP connection, if its bytes can be sent and kept. */
  #goOn(): void {
    const link = this.#link;
    if (link === null || !this.#isSynced || link.writableNeedDrain || this.#isFull) return;
    this.#socket?.resume();
  }

  #mayAcknowledge(link: LinkStream): boolean {
    this.#acksWhenFull = link.writableNeedDrain ? this.#acksWhenFull + 1 : 0;
    return this.#acksWhenFull <= MAX_ACKS_WHEN_FULL;
  }

  #acknowledge(link: LinkStream, received = this.#toAcknowledge): void {
    this.#acknowledged = received;
    link.write(receivedFrame(this.#acknowledged));
  }

  /** Ends when both ends are received and acknowledged. */
  #checkWhole(): void {
    // protocol-tunnels.md, step 8
    const link = this.#link;
    if (this.#isOver || link === null || !this.#endSent || !this.#gotEnd || this.#acked <= this.#sent) return;
    this.#finish();
    link.end();
    drainAndDestroy(link, this.#side.clock);
  }

  #closed(link: LinkStream, error: unknown): void {
    if (link === this.#old) this.#old = null;
    if (link !== this.#link || this.#isOver) return;
    const wasSynced = this.#isSynced;
    this.#link = null;
    const isLost = error instanceof StreamError && error.code === 'connection_lost';
    // A caller may give up a new link before both sides use it, and open another.
    if ((!isLost && wasSynced) || !this.#keeps || !this.#side.lost(this)) return this.destroy();
    this.#socket?.pause();
  }

  #finish(): void {
    this.#isOver = true;
    this.#held?.timer.cancel();
    this.#old?.destroy();
    this.#old = null;
    this.#kept.clear();
    this.#waiting.set(0);
    this.#side.acks.delete(this);
    this.#side.over(this);
    if (this.#socket === null || this.#socket.destroyed) this.#observer.closed?.();
  }
}

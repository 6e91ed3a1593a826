/**
 * One end of a tunnel connection that outlives the QUIC connection under it. It joins a TCP connection with a link as
 * `splice` does, keeps what the other end has not acknowledged, and goes on from there over another link. Not a stream of
 * its own: one more of them in the way of each byte would cost more than all that is done here.
 */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import type { Quota, QuotaHolder } from '../../../foundation/quota.ts';
import { resetSocket } from '../../../foundation/sockets.ts';
import { drainAndDestroy } from '../../../network/links/lingering.ts';
import type { LinkPath, LinkStream } from '../../../network/links/types.ts';
import { StreamError } from '../../../network/transport/stream.ts';
import { outcomeOf } from '../preamble.ts';
import type { SpliceObserver } from '../splice.ts';
import type { AckTurns } from './ack-turns.ts';
import { FrameReader, type FrameTaker, lastFrame, receivedFrame, writeData } from './frames.ts';
import { KeptBytes } from './kept-bytes.ts';
import { LastPath } from './last-path.ts';
import type { Resumable } from './resumable.ts';

/** So many bytes are acknowledged at once; well below what may be unacknowledged. */
export const ACK_BYTES: number = 512 * 1024;
/** So long what is said before the TCP connection speaks waits for its first words, where those were asked for, milliseconds. */
export const HELD_MS = 1;
/** Pieces that are shorter than this on average are joined before the TCP connection gets them, bytes: each costs hundreds. */
const SHORT_BYTES = 4096;

/** What a connection uses of its side, and tells it. */
export interface LastingHost {
  readonly clock: Clock;
  /** Counts what is kept, as `keptQuota`. */
  readonly kept: Quota;
  readonly acks: AckTurns;
  /** A link was lost; false where the connection may not wait for another one. */
  lost(connection: LastingConnection): boolean;
  /** The other side has taken up another link. */
  resumed(connection: LastingConnection): void;
  /** It has ended, cleanly or not; called once. */
  over(connection: LastingConnection): void;
}

const NOTHING: Buffer = Buffer.alloc(0);

export class LastingConnection implements FrameTaker, Resumable {
  /** The link that it began with: who speaks to whom. */
  readonly first: LinkStream;
  readonly #host: LastingHost;
  readonly #kept: KeptBytes;
  #keeps = true;
  #link: LinkStream | null = null;
  /** The link before, until the other side is on the new one too. */
  #old: LinkStream | null = null;
  #path: LastPath;
  /** False until the other side has said what it has. */
  #isSynced = true;
  #reader = new FrameReader(this);
  #socket: Socket | null = null;
  #observer: SpliceObserver = {};
  #awaitsStatus = false;
  /** Whether what comes is read, though no TCP connection takes it. */
  #discards = false;
  #sent = 0;
  /** What was sent on the present link begins here. */
  #linkFrom = 0;
  #saidEnd = false;
  /** Waits for the first words of the TCP connection, to go with them. */
  #held: { readonly bytes: Buffer; readonly timer: Timer } | null = null;
  /** What the other side has, and what we have told it; an end counts as one more byte. */
  #acked = 0;
  #told = 0;
  #received = 0;
  #gotEnd = false;
  /** Pieces that the chunk at hand has brought. */
  #came: Buffer[] = [];
  #isOver = false;

  /**
   * @param holder whose share of what is kept it uses
   * @param said bytes that have gone out over the link
   */
  constructor(link: LinkStream, holder: QuotaHolder, host: LastingHost, said: readonly Buffer[] = []) {
    this.first = link;
    this.#host = host;
    this.#kept = new KeptBytes(host.kept, holder, () => this.#evicted());
    this.#path = new LastPath(link);
    for (const chunk of said) this.#keep(chunk);
    this.#use(link);
  }

  get destroyed(): boolean {
    return this.#isOver;
  }

  get isCarried(): boolean {
    return this.#link !== null;
  }

  get mayMove(): boolean {
    return this.#keeps && this.#isSynced && !this.#isOver;
  }

  path(): LinkPath {
    return this.#path.now();
  }

  /** Says bytes before the TCP connection is joined: with its first words, where the other side has said something to it. */
  write(bytes: Uint8Array): void {
    const said = Buffer.from(bytes);
    if (this.#link === null || this.#link.readableLength === 0 || this.#held !== null)
      return this.#send(this.#withHeld(said));
    this.#held = { bytes: said, timer: this.#host.clock.after(HELD_MS, () => this.#sendHeld()) };
  }

  /** Says last bytes, where no TCP connection will be joined: they do not outlive the link. */
  end(bytes: Uint8Array): void {
    this.write(bytes);
    this.#end();
    this.#keeps = false;
    if (this.#link === null) this.destroy();
  }

  /** Reads what comes, and throws it away. */
  resume(): void {
    this.#discards = true;
    this.#link?.resume();
  }

  /** As `splice`. */
  join(socket: Socket, observer: SpliceObserver, awaitsStatus = false): void {
    this.#socket = socket;
    this.#observer = observer;
    this.#awaitsStatus = awaitsStatus;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      observer.sent?.(chunk.length);
      this.#send(this.#withHeld(chunk));
    });
    socket.on('drain', () => this.#link?.resume());
    socket.on('end', () => this.#end());
    socket.on('error', () => this.destroy());
    socket.on('close', (hadError: boolean) => {
      if (hadError || !socket.readableEnded) this.destroy();
      if (this.#isOver) observer.closed?.();
    });
    // Lost before it was joined: the other side may still come back.
    if (this.#isOver) return resetSocket(socket);
    // What it said first was read before.
    if (socket.readableEnded) this.#end();
    this.#goOn();
    this.#link?.resume();
  }

  /** Goes on over another link, on which the other side knows which connection is meant. */
  attach(link: LinkStream): void {
    // protocol-tunnels.md, step 10
    if (this.#isOver || !this.#keeps) return void link.destroy();
    this.#old?.destroy();
    this.#old = this.#link;
    this.#isSynced = false;
    this.#linkFrom = this.#sent;
    this.#path = new LastPath(link);
    this.#use(link);
    this.#tell(link);
    if (this.#socket !== null || this.#discards) link.resume();
  }

  /** Resets both ends. */
  destroy(): void {
    if (this.#isOver) return;
    // Where both have said all there is, the TCP connection still takes what has come.
    const isWhole = this.#saidEnd && this.#gotEnd;
    const link = this.#link;
    this.#finish();
    link?.destroy();
    if (this.#socket !== null && !isWhole) resetSocket(this.#socket);
  }

  acknowledge(): boolean {
    if (this.#link === null) return true;
    if (this.#link.writableNeedDrain) return false;
    if (this.#told < this.#has) this.#tell(this.#link);
    return true;
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
    if (received < this.#acked || received > this.#said) return this.destroy();
    this.#acked = received;
    this.#kept.letGo(received, { from: this.#linkFrom, to: this.#sent - link.writableLength });
    if (!this.#isSynced) this.#sync(link);
    this.#goOn();
  }

  /** What has come, the end included. */
  get #has(): number {
    return this.#received + (this.#gotEnd ? 1 : 0);
  }

  /** What was said, the end included. */
  get #said(): number {
    return this.#sent + (this.#saidEnd ? 1 : 0);
  }

  #use(link: LinkStream): void {
    this.#link = link;
    this.#reader = new FrameReader(this);
    let error: unknown;
    // Nothing is read before somebody takes it.
    link.pause();
    link.on('error', (cause) => {
      error = cause;
    });
    link.on('data', (chunk: Buffer) => {
      if (this.#link === link) this.#take(link, chunk);
    });
    link.on('drain', () => this.#goOn());
    // It ends the link where all is said and acknowledged, and so do we.
    link.on('end', () => {
      if (this.#link === link) this.destroy();
    });
    link.on('close', () => this.#closed(link, error));
    // It may have been reset right behind its answer.
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
      // Otherwise it goes with our own end, or a little later.
      if (this.#saidEnd) this.#tell(link);
      else this.#host.acks.add(this);
    } else if (this.#received - this.#told >= ACK_BYTES && !link.writableNeedDrain) this.#tell(link);
    else if (pieces.length > 0) this.#host.acks.add(this);
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
    if (!wantsMore) link.pause();
  }

  #takeStatus(first: Buffer): void {
    this.#awaitsStatus = false;
    const code = outcomeOf(first[0]);
    if (code === null) return;
    this.#observer.refused?.(code);
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
    const isStalled = link === null || !writeData(link, chunk);
    if (isStalled || this.#kept.isFull) this.#socket?.pause();
  }

  #keep(chunk: Buffer): void {
    this.#sent += chunk.length;
    if (!this.#keeps || this.#kept.add(chunk)) return;
    // It goes on without: another may need the room more.
    this.#keeps = false;
    this.#kept.clear();
  }

  /** What was kept has made room for another: the connection goes on while its path does. */
  #evicted(): void {
    this.#keeps = false;
    if (this.#link === null || !this.#isSynced) this.destroy();
    else this.#goOn();
  }

  #end(): void {
    if (this.#isOver || this.#saidEnd) return;
    this.#sendHeld();
    this.#saidEnd = true;
    if (this.#isSynced) this.#link?.write(this.#told < this.#has ? this.#toldAndLast() : lastFrame());
  }

  #toldAndLast(): Buffer {
    this.#told = this.#has;
    return Buffer.concat([receivedFrame(this.#told), lastFrame()]);
  }

  /** Says again what the other side does not have. */
  #sync(link: LinkStream): void {
    this.#isSynced = true;
    this.#old?.destroy();
    this.#old = null;
    for (const piece of this.#kept.after(this.#acked)) writeData(link, piece);
    if (this.#saidEnd && this.#acked <= this.#sent) link.write(lastFrame());
    this.#host.resumed(this);
  }

  /** Reads the TCP connection on, where what it says can be sent and kept. */
  #goOn(): void {
    const link = this.#link;
    if (link === null || !this.#isSynced || link.writableNeedDrain || this.#kept.isFull) return;
    this.#socket?.resume();
  }

  #tell(link: LinkStream): void {
    this.#told = this.#has;
    link.write(receivedFrame(this.#told));
  }

  /** Ends where both sides have said all, and know it. */
  #checkWhole(): void {
    // protocol-tunnels.md, step 8
    const link = this.#link;
    if (this.#isOver || link === null || !this.#saidEnd || !this.#gotEnd || this.#acked <= this.#sent) return;
    this.#finish();
    link.end();
    drainAndDestroy(link, this.#host.clock);
  }

  #closed(link: LinkStream, error: unknown): void {
    if (link === this.#old) this.#old = null;
    if (link !== this.#link || this.#isOver) return;
    const wasSynced = this.#isSynced;
    this.#link = null;
    const isLost = error instanceof StreamError && error.code === 'connection_lost';
    // Who gives a new link up before both use it may come with another.
    if ((!isLost && wasSynced) || !this.#keeps || !this.#host.lost(this)) return this.destroy();
    this.#socket?.pause();
  }

  #finish(): void {
    this.#isOver = true;
    this.#held?.timer.cancel();
    this.#old?.destroy();
    this.#old = null;
    this.#kept.clear();
    this.#host.acks.delete(this);
    this.#host.over(this);
    if (this.#socket === null || this.#socket.destroyed) this.#observer.closed?.();
  }
}

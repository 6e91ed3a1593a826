/**
 * Joins a TCP connection and a link so that each sees what the other does: bytes with back-pressure,
 * a half-close as a half-close, a reset as a reset.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ErrorCode } from '../../foundation/errors.ts';
import { resetSocket } from '../../foundation/sockets.ts';
import { outcomeOf } from './preamble.ts';

/** What a joined pair tells while it lives. */
export interface SpliceObserver {
  /** Bytes from the TCP connection into the link. */
  sent?(bytes: number): void;
  /** Bytes from the link into the TCP connection. */
  received?(bytes: number): void;
  /** The called side could not connect; both are reset. Only where a status is awaited. */
  refused?(code: ErrorCode): void;
  /** Both are gone; called once. */
  closed?(): void;
}

/** The link's side of a joined pair. */
export interface SpliceLink extends Duplex {
  /** Frees a chunk that was read from the link, or written to it, and is not needed any more. */
  release?(chunk: Buffer): void;
}

/**
 * Joins both; neither may be used otherwise afterwards.
 * @param awaitsStatus the first byte of the link says whether the called side could connect
 */
export function splice(socket: Socket, link: SpliceLink, observer: SpliceObserver, awaitsStatus = false): void {
  let open = 2;
  let waiting = awaitsStatus;
  const takeStatus = (chunk: Buffer): Buffer | null => {
    waiting = false;
    const code = outcomeOf(chunk[0]);
    if (code === null) return chunk.subarray(1);
    observer.refused?.(code);
    resetSocket(socket);
    link.destroy();
    return null;
  };
  /** Called when a chunk has been written; after an error the kernel may still look at it. */
  const done = (error: Error | null | undefined, chunk: Buffer): void => {
    if (!error) link.release?.(chunk);
  };
  const closed = (): void => {
    if (--open === 0) observer.closed?.();
  };
  socket.setNoDelay(true);
  socket.on('data', (chunk: Buffer) => {
    observer.sent?.(chunk.length);
    if (!link.write(chunk, (error) => done(error, chunk))) socket.pause();
  });
  link.on('data', (chunk: Buffer) => {
    const bytes = waiting ? takeStatus(chunk) : chunk;
    if (bytes === null || bytes.length === 0) return;
    observer.received?.(bytes.length);
    if (!socket.write(bytes, (error) => done(error, chunk))) link.pause();
  });
  link.on('drain', () => socket.resume());
  socket.on('drain', () => link.resume());
  socket.on('end', () => link.end());
  link.on('end', () => (waiting ? resetSocket(socket) : socket.end()));
  socket.on('error', () => link.destroy());
  link.on('error', () => resetSocket(socket));
  // After a clean end the other direction still flushes: only what broke off is passed on as a reset.
  socket.on('close', (hadError: boolean) => {
    if (hadError || !socket.readableEnded) link.destroy();
    closed();
  });
  link.on('close', () => {
    if (!link.readableEnded) resetSocket(socket);
    closed();
  });
  // What it said first was read before.
  if (socket.readableEnded) link.end();
  socket.resume();
  link.resume();
}

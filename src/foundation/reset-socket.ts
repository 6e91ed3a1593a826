/** Resets of TCP connections. */
import type { Socket } from 'node:net';

/**
 * Resets a TCP connection if possible, so that the other side reads an error instead of a clean end.
 *
 * If the write side is ending but not finished, the connection is closed instead: libuv rejects a reset then
 * (`UV_EINVAL`), and Node would never close the socket. The end was already requested.
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}

/** Resets of TCP connections. */
import type { Socket } from 'node:net';

/**
 * Resets a TCP connection, where it stands: the other end reads an error and no clean end.
 *
 * One whose half is just being ended is closed instead: libuv refuses to reset it (`UV_EINVAL`), and Node would then
 * never close it. Its end has been said already.
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}

/** Small functions for HTTP messages and TCP sockets. */
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { PortTrouble } from './domain/tunnels.ts';
import { codeOf } from './errors.ts';

/** Sends the head now, with its headers byte for byte. `flushHeaders` of Node would encode their bytes above 0x7F as UTF-8 once more. */
export function flushHead(message: Pick<Writable, 'write'>): void {
  message.write('', 'latin1');
}

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

export function portTroubleOf(error: unknown): PortTrouble {
  const code = codeOf(error);
  if (code === 'EADDRINUSE') return 'in_use';
  return code === 'EACCES' || code === 'EPERM' ? 'not_permitted' : 'unusable';
}

/** The reason, which follows "Port 4000 of 127.0.0.1". */
export function describePortTrouble(trouble: PortTrouble, code = 'for an unknown reason'): string {
  if (trouble === 'in_use') return 'is in use by another program';
  if (trouble === 'not_permitted') return 'is not allowed for svcd by the system';
  return `cannot be used (${code})`;
}

/** As `describePortTrouble`. */
export function describePortError(error: unknown): string {
  return describePortTrouble(portTroubleOf(error), codeOf(error, 'for an unknown reason'));
}

/**
 * Resets local connections if this process crashes. Otherwise the system closes them normally, and half a response
 * would look complete. Nothing can run at SIGKILL; docs/local-addresses.md describes what clients see then.
 */
import { subscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import { resetSocket } from '../foundation/sockets.ts';

/** Node publishes every accepted connection of this process on this channel. */
const ACCEPTED = 'net.server.socket';

function socketIn(message: unknown): Socket | null {
  const isHeld = typeof message === 'object' && message !== null && 'socket' in message;
  return isHeld && message.socket instanceof Socket ? message.socket : null;
}

/** Resets every open accepted connection when the process exits with a code other than 0. */
export function resetOnCrash(process: NodeJS.Process): void {
  const open = new Set<Socket>();
  subscribe(ACCEPTED, (message) => {
    const socket = socketIn(message);
    if (socket === null) return;
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  process.on('exit', (code) => {
    if (code !== 0) for (const socket of open) resetSocket(socket);
  });
}

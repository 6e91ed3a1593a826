/**
 * What local clients see when this process ends in another way than by a stop. The system ends their connections as if
 * everything had been sent, so half a response would look whole: they are reset instead. Nothing runs at SIGKILL; what
 * shows then is in docs/local-addresses.md.
 */
import { subscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import { resetSocket } from '../foundation/reset-socket.ts';

/** Node publishes each connection here that a server of this process has accepted. */
const ACCEPTED = 'net.server.socket';

function socketIn(message: unknown): Socket | null {
  const isHeld = typeof message === 'object' && message !== null && 'socket' in message;
  return isHeld && message.socket instanceof Socket ? message.socket : null;
}

/** Resets every accepted connection that is open when the process exits with a code other than 0. */
export function resetOnAbnormalEnd(process: NodeJS.Process): void {
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

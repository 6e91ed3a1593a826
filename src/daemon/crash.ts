/** What the daemon does when it crashes, and with errors that nothing handles. */
import { subscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import { onDetachedError } from '../foundation/detached.ts';
import { codeOf, SvcError } from '../foundation/errors.ts';
import type { Log } from '../foundation/log.ts';
import { resetSocket } from '../foundation/sockets.ts';
import { safeText } from '../surfaces/cli/text.ts';

// Handles errors without a caller: from timers and background work.

/**
 * Errors of the system without a bug: it has no free descriptors, memory or disk, or the network has changed. The code
 * of the operation handles them. If one is missed, the daemon and its agents still run on.
 */
const SYSTEM_CODES: ReadonlySet<string> = new Set([
  ...['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EAGAIN'],
  ...['EADDRNOTAVAIL', 'EADDRINUSE', 'ENETDOWN', 'ENETUNREACH', 'EHOSTUNREACH', 'ENODEV'],
  ...['ENOSPC', 'EDQUOT', 'EROFS', 'EIO'],
]);

/**
 * Keeps the process running after SvcErrors, such as a failed disk write, because the transaction was rolled back. The
 * same applies to errors of the system, and to all failures of detached work, which belongs to one request. Any other
 * error is a bug that leaves the state undefined: it is written to stderr, and the process exits with code 1, as Node
 * does by default.
 */
export function handleUnhandledErrors(process: NodeJS.Process, log: Log): void {
  onDetachedError((error) => log.error({ error }, 'background work failed'));
  process.on('uncaughtException', (error: unknown) => {
    if (error instanceof SvcError || SYSTEM_CODES.has(codeOf(error)))
      return log.error({ error }, 'background work failed');
    const text = error instanceof Error ? (error.stack ?? error.message) : 'unknown error';
    process.stderr.write(`svcd: ${safeText(text)}\n`);
    process.exit(1);
  });
}

// Resets local connections if this process crashes. Otherwise the system closes them normally, and half a response
// would look complete. Nothing can run at SIGKILL; docs/local-addresses.md describes what clients see then.

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

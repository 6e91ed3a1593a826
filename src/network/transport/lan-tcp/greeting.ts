/**
 * How a TCP connection between two neighbours begins. Who connects says the name of the agreement and a nonce; the other
 * side answers with its own nonce and a sealed hello, and gets one. Only who knows the secret can seal them, for this
 * connection alone.
 */

import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { isLoopbackHost } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { listen } from '../../../foundation/stream-listeners.ts';
import { AGREEMENT_NAME_BYTES, CONNECTION_NONCE_BYTES, type ConnectionSeals, connectionSeals } from './agreement.ts';
import { FrameOpener, FrameWriter } from './frames.ts';

/** Time for all of it, milliseconds. */
export const GREETING_TIMEOUT_MS = 2_000;
/** Bytes of a sealed record without payload. */
const HELLO_BYTES = 20;

/** What comes behind the greeting, and may have come with it. */
type Greeted = (seals: ConnectionSeals, rest: Buffer) => void;

/** Takes so many bytes off a socket, and gives what came behind them along, in the same turn. */
function takeFirst(
  socket: Socket,
  length: number,
  taken: (first: Buffer, rest: Buffer) => void,
  come: Buffer = Buffer.alloc(0),
): void {
  if (come.length >= length) return taken(come.subarray(0, length), come.subarray(length));
  socket.once('data', (chunk: Buffer) => takeFirst(socket, length, taken, Buffer.concat([come, chunk])));
}

function isHello(sealed: Buffer, { opener }: ConnectionSeals): boolean {
  try {
    return [...opener.feed(sealed)][0]?.kind === 'hello';
  } catch {
    return false;
  }
}

/** What two processes of one machine say to each other is not sealed. */
function sealsAt(host: string, seals: ConnectionSeals): ConnectionSeals {
  return isLoopbackHost(host) ? { sealer: new FrameWriter(), opener: new FrameOpener() } : seals;
}

/** Ends a connection whose greeting takes too long, or that ends before it is over. Returns what is to be called then. */
function bounded(socket: Socket, clock: Clock): () => void {
  const end = (): void => void socket.destroy();
  const timer = clock.after(GREETING_TIMEOUT_MS, end);
  const stop = listen(socket, { error: end, end });
  const over = (): void => {
    timer.cancel();
    stop();
  };
  socket.once('close', over);
  return over;
}

/** The side that connects. */
export function greet(
  socket: Socket,
  { name, secret, host }: { readonly name: Uint8Array; readonly secret: Uint8Array; readonly host: string },
  clock: Clock,
  greeted: Greeted,
): void {
  const over = bounded(socket, clock);
  const ours = randomBytes(CONNECTION_NONCE_BYTES);
  // protocol-lan.md, step 4
  socket.write(Buffer.concat([name, ours]));
  takeFirst(socket, CONNECTION_NONCE_BYTES + HELLO_BYTES, (first, rest) => {
    // protocol-lan.md, step 6
    const salt = Buffer.concat([ours, first.subarray(0, CONNECTION_NONCE_BYTES)]);
    const seals = connectionSeals(secret, salt, 'connects');
    if (!isHello(first.subarray(CONNECTION_NONCE_BYTES), seals)) return void socket.destroy();
    socket.write(seals.sealer.seal('hello'));
    over();
    greeted(sealsAt(host, seals), rest);
  });
}

/**
 * The side that was connected to.
 * @param at the address that it was connected to, and the secret of an agreement by its name; null where there is none
 */
export function awaitGreeting(
  socket: Socket,
  at: { readonly host: string; readonly secretOf: (name: Buffer) => Uint8Array | null },
  clock: Clock,
  greeted: Greeted,
): void {
  const over = bounded(socket, clock);
  takeFirst(socket, AGREEMENT_NAME_BYTES + CONNECTION_NONCE_BYTES, (first, behind) => {
    // protocol-lan.md, step 5
    const secret = at.secretOf(first.subarray(0, AGREEMENT_NAME_BYTES));
    if (secret === null) return void socket.destroy();
    const ours = randomBytes(CONNECTION_NONCE_BYTES);
    const seals = connectionSeals(secret, Buffer.concat([first.subarray(AGREEMENT_NAME_BYTES), ours]), 'accepts');
    socket.write(Buffer.concat([ours, seals.sealer.seal('hello')]));
    takeFirst(
      socket,
      HELLO_BYTES,
      (hello, rest) => {
        if (!isHello(hello, seals)) return void socket.destroy();
        over();
        greeted(sealsAt(at.host, seals), rest);
      },
      behind,
    );
  });
}

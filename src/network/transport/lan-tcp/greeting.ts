/**
 * How a TCP connection between two neighbours begins. Who connects says the name of the agreement and a nonce; the other
 * side answers with its own nonce and a sealed hello, and gets one. Only who knows the secret can seal them, for this
 * connection alone.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { isIP, type Socket } from 'node:net';
import { isLoopbackHost } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { CIPHER_KEY_BYTES } from '../../../foundation/keys/cipher.ts';
import { listen } from '../../../foundation/stream-listeners.ts';
import {
  type LaneRecord,
  MAX_RECORD_PAYLOAD_BYTES,
  type RecordKind,
  RecordOpener,
  RecordSealer,
} from '../sealed-records.ts';

/*
 * How two neighbours agree, over the QUIC connection that proves both, on TCP connections beside it: the one that will
 * connect draws a secret and says at which address it sees the other, which answers with a port and a name for it all.
 */

export const AGREEMENT_SECRET_BYTES = 32;
/** Bytes of the name by which a TCP connection says to which agreement it belongs. */
export const AGREEMENT_NAME_BYTES = 16;
/** Bytes that each end of a TCP connection draws for it. */
export const CONNECTION_NONCE_BYTES = 16;
/** The longest text of an IP address. */
const MAX_HOST_BYTES = 45;

/** Most bytes of a request. */
export const MAX_AGREEMENT_REQUEST_BYTES: number = AGREEMENT_SECRET_BYTES + MAX_HOST_BYTES;
/** Bytes of an answer. */
export const AGREEMENT_ANSWER_BYTES: number = 2 + AGREEMENT_NAME_BYTES;

export interface AgreementRequest {
  readonly secret: Uint8Array;
  /** An address of who is asked, as who asks sees it. */
  readonly host: string;
}

export interface AgreementAnswer {
  readonly port: number;
  readonly name: Uint8Array;
}

export function newRequest(host: string): AgreementRequest {
  return { secret: randomBytes(AGREEMENT_SECRET_BYTES), host };
}

export function encodeRequest({ secret, host }: AgreementRequest): Uint8Array {
  return Buffer.concat([secret, Buffer.from(host, 'latin1')]);
}

/** Null for what is no request. */
export function decodeRequest(bytes: Uint8Array): AgreementRequest | null {
  const host = Buffer.from(bytes.subarray(AGREEMENT_SECRET_BYTES)).toString('latin1');
  // A `Buffer` would share its memory with a slice of it.
  const secret = new Uint8Array(bytes.subarray(0, AGREEMENT_SECRET_BYTES));
  return isIP(host) === 0 ? null : { secret, host };
}

export function encodeAnswer({ port, name }: AgreementAnswer): Uint8Array {
  const bytes = Buffer.alloc(AGREEMENT_ANSWER_BYTES);
  bytes.writeUInt16BE(port);
  bytes.set(name, 2);
  return bytes;
}

/** @param bytes `NEAR_ANSWER_BYTES` of them */
export function decodeAnswer(bytes: Uint8Array): AgreementAnswer {
  return { port: ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0), name: new Uint8Array(bytes.subarray(2)) };
}

/** What seals and opens at one end of a TCP connection. */
export interface ConnectionSeals {
  readonly sealer: { seal(kind: RecordKind, payload?: Uint8Array): Buffer };
  readonly opener: { feed(chunk: Buffer): Iterable<LaneRecord> };
}

/**
 * Draws the keys of a TCP connection (RFC 5869). Both ends have drawn a part of the salt, so that no recorded connection
 * can be played again to either.
 * @param role of this end
 */
export function connectionSeals(secret: Uint8Array, salt: Uint8Array, role: 'connects' | 'accepts'): ConnectionSeals {
  const keyOf = (direction: string): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', secret, salt, `svcd near 1 ${direction}`, CIPHER_KEY_BYTES));
  const [there, back] = [keyOf('from who connects'), keyOf('to who connects')];
  const [seal, open] = role === 'connects' ? [there, back] : [back, there];
  return { sealer: new RecordSealer(seal), opener: new RecordOpener(open) };
}

/*
 * What a channel carries between two processes of one machine: records as `network/bulk/records` has them, but open. Both
 * have shown that they know the secret; who may record packets of the loopback interface can read what clients and services
 * say to their daemons there anyway.
 */

const CODE: Readonly<Record<RecordKind, number>> = { hello: 0, data: 1, end: 2, reset: 3 };
const KIND_OF = new Map<number, RecordKind>([
  [CODE.hello, 'hello'],
  [CODE.data, 'data'],
  [CODE.end, 'end'],
  [CODE.reset, 'reset'],
]);
const HEAD_BYTES = 4;
const NOTHING: Buffer = Buffer.alloc(0);

export class FrameWriter {
  /** @param payload at most `MAX_RECORD_PAYLOAD_BYTES`; is not kept */
  seal(kind: RecordKind, payload: Uint8Array = NOTHING): Buffer {
    const frame = Buffer.allocUnsafeSlow(HEAD_BYTES + payload.length);
    frame.writeUInt32BE(((CODE[kind] << 24) | payload.length) >>> 0);
    frame.set(payload, HEAD_BYTES);
    return frame;
  }
}

/** Takes the frames off the bytes of a channel, however these are cut. */
export class FrameOpener {
  readonly #head: Buffer = Buffer.alloc(HEAD_BYTES);
  #headBytes = 0;
  /** What is still to come of the payload. */
  #left = 0;

  /**
   * Gives what has come; a payload in the pieces in which it came.
   * @throws SvcError `protocol_error`
   */
  *feed(chunk: Buffer): Generator<LaneRecord> {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left > 0) {
        const piece = Buffer.from(chunk.subarray(at, at + this.#left));
        at += piece.length;
        this.#left -= piece.length;
        yield { kind: 'data', payload: piece };
      } else {
        const taken = chunk.copy(this.#head, this.#headBytes, at);
        this.#headBytes += taken;
        at += taken;
        if (this.#headBytes < HEAD_BYTES) return;
        this.#headBytes = 0;
        const kind = this.#begin(this.#head.readUInt32BE());
        if (kind !== 'data') yield { kind, payload: NOTHING };
      }
    }
  }

  #begin(head: number): RecordKind {
    const kind = KIND_OF.get(head >>> 24);
    const length = head & 0xff_ffff;
    const isRight = kind === 'data' ? length > 0 && length <= MAX_RECORD_PAYLOAD_BYTES : length === 0;
    if (kind === undefined || !isRight)
      throw new SvcError('protocol_error', { message: 'A channel carries what the other side did not send.' });
    this.#left = length;
    return kind;
  }
}

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

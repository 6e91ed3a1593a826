/**
 * The start of a TCP connection between two LAN peers. The dialing side sends the name of the agreement and a nonce.
 * The accepting side answers with another nonce and a sealed hello, and receives a hello. Sealing it requires the
 * secret, and it is valid for this connection only.
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
 * LAN peers agree on TCP connections over the QUIC connection that proves both keys. The dialing side generates a
 * secret and sends it with the address at which it sees the peer. The peer answers with a port and a name for the
 * agreement.
 */

export const AGREEMENT_SECRET_BYTES = 32;
/** Size of the name that links a TCP connection to its agreement, bytes. */
export const AGREEMENT_NAME_BYTES = 16;
/** Size of the nonce that each end of a TCP connection generates, bytes. */
export const CONNECTION_NONCE_BYTES = 16;
/** The longest text of an IP address. */
const MAX_HOST_BYTES = 45;

/** Largest request, bytes. */
export const MAX_AGREEMENT_REQUEST_BYTES: number = AGREEMENT_SECRET_BYTES + MAX_HOST_BYTES;
/** Bytes of an answer. */
export const AGREEMENT_ANSWER_BYTES: number = 2 + AGREEMENT_NAME_BYTES;

export interface AgreementRequest {
  readonly secret: Uint8Array;
  /** An address of the accepting side, as seen by the dialing side. */
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

/** Null if the request is malformed. */
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

/** @param bytes `AGREEMENT_ANSWER_BYTES` bytes */
export function decodeAnswer(bytes: Uint8Array): AgreementAnswer {
  return { port: ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0), name: new Uint8Array(bytes.subarray(2)) };
}

/** Seals and opens the records at one end of a TCP connection. */
export interface ConnectionSeals {
  readonly sealer: { seal(kind: RecordKind, payload?: Uint8Array): Buffer };
  readonly opener: { feed(chunk: Buffer): Iterable<LaneRecord> };
}

/**
 * Derives the keys of a TCP connection (RFC 5869). Each end generates a part of the salt, so that no recorded
 * connection can be replayed to either end.
 * @param role of this end
 */
export function connectionSeals(secret: Uint8Array, salt: Uint8Array, role: 'connects' | 'accepts'): ConnectionSeals {
  const keyOf = (direction: string): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', secret, salt, `svcd lan-tcp 1 ${direction}`, CIPHER_KEY_BYTES));
  const [there, back] = [keyOf('from the opening node'), keyOf('to the opening node')];
  const [seal, open] = role === 'connects' ? [there, back] : [back, there];
  return { sealer: new RecordSealer(seal), opener: new RecordOpener(open) };
}

/*
 * Records between two processes of one machine are not encrypted. Both processes have proven that they know the secret.
 * A program that can record packets of the loopback interface can also read what clients and services send to their
 * daemons there.
 */

type FrameKind = Exclude<RecordKind, 'read'>;
const CODE: Readonly<Record<FrameKind, number>> = { hello: 0, data: 1, end: 2, reset: 3 };
const KIND_OF = new Map<number, FrameKind>([
  [CODE.hello, 'hello'],
  [CODE.data, 'data'],
  [CODE.end, 'end'],
  [CODE.reset, 'reset'],
]);
const HEAD_BYTES = 4;
const NOTHING: Buffer = Buffer.alloc(0);

export class FrameWriter {
  /** @param payload at most `MAX_RECORD_PAYLOAD_BYTES`; it can be reused */
  seal(kind: FrameKind, payload: Uint8Array = NOTHING): Buffer {
    const frame = Buffer.allocUnsafeSlow(HEAD_BYTES + payload.length);
    frame.writeUInt32BE(((CODE[kind] << 24) | payload.length) >>> 0);
    frame.set(payload, HEAD_BYTES);
    return frame;
  }
}

/** Extracts the frames from chunks of any size. */
export class FrameOpener {
  readonly #head: Buffer = Buffer.alloc(HEAD_BYTES);
  #headBytes = 0;
  /** Missing bytes of the payload. */
  #left = 0;

  /**
   * Returns what has arrived. A payload can be split.
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
      throw new SvcError('protocol_error', { message: 'Received data that the other side did not send.' });
    this.#left = length;
    return kind;
  }
}

/** Timeout for the whole greeting, milliseconds. */
export const GREETING_TIMEOUT_MS = 2_000;
/** Bytes of a sealed record without payload. */
const HELLO_BYTES = 20;

/** Receives the bytes that arrived after the greeting too. */
type Greeted = (seals: ConnectionSeals, rest: Buffer) => void;

/** Reads this many bytes from a socket, and passes on any further bytes in the same turn. */
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

/** Data between two processes of one machine is not sealed. */
function sealsAt(host: string, seals: ConnectionSeals): ConnectionSeals {
  return isLoopbackHost(host) ? { sealer: new FrameWriter(), opener: new FrameOpener() } : seals;
}

/**
 * Closes a connection with an unfinished greeting after the timeout or at its end. Returns a function to call after the
 * greeting.
 */
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

/** The dialing side. */
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
 * The accepting side.
 * @param at the local address of the connection, and a lookup of an agreement's secret by name, null if there is none
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

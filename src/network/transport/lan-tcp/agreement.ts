/**
 * How two neighbours agree, over the QUIC connection that proves both, on TCP connections beside it: the one that will
 * connect draws a secret and says at which address it sees the other, which answers with a port and a name for it all.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { CIPHER_KEY_BYTES } from '../../../foundation/keys/cipher.ts';
import { type LaneRecord, type RecordKind, RecordOpener, RecordSealer } from '../udp-lane/records.ts';

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

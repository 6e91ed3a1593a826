/**
 * Sealed records of bulk lanes and LAN TCP connections, numbered from 0 in each direction. A record that was changed,
 * removed, repeated or reordered does not open. A stream that ends without its last record was truncated.
 *
 * Format: three bytes with the length of the rest, then AES-256-GCM of a kind byte and the payload, with the length as
 * additional data and the record's number as nonce. Each direction has a different key.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { freeMemory } from '../../foundation/bytes.ts';
import { SvcError } from '../../foundation/errors.ts';
import { CIPHER, CIPHER_KEY_BYTES, NONCE_BYTES, TAG_BYTES } from '../../foundation/keys/cipher.ts';

/** Size of the secret for the keys of a lane, bytes. */
export const BULK_SECRET_BYTES = 32;
const LANE_ID_BYTES = 4;
export const LANE_ANSWER_BYTES: number = LANE_ID_BYTES + 2;
export const LANE_OFFER_BYTES: number = LANE_ANSWER_BYTES + BULK_SECRET_BYTES;

/** One end of a lane, as the other side learns it. */
export interface LaneAnswer {
  /** 32 bits, not 0. */
  readonly id: number;
  /** At the host of the connection that carries the offer; 0 if it is unknown. */
  readonly port: number;
}

/** The end of the offering side, and the secret from which both derive their keys. */
export interface LaneOffer extends LaneAnswer {
  /** `BULK_SECRET_BYTES`. */
  readonly secret: Uint8Array;
}

export function encodeLaneAnswer({ id, port }: LaneAnswer): Uint8Array {
  const bytes = Buffer.alloc(LANE_ANSWER_BYTES);
  bytes.writeUInt32BE(id);
  bytes.writeUInt16BE(port, LANE_ID_BYTES);
  return bytes;
}

export function decodeLaneAnswer(bytes: Uint8Array): LaneAnswer {
  const view = new DataView(bytes.buffer, bytes.byteOffset, LANE_ANSWER_BYTES);
  return { id: view.getUint32(0), port: view.getUint16(LANE_ID_BYTES) };
}

export function encodeLaneOffer(offer: LaneOffer): Uint8Array {
  return Buffer.concat([encodeLaneAnswer(offer), offer.secret]);
}

export function decodeLaneOffer(bytes: Uint8Array): LaneOffer {
  return { ...decodeLaneAnswer(bytes), secret: bytes.slice(LANE_ANSWER_BYTES) };
}

/** Largest payload of one record, bytes. */
export const MAX_RECORD_PAYLOAD_BYTES: number = 64 * 1024;

/** Size of the number in a `read` record, bytes. */
export const READ_COUNT_BYTES = 6;

const RECORD_LENGTH_BYTES = 3;
const KIND_BYTES = 1;
const MIN_SEALED_BYTES: number = KIND_BYTES + TAG_BYTES;
/** Bytes of a record in addition to its payload. */
export const RECORD_OVERHEAD_BYTES: number = RECORD_LENGTH_BYTES + MIN_SEALED_BYTES;
const MAX_SEALED_BYTES: number = MIN_SEALED_BYTES + MAX_RECORD_PAYLOAD_BYTES;

/** `reset`: the sender aborts the stream. `read`: the number of bytes that its user has read so far. */
const KIND = { hello: 0, data: 1, end: 2, reset: 3, read: 4 } as const;
export type RecordKind = keyof typeof KIND;

export interface LaneRecord {
  readonly kind: RecordKind;
  /** Unshared memory. Empty except for data and `read`. */
  readonly payload: Buffer;
}

/** The two keys of a lane. */
export interface LaneKeys {
  readonly seal: Uint8Array;
  readonly open: Uint8Array;
}

/**
 * Derives the keys of a lane from its secret (RFC 5869).
 * @param offered true for the side that generated the secret
 */
export function laneKeys(secret: Uint8Array, offered: boolean): LaneKeys {
  const keyOf = (direction: string): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), `svcd bulk lane 1 ${direction}`, CIPHER_KEY_BYTES));
  const [there, back] = [keyOf('from the caller'), keyOf('to the caller')];
  return offered ? { seal: there, open: back } : { seal: back, open: there };
}

/** The nonces of one direction. */
class Nonces {
  readonly #nonce = Buffer.alloc(NONCE_BYTES);
  #next = 0n;

  next(): Buffer {
    this.#nonce.writeBigUInt64BE(this.#next++, NONCE_BYTES - 8);
    return this.#nonce;
  }
}

export class RecordSealer {
  readonly #key: Uint8Array;
  readonly #nonces = new Nonces();

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** @param payload at most `MAX_RECORD_PAYLOAD_BYTES`; it can be reused */
  seal(kind: RecordKind, payload: Uint8Array = new Uint8Array()): Buffer {
    if (payload.length > MAX_RECORD_PAYLOAD_BYTES) throw new RangeError(`a record of ${payload.length} bytes`);
    const record = Buffer.allocUnsafeSlow(RECORD_LENGTH_BYTES + MIN_SEALED_BYTES + payload.length);
    record.writeUIntBE(MIN_SEALED_BYTES + payload.length, 0, RECORD_LENGTH_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, this.#nonces.next(), { authTagLength: TAG_BYTES });
    cipher.setAAD(record.subarray(0, RECORD_LENGTH_BYTES));
    let at = RECORD_LENGTH_BYTES;
    at += cipher.update(Uint8Array.of(KIND[kind])).copy(record, at);
    at += cipher.update(payload).copy(record, at);
    cipher.final();
    cipher.getAuthTag().copy(record, at);
    return record;
  }
}

function kindOf(byte: number | undefined): RecordKind | null {
  if (byte === KIND.hello) return 'hello';
  if (byte === KIND.data) return 'data';
  if (byte === KIND.end) return 'end';
  if (byte === KIND.read) return 'read';
  return byte === KIND.reset ? 'reset' : null;
}

/** Extracts the records from chunks of any size. */
export class RecordOpener {
  readonly #key: Uint8Array;
  readonly #nonces = new Nonces();
  readonly #head = Buffer.alloc(RECORD_LENGTH_BYTES);
  #headBytes = 0;
  #sealed: Buffer | null = null;
  #filled = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /**
   * Returns the records that are complete.
   * @throws SvcError `protocol_error` for bytes that the peer did not seal as the next record. Do not feed more after
   *   that.
   */
  *feed(chunk: Uint8Array): Generator<LaneRecord> {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    while (rest.length > 0) {
      rest = this.#sealed === null ? this.#takeHead(rest) : rest;
      if (this.#sealed === null) return;
      const taken = rest.copy(this.#sealed, this.#filled);
      rest = rest.subarray(taken);
      this.#filled += taken;
      if (this.#filled < this.#sealed.length) return;
      const sealed = this.#sealed;
      this.#sealed = null;
      this.#filled = this.#headBytes = 0;
      yield this.#open(sealed);
    }
  }

  #takeHead(chunk: Buffer): Buffer {
    const taken = chunk.copy(this.#head, this.#headBytes);
    this.#headBytes += taken;
    if (this.#headBytes === RECORD_LENGTH_BYTES) {
      const length = this.#head.readUIntBE(0, RECORD_LENGTH_BYTES);
      if (length < MIN_SEALED_BYTES || length > MAX_SEALED_BYTES) throw broken();
      this.#sealed = Buffer.allocUnsafeSlow(length);
    }
    return chunk.subarray(taken);
  }

  #open(sealed: Buffer): LaneRecord {
    const decipher = createDecipheriv(CIPHER, this.#key, this.#nonces.next(), { authTagLength: TAG_BYTES });
    decipher.setAAD(this.#head);
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
    let plain: Buffer;
    try {
      plain = decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES));
      decipher.final();
    } catch (cause) {
      throw broken(cause);
    }
    freeMemory(sealed);
    const kind = kindOf(plain[0]);
    const mostBytes = kind === 'data' ? MAX_RECORD_PAYLOAD_BYTES : kind === 'read' ? READ_COUNT_BYTES : 0;
    if (kind === null || plain.length > KIND_BYTES + mostBytes) throw broken();
    return { kind, payload: plain.subarray(KIND_BYTES) };
  }
}

function broken(cause?: unknown): SvcError {
  return new SvcError('protocol_error', { message: 'Received data that the other side did not send.', cause });
}

/**
 * Reads and writes the binary formats of streams, and the status of replies. Lengths are checked before any data is
 * stored.
 */
import type { Duplex, Readable, Writable } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { abortable, abortError } from '../../foundation/deadline.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import { listen } from '../../foundation/stream-listeners.ts';

/** The first byte of a stream. A hello uses 1 or 4, only on the first stream. */
export const KIND = {
  link: 0x02,
  nodeRequest: 0x03,
  signal: 0x05,
  probe: 0x06,
  lanTcp: 0x07,
  bulkLink: 0x08,
  lane: 0x09,
} as const;
export type Kind = (typeof KIND)[keyof typeof KIND];

/** Time for the other side to read the last byte of a stream, milliseconds. */
export const LINGER_MS = 2_000;
/** Size of the length field of a message, bytes. */
export const LENGTH_BYTES = 4;
/** Maximum number of discarded bytes after the last write on a stream. */
const REFUSAL_DISCARD_BYTES = 64 * 1024;

/** Two bytes, most significant first. */
export function u16(value: number): Uint8Array {
  return Uint8Array.of(value >>> 8, value & 0xff);
}

/** Four bytes, most significant first. */
export function u32(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff);
}

/** Reads fields from the start of a frame. Each method throws RangeError if bytes are missing. */
export class BinaryReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  bytes(length: number): Uint8Array {
    if (this.#at + length > this.#bytes.length) throw new RangeError('the frame is cut short');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  u8(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new RangeError('the frame is cut short');
    this.#at++;
    return byte;
  }

  u32(): number {
    return this.u16() * 0x1_0000 + this.u16();
  }

  u16(): number {
    return this.u8() * 0x100 + this.u8();
  }

  /** Fails if bytes are left: each value has exactly one encoding. */
  end(): void {
    if (this.#at !== this.#bytes.length) throw new RangeError('the frame has extra bytes');
  }
}

/** The error for a reader of a broken stream. */
function broken(cause: unknown): SvcError {
  const reset = cause instanceof Error && 'code' in cause && cause.code === 'stream_reset';
  return reset
    ? new SvcError('protocol_error', { message: 'The other node reset the stream.', cause })
    : new SvcError('connect_failed', { message: 'The connection was lost.', cause });
}

/**
 * Reads exactly `length` bytes and leaves the rest in the stream, including its end.
 * @throws SvcError `protocol_error` if the stream ends or is reset earlier, `connect_failed` if the connection is lost,
 *   or the signal's reason
 */
export function readExactly(stream: Readable, length: number, signal: AbortSignal): Promise<Uint8Array> {
  if (length === 0) return Promise.resolve(new Uint8Array(0));
  if (signal.aborted) return Promise.reject(abortError(signal));
  if (stream.destroyed) return Promise.reject(broken(stream.errored ?? new Error('closed')));
  if (stream.readableEnded) return Promise.reject(endedEarly());
  const chunk: unknown = stream.readableLength >= length ? stream.read(length) : null;
  return chunk instanceof Uint8Array ? Promise.resolve(chunk) : awaitExactly(stream, length, signal);
}

function endedEarly(): ProtocolBreach {
  return new ProtocolBreach('The other node ended the stream too early.');
}

/** As `readExactly`, for a stream with fewer buffered bytes. */
function awaitExactly(stream: Readable, length: number, signal: AbortSignal): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const settle = (bytes: Uint8Array | null, error?: SvcError): void => {
      stop();
      signal.removeEventListener('abort', aborted);
      if (bytes === null) reject(error);
      else resolve(bytes);
    };
    const ended = (): void => settle(null, endedEarly());
    const failed = (error: Error): void => settle(null, broken(error));
    const closed = (): void => failed(stream.errored ?? new Error('closed'));
    const aborted = (): void => settle(null, abortError(signal));
    const attempt = (): void => {
      const chunk: unknown = stream.read(length);
      if (!(chunk instanceof Uint8Array)) return;
      // At its end, a stream returns its remaining bytes even if there are fewer.
      if (chunk.length === length) settle(chunk);
      else ended();
    };
    const stop = listen(stream, { readable: attempt, end: ended, error: failed, close: closed });
    signal.addEventListener('abort', aborted, { once: true });
  });
}

/**
 * Reads a frame: two bytes of length, then its content.
 * @throws SvcError `protocol_error` if it is longer than `maxBytes`, and as `readExactly`
 */
export async function readFrame(stream: Readable, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  const length = new BinaryReader(await readExactly(stream, 2, signal)).u16();
  if (length > maxBytes) throw new ProtocolBreach(`A header of ${length} bytes is too long.`);
  return readExactly(stream, length, signal);
}

/**
 * Waits until the other side has read enough. A client that sends requests without reading stops receiving answers.
 * @throws SvcError `connect_failed` if the stream closes earlier, or the signal's reason
 */
export async function drained(stream: Writable, signal: AbortSignal): Promise<void> {
  if (!stream.writableNeedDrain) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const closed = (): void => reject(broken(stream.errored));
  const stop = listen(stream, { drain: resolve, close: closed });
  try {
    await abortable(promise, signal);
  } finally {
    stop();
  }
}

/** Destroys a stream after a delay for its last bytes. Later input is discarded. */
export function lingerThenDestroy(stream: Duplex, clock: Clock): void {
  const timer = clock.after(LINGER_MS, () => stream.destroy());
  stream.once('close', () => timer.cancel());
}

/**
 * Ends a stream of the other side with a status, for example a refusal. Destroys it early if the other side keeps
 * writing.
 */
export function endWith(stream: Duplex, status: ReplyStatus, clock: Clock): void {
  if (stream.destroyed) return;
  let discarded = 0;
  lingerThenDestroy(stream, clock);
  stream.on('data', (chunk: Uint8Array) => {
    discarded += chunk.length;
    if (discarded > REFUSAL_DISCARD_BYTES) stream.destroy();
  });
  stream.end(Uint8Array.of(status));
}

export const STATUS = {
  ok: 0,
  /** The caller names an agent without a recent proof on this connection. */
  proofNeeded: 1,
  /** The called agent is not on this node. */
  notHere: 2,
  accessDenied: 3,
  rateLimited: 4,
  noInbound: 5,
  /** This node has no handler for the purpose or kind. */
  unknownPurpose: 6,
  malformed: 7,
  /** The called side had an internal error. */
  failed: 8,
  tooLarge: 9,
  otherVersion: 10,
  otherNetwork: 11,
  /** The proof is invalid or expired, or a newer delegation of the agent is known. */
  badProof: 12,
  /** The bound service of the called agent accepts only calls. */
  callsOnly: 13,
  /** By the refusing node's clock, the proof is not valid yet or has expired. */
  clockWrong: 14,
} as const;

export type ReplyStatus = (typeof STATUS)[keyof typeof STATUS];

interface Meaning {
  readonly code: ErrorCode;
  /** Missing if the catalog's text is sufficient. */
  readonly message?: string;
}

const MEANING: Readonly<Record<Exclude<ReplyStatus, 0>, Meaning>> = {
  [STATUS.proofNeeded]: {
    code: 'protocol_error',
    message: 'The other node asks again for a proof that it was given.',
  },
  [STATUS.notHere]: { code: 'resolve_failed', message: 'The agent is no longer on the node that its record names.' },
  [STATUS.accessDenied]: { code: 'access_denied' },
  [STATUS.rateLimited]: { code: 'rate_limited', message: 'The other node limits us. Wait a little, then try again.' },
  [STATUS.noInbound]: { code: 'no_inbound' },
  [STATUS.callsOnly]: { code: 'calls_only' },
  [STATUS.unknownPurpose]: {
    code: 'protocol_error',
    message: 'The other node does not know what we ask for. It may run an older svcd.',
  },
  [STATUS.malformed]: { code: 'protocol_error', message: 'The other node did not understand us.' },
  [STATUS.failed]: { code: 'protocol_error', message: 'The other node failed while it answered.' },
  [STATUS.tooLarge]: { code: 'too_large' },
  [STATUS.otherVersion]: {
    code: 'protocol_error',
    message: 'The other node speaks another version of the link protocol. Update the older of the two.',
  },
  [STATUS.otherNetwork]: { code: 'connect_failed', message: 'The other node belongs to another network.' },
  [STATUS.badProof]: {
    code: 'access_denied',
    message: "The other node does not accept this agent's proof: its delegation has expired or was replaced.",
  },
  [STATUS.clockWrong]: {
    code: 'clock_wrong',
    message:
      'By the other node\'s clock, the delegation of this agent is not valid now; by the clock of this machine it is. One of the two clocks is wrong: "svc doctor" compares this machine\'s with others.',
  },
};

/** The status for errors on the called side. Others become `failed`. */
const OF_ERROR: Partial<Record<ErrorCode, ReplyStatus>> = {
  access_denied: STATUS.accessDenied,
  rate_limited: STATUS.rateLimited,
  no_inbound: STATUS.noInbound,
  calls_only: STATUS.callsOnly,
  too_large: STATUS.tooLarge,
  bad_delegation: STATUS.badProof,
  clock_wrong: STATUS.clockWrong,
};

/** A refusal with its status. The called side throws it to send it, and the calling side throws it on receipt. */
export class Refusal extends SvcError {
  /** One of `STATUS`, or a value of a newer version. */
  readonly refusal: number;

  /** @param text replaces the standard text of the status */
  constructor(status: number, text?: string) {
    const meaning = isRefusal(status) ? MEANING[status] : undefined;
    const message = text ?? meaning?.message;
    super(meaning?.code ?? 'protocol_error', message === undefined ? {} : { message });
    this.refusal = status;
  }
}

function isRefusal(status: number): status is Exclude<ReplyStatus, 0> {
  return status !== STATUS.ok && Object.hasOwn(MEANING, status);
}

/** The other side sent what no correct implementation sends. It is refused, and the breach counts against its node. */
export class ProtocolBreach extends SvcError {
  readonly answer: ReplyStatus;

  constructor(message: string, options: { readonly cause?: unknown; readonly answer?: ReplyStatus } = {}) {
    super('protocol_error', { message, cause: options.cause });
    this.answer = options.answer ?? STATUS.malformed;
  }
}

/** The status for a refusal, by its error. */
export function statusOf(error: unknown): ReplyStatus {
  if (error instanceof ProtocolBreach) return error.answer;
  if (error instanceof Refusal && isRefusal(error.refusal)) return error.refusal;
  return (error instanceof SvcError ? OF_ERROR[error.code] : undefined) ?? STATUS.failed;
}

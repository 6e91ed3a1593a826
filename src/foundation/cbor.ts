/**
 * Deterministic CBOR (RFC 8949, section 4.2): map keys sorted by their encoded bytes, shortest
 * numbers, definite lengths, text in valid UTF-8. The decoder accepts nothing else: what it returns
 * re-encodes to the very bytes it was given, so that one value has one encoding and a signature
 * covers it.
 */
import { decode, encode, type Token, Tokenizer } from 'cborg';
import { equalBytes } from './bytes.ts';

/** What our formats hold. */
export type CborValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly CborValue[]
  | { readonly [key: string]: CborValue };

/** How deep arrays and maps may stand in one another. */
export const MAX_CBOR_DEPTH = 16;

/** Items of one value, those inside of others included: each costs about a microsecond, however few bytes it has. */
export const MAX_CBOR_ITEMS = 4096;

const DECODE_OPTIONS = {
  allowIndefinite: false,
  allowUndefined: false,
  allowNaN: false,
  allowInfinity: false,
  allowBigInt: false,
  rejectDuplicateMapKeys: true,
  retainStringBytes: true,
  strict: true,
};

const ENCODE_OPTIONS = {
  ignoreUndefinedProperties: true,
  typeEncoders: {
    // Half of a surrogate pair has no UTF-8: it would silently become another character.
    string: (text: string) => {
      if (text.isWellFormed()) return null;
      throw new RangeError('text is not well-formed Unicode');
    },
  },
};

/**
 * Encodes a value; `undefined` members are left out.
 * @throws RangeError where a text is not well-formed Unicode
 */
export function encodeCbor(value: CborValue | { readonly [key: string]: CborValue | undefined }): Uint8Array {
  const bytes = encode(value, ENCODE_OPTIONS);
  // In Node the library sometimes returns a Buffer, whose memory others share.
  return bytes.constructor === Uint8Array ? bytes : new Uint8Array(bytes);
}

/** First byte of U+FEFF in UTF-8. */
const BYTE_ORDER_MARK = 0xef;

/** Reads the tokens of one value, with what the library leaves out: limits of depth and number, and U+FEFF in texts. */
class StrictTokenizer extends Tokenizer {
  /** How many items each open array and map still waits for, outermost first. */
  readonly #waiting: number[] = [];
  #items = 0;

  override next(): Token {
    if (++this.#items > MAX_CBOR_ITEMS) throw new RangeError('CBOR has too many items');
    while (this.#waiting.at(-1) === 0) this.#waiting.pop();
    const token = super.next();
    const top = this.#waiting.length - 1;
    const open = this.#waiting[top];
    if (open !== undefined) this.#waiting[top] = open - 1;
    const { name } = token.type;
    if (name === 'string' && token.byteValue?.[0] === BYTE_ORDER_MARK)
      token.value = new TextDecoder('utf-8', { ignoreBOM: true }).decode(token.byteValue);
    if (name === 'array' || name === 'map') {
      this.#waiting.push(Number(token.value) * (name === 'map' ? 2 : 1));
      if (this.#waiting.length > MAX_CBOR_DEPTH) throw new RangeError('CBOR is nested too deep');
    }
    return token;
  }
}

/**
 * Decodes deterministic CBOR of at most `maxBytes` and `MAX_CBOR_ITEMS` items, nested at most `MAX_CBOR_DEPTH` deep.
 * @throws RangeError where the bytes are too many, malformed, or not the deterministic encoding
 */
export function decodeCbor(bytes: Uint8Array, maxBytes: number): unknown {
  if (bytes.length > maxBytes) throw new RangeError(`CBOR of ${bytes.length} bytes is over the limit of ${maxBytes}`);
  let value: unknown;
  try {
    // A Buffer's slices would share its memory, which may be a socket's.
    const plain = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    value = decode(plain, { ...DECODE_OPTIONS, tokenizer: new StrictTokenizer(plain, DECODE_OPTIONS) });
    if (equalBytes(encode(value), bytes)) return value;
  } catch (error) {
    throw new RangeError('malformed CBOR', { cause: error });
  }
  throw new RangeError('CBOR is not in its deterministic encoding');
}

/**
 * A decoded map that has all of `required`, and beside them nothing but some of `optional`, or
 * anything where `optional` is `'any'`; null where it is not.
 */
export function asMap(
  value: unknown,
  required: readonly string[],
  optional: readonly string[] | 'any' = [],
): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Uint8Array) return null;
  const map: Record<string, unknown> = { ...value };
  if (!required.every((key) => Object.hasOwn(map, key))) return null;
  if (optional === 'any') return map;
  return Object.keys(map).every((key) => required.includes(key) || optional.includes(key)) ? map : null;
}

/** True for an unsigned integer that a JavaScript number holds exactly, up to `max`. */
export function isUint(value: unknown, max: number = Number.MAX_SAFE_INTEGER): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max;
}

/** True for bytes of exactly `length`, or of any length where it is left out. */
export function isBytes(value: unknown, length?: number): value is Uint8Array {
  return value instanceof Uint8Array && (length === undefined || value.length === length);
}

/**
 * Deterministic CBOR (RFC 8949, section 4.2): map keys sorted by their encoded bytes, shortest numbers, definite
 * lengths, text in valid UTF-8. The decoder rejects everything else, so a decoded value re-encodes to the same bytes
 * and one value has one encoding that a signature covers.
 */
import { decode, encode, type Token, Tokenizer } from 'cborg';
import { equalBytes } from './bytes.ts';

/** Values that our formats use. */
export type CborValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly CborValue[]
  | { readonly [key: string]: CborValue };

/** Maximum nesting depth of arrays and maps. */
export const MAX_CBOR_DEPTH = 16;

/** Maximum number of items in one value, nested items included. Each costs about a microsecond, however small it is. */
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
    // An unpaired surrogate has no UTF-8 encoding; it would silently become another character.
    string: (text: string) => {
      if (text.isWellFormed()) return null;
      throw new RangeError('text is not well-formed Unicode');
    },
  },
};

/**
 * Encodes a value; `undefined` members are omitted.
 * @throws RangeError if a text is not well-formed Unicode
 */
export function encodeCbor(value: CborValue | { readonly [key: string]: CborValue | undefined }): Uint8Array {
  const bytes = encode(value, ENCODE_OPTIONS);
  // In Node the library sometimes returns a Buffer that shares its memory.
  return bytes.constructor === Uint8Array ? bytes : new Uint8Array(bytes);
}

/** First byte of U+FEFF in UTF-8. */
const BYTE_ORDER_MARK = 0xef;

/**
 * Reads the tokens of one value. Adds what the library lacks: limits of depth and item count, and support for U+FEFF in
 * texts.
 */
class StrictTokenizer extends Tokenizer {
  /** Number of items that each open array and map still expects, outermost first. */
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
 * @throws RangeError if the input is too long, malformed or not deterministic
 */
export function decodeCbor(bytes: Uint8Array, maxBytes: number): unknown {
  if (bytes.length > maxBytes) throw new RangeError(`CBOR of ${bytes.length} bytes is over the limit of ${maxBytes}`);
  let value: unknown;
  try {
    // Slices of a Buffer would share its memory, which may belong to a socket.
    const plain = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    value = decode(plain, { ...DECODE_OPTIONS, tokenizer: new StrictTokenizer(plain, DECODE_OPTIONS) });
    if (equalBytes(encode(value), bytes)) return value;
  } catch (error) {
    throw new RangeError('malformed CBOR', { cause: error });
  }
  throw new RangeError('CBOR is not in its deterministic encoding');
}

/**
 * Returns a decoded map if it has all `required` keys and no others except `optional` ones; any others if `optional` is
 * `'any'`. Otherwise null.
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

/** True for an unsigned integer up to `max` that a JavaScript number represents exactly. */
export function isUint(value: unknown, max: number = Number.MAX_SAFE_INTEGER): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max;
}

/** True for bytes of exactly `length`, or of any length if `length` is omitted. */
export function isBytes(value: unknown, length?: number): value is Uint8Array {
  return value instanceof Uint8Array && (length === undefined || value.length === length);
}

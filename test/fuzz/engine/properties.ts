/** What holds for decoders, whatever they decode. */
import { isDeepStrictEqual } from 'node:util';
import { equalBytes, toHex } from '../../../src/foundation/bytes.ts';
import { decodeCbor } from '../../../src/foundation/cbor.ts';
import { type ErrorCode, SvcError } from '../../../src/foundation/errors.ts';
import type { FuzzTarget } from './target.ts';

/** How deep, and how far into a list, two values are told apart. */
const MAX_SHAPE_DEPTH = 4;
const MAX_SHAPE_ITEMS = 6;
const MAX_CBOR_BYTES = 1024 * 1024;

/** The form of a value in a few letters: its members and the magnitude of what they hold, not their contents. */
export function shapeOf(value: unknown, depth = 0): string {
  if (typeof value === 'number') return value < 0 ? 'm' : `n${Math.ceil(Math.log2(value + 1) / 8)}`;
  if (typeof value === 'string') return `s${Math.ceil(Math.log2(value.length + 1))}`;
  if (value instanceof Uint8Array) return `b${Math.ceil(Math.log2(value.length + 1))}`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (depth >= MAX_SHAPE_DEPTH) return '…';
  if (Array.isArray(value))
    return `[${Math.ceil(Math.log2(value.length + 1))} ${value
      .slice(0, MAX_SHAPE_ITEMS)
      .map((item) => shapeOf(item, depth + 1))
      .join()}]`;
  const members = Object.entries(value).slice(0, 2 * MAX_SHAPE_ITEMS);
  return `{${members.map(([key, member]) => `${key.slice(0, 12)}:${shapeOf(member, depth + 1)}`).join()}}`;
}

/** What an error says, with what caused it: without the figures, of which there are too many. */
export function reasonOf(error: Error): string {
  const cause = error.cause instanceof Error ? ` < ${reasonOf(error.cause)}` : '';
  return `${error.message.replaceAll(/\d+/g, '0')}${cause}`.slice(0, 200);
}

/** What CBOR there is in bytes: a decoder that only says "no" tells nothing of how near an input came. */
export function cborShape(bytes: Uint8Array): string {
  try {
    return shapeOf(decodeCbor(bytes, MAX_CBOR_BYTES));
  } catch (error) {
    return error instanceof Error ? reasonOf(error) : 'unknown';
  }
}

/** The word for a refusal that is allowed; throws the error where it is not. */
export function refusal(error: unknown, codes: readonly ErrorCode[]): string {
  if (error instanceof SvcError && codes.includes(error.code)) return `${error.code}: ${reasonOf(error)}`;
  throw error;
}

/** Fails a property. */
export function broken(what: string, ...values: readonly unknown[]): Error {
  const shown = values.map((value) => (value instanceof Uint8Array ? toHex(value) : JSON.stringify(value)));
  return new Error([what, ...shown].join('\n  '));
}

export interface DecoderTarget<T> extends Pick<FuzzTarget, 'name' | 'inputs' | 'maxBytes' | 'words' | 'edit'> {
  readonly seeds: () => readonly Uint8Array[];
  /** Null, or an error with one of `refuses`, is a refusal. */
  readonly decode: (bytes: Uint8Array) => T | null;
  readonly refuses?: readonly ErrorCode[];
  readonly encode?: (value: T) => Uint8Array;
  /** True where each meaning has one encoding, so that what is decoded encodes to the very same bytes. */
  readonly canonical?: boolean;
  /** Further properties of what was decoded; returns a word for it. */
  readonly check?: (value: T, bytes: Uint8Array) => string | void;
}

/**
 * A target for a decoder: it refuses as it says, takes nothing that its encoder would not make (where
 * `canonical`), reads back what was encoded, and leaves its input alone.
 */
export function decoder<T>(options: DecoderTarget<T>): FuzzTarget {
  const { seeds, decode, refuses = [], encode, canonical = false, check, ...rest } = options;
  const run = (input: Uint8Array): string => {
    const before = Uint8Array.from(input);
    let value: T | null;
    try {
      value = decode(input);
    } catch (error) {
      return refusal(error, refuses);
    }
    if (!equalBytes(before, input)) throw broken('the input was changed', before, input);
    if (value === null) return `no: ${cborShape(input)}`;
    if (encode !== undefined) {
      const again = encode(value);
      if (canonical && !equalBytes(again, input)) throw broken('it encodes to other bytes', input, again);
      const back = decode(again);
      if (!canonical && !isDeepStrictEqual(back, value)) throw broken('it reads back otherwise', input, again);
    }
    return `${check?.(value, input) ?? ''} ${shapeOf(value)}`;
  };
  return {
    ...rest,
    prepare: () => {
      const all = seeds();
      const refused = all.filter((seed) => {
        const said = run(Uint8Array.from(seed));
        return said.startsWith('no: ') || refuses.some((code) => said.startsWith(`${code}: `));
      });
      if (refused.length > 0) throw broken(`${rest.name}: a seed is refused`, ...refused);
      return { seeds: all, run };
    },
  };
}

/** Text of UTF-8 bytes; what is no UTF-8 is text all the same. */
export function textOf(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

export function bytesOf(...texts: readonly string[]): Uint8Array[] {
  return texts.map((text) => new TextEncoder().encode(text));
}

/** Properties of all decoders. */
import { isDeepStrictEqual } from 'node:util';
import { equalBytes, toHex } from '../../../src/foundation/bytes.ts';
import { decodeCbor } from '../../../src/foundation/cbor.ts';
import { type ErrorCode, SvcError } from '../../../src/foundation/errors.ts';
import type { FuzzTarget } from './target.ts';

/** Maximum depth and list length at which shapes differ. */
const MAX_SHAPE_DEPTH = 4;
const MAX_SHAPE_ITEMS = 6;
const MAX_CBOR_BYTES = 1024 * 1024;

/** A short text for the shape of a value: its members and the magnitude of their values, not the contents. */
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

/** The message of an error and its causes, without numbers, which vary too much. */
export function reasonOf(error: Error): string {
  const cause = error.cause instanceof Error ? ` < ${reasonOf(error.cause)}` : '';
  return `${error.message.replaceAll(/\d+/g, '0')}${cause}`.slice(0, 200);
}

/** The shape of CBOR in bytes. Without it, a decoder that only refuses gives no hint how close an input came. */
export function cborShape(bytes: Uint8Array): string {
  try {
    return shapeOf(decodeCbor(bytes, MAX_CBOR_BYTES));
  } catch (error) {
    return error instanceof Error ? reasonOf(error) : 'unknown';
  }
}

/** Returns the outcome of an allowed refusal; throws any other error. */
export function refusal(error: unknown, codes: readonly ErrorCode[]): string {
  if (error instanceof SvcError && codes.includes(error.code)) return `${error.code}: ${reasonOf(error)}`;
  throw error;
}

/** The error of a broken property. */
export function violation(what: string, ...values: readonly unknown[]): Error {
  const shown = values.map((value) => (value instanceof Uint8Array ? toHex(value) : JSON.stringify(value)));
  return new Error([what, ...shown].join('\n  '));
}

export interface DecoderTarget<T> extends Pick<FuzzTarget, 'name' | 'inputs' | 'maxBytes' | 'words' | 'edit'> {
  readonly seeds: () => readonly Uint8Array[];
  /** Null, or an error with a code in `refuses`, is a refusal. */
  readonly decode: (bytes: Uint8Array) => T | null;
  readonly refuses?: readonly ErrorCode[];
  readonly encode?: (value: T) => Uint8Array;
  /** True if each value has only one encoding, so that a decoded input encodes to the same bytes. */
  readonly canonical?: boolean;
  /** Checks further properties of the decoded value; returns an outcome. */
  readonly check?: (value: T, bytes: Uint8Array) => string | void;
}

/**
 * A target for a decoder. The decoder refuses only with its codes, accepts only bytes that its encoder would produce
 * (if `canonical`), decodes what the encoder wrote, and does not change its input.
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
    if (!equalBytes(before, input)) throw violation('the input was changed', before, input);
    if (value === null) return `no: ${cborShape(input)}`;
    if (encode !== undefined) {
      const again = encode(value);
      if (canonical && !equalBytes(again, input)) throw violation('it encodes to other bytes', input, again);
      const back = decode(again);
      if (!canonical && !isDeepStrictEqual(back, value)) throw violation('it decodes to another value', input, again);
    }
    return `${check?.(value, input) ?? ''} ${shapeOf(value)}`;
  };
  return {
    ...rest,
    prepare: () => {
      const all = seeds();
      const refused = all.filter((seed) => {
        const outcome = run(Uint8Array.from(seed));
        return outcome.startsWith('no: ') || refuses.some((code) => outcome.startsWith(`${code}: `));
      });
      if (refused.length > 0) throw violation(`${rest.name}: a seed is refused`, ...refused);
      return { seeds: all, run };
    },
  };
}

/** Decodes UTF-8, with replacement characters for invalid bytes. */
export function textOf(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

export function bytesOf(...texts: readonly string[]): Uint8Array[] {
  return texts.map((text) => new TextEncoder().encode(text));
}

/** Edits of bytes without knowledge of their format. */
import type { Random } from '../../support/random.ts';

/** Numbers at which an encoding, a sign or a size changes. */
export const EDGES: readonly bigint[] = [
  ...[0n, 1n, 2n, 23n, 24n, 127n, 128n, 255n, 256n, 1000n, 4095n, 4096n, 32_767n, 32_768n, 65_535n, 65_536n],
  ...[2n ** 24n - 1n, 2n ** 24n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 48n - 1n],
  ...[2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n],
];

/** Maximum copies of a piece in one edit. */
const MAX_COPIES = 64;
/** Maximum length of an inserted random piece, in bytes. */
const MAX_NOISE_BYTES = 16;

export type Edit = (input: Uint8Array, random: Random) => Uint8Array;

export function join(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

export function noise(random: Random, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random.below(256));
}

/** The bytes of a number, big-endian or reversed. */
function numberBytes(value: bigint, size: number, reversed: boolean): Uint8Array {
  const bytes = Uint8Array.from({ length: size }, (_, i) => Number((value >> BigInt(8 * (size - 1 - i))) & 0xffn));
  return reversed ? bytes.reverse() : bytes;
}

/** Two offsets, the first not greater than the second. */
function span(input: Uint8Array, random: Random): readonly [number, number] {
  const [a, b] = [random.below(input.length + 1), random.below(input.length + 1)];
  // Short pieces are fields, long ones are lists.
  return random.chance(0.7) ? [a, Math.min(input.length, a + 1 + random.below(8))] : [Math.min(a, b), Math.max(a, b)];
}

/** `input` with the bytes from `from` to `to` replaced by `bytes`. */
function replaced(input: Uint8Array, from: number, to: number, bytes: Uint8Array): Uint8Array {
  return join(input.subarray(0, from), bytes, input.subarray(to));
}

/** Overwrites the bytes at an offset, up to the end of the input. */
function over(input: Uint8Array, at: number, bytes: Uint8Array): Uint8Array {
  return replaced(input, at, Math.min(input.length, at + bytes.length), bytes.subarray(0, input.length - at));
}

const EDITS: readonly Edit[] = [
  function flipBit(input, random) {
    const at = random.below(input.length);
    return over(input, at, Uint8Array.of((input[at] ?? 0) ^ (1 << random.below(8))));
  },
  function setByte(input, random) {
    return over(input, random.below(input.length), noise(random, 1));
  },
  function countOn(input, random) {
    const at = random.below(input.length);
    return over(input, at, Uint8Array.of((input[at] ?? 0) + random.below(33) - 16));
  },
  function setNumber(input, random) {
    const size = random.pick([1, 2, 3, 4, 6, 8]);
    return over(input, random.below(input.length), numberBytes(random.pick(EDGES), size, random.chance(0.2)));
  },
  function insertNoise(input, random) {
    const at = random.below(input.length + 1);
    return replaced(input, at, at, noise(random, 1 + random.below(MAX_NOISE_BYTES)));
  },
  function insertNumber(input, random) {
    const at = random.below(input.length + 1);
    return replaced(input, at, at, numberBytes(random.pick(EDGES), random.pick([1, 2, 4, 8]), false));
  },
  function remove(input, random) {
    const [from, to] = span(input, random);
    return replaced(input, from, to, new Uint8Array());
  },
  function cutOff(input, random) {
    return input.subarray(0, random.below(input.length + 1));
  },
  function repeat(input, random) {
    const [from, to] = span(input, random);
    const copies = random.chance(0.8) ? 1 : 1 + random.below(MAX_COPIES);
    return replaced(input, to, to, join(...Array.from({ length: copies }, () => input.subarray(from, to))));
  },
  function move(input, random) {
    const [from, to] = span(input, random);
    const rest = replaced(input, from, to, new Uint8Array());
    const at = random.below(rest.length + 1);
    return replaced(rest, at, at, input.subarray(from, to));
  },
  function copyOver(input, random) {
    const [from, to] = span(input, random);
    return over(input, random.below(input.length + 1), input.subarray(from, to));
  },
];

/** Applies a random edit that works for any bytes. */
export const editBytes: Edit = (input, random) =>
  input.length === 0 ? noise(random, 1 + random.below(MAX_NOISE_BYTES)) : random.pick(EDITS)(input, random);

/** Joins the start of one input and the end of another. */
export function splice(a: Uint8Array, b: Uint8Array, random: Random): Uint8Array {
  return join(a.subarray(0, random.below(a.length + 1)), b.subarray(random.below(b.length + 1)));
}

/** Inserts a word, or overwrites as many bytes with it. */
export function putWord(input: Uint8Array, word: string, random: Random): Uint8Array {
  const bytes = new TextEncoder().encode(word);
  const at = random.below(input.length + 1);
  return replaced(input, at, random.chance(0.5) ? at : Math.min(input.length, at + bytes.length), bytes);
}

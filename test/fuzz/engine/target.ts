/** What a fuzz target is: a name, the inputs that it starts from, and what has to hold for every input. */
import type { Random } from '../../support/random.ts';

/** A target that is ready to be fed. */
export interface Prepared {
  /** Real encodings, some hundred bytes each, from which all other inputs are made. */
  readonly seeds: readonly Uint8Array[];
  /**
   * Feeds one input. Throws where a property does not hold.
   * @returns what became of the input, in a few words: an input with a new word is a seed from then on
   */
  readonly run: (input: Uint8Array) => string | Promise<string>;
  readonly close?: () => void | Promise<void>;
}

export interface FuzzTarget {
  /** Also the name of its folder in `test/fuzz/corpus/`. */
  readonly name: string;
  /** Inputs in the gate: so many that a target takes about a second at most. */
  readonly inputs: number;
  /** Longest input, bytes. */
  readonly maxBytes?: number;
  /** Words that parsers of texts look for. */
  readonly words?: readonly string[];
  /** An edit that knows the form of the inputs; null where it has none for this one. */
  readonly edit?: (input: Uint8Array, random: Random) => Uint8Array | null;
  readonly prepare: () => Prepared | Promise<Prepared>;
}

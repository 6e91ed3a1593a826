/** A fuzz target: a name, seed inputs, and the properties of every input. */
import type { Random } from '../../support/random.ts';

/** A target that is ready to run. */
export interface Prepared {
  /** Real encodings, a few hundred bytes each, from which all other inputs are made. */
  readonly seeds: readonly Uint8Array[];
  /**
   * Runs one input. Throws if a property is broken.
   * @returns the outcome in a few words; an input with a new outcome becomes a seed
   */
  readonly run: (input: Uint8Array) => string | Promise<string>;
  readonly close?: () => void | Promise<void>;
}

export interface FuzzTarget {
  /** Also the name of its folder in `test/fuzz/corpus/`. */
  readonly name: string;
  /** Number of inputs in the gate, chosen so that the target takes at most about a second. */
  readonly inputs: number;
  /** Maximum length of an input, in bytes. */
  readonly maxBytes?: number;
  /** Words that parsers of texts look for. */
  readonly words?: readonly string[];
  /** An edit that knows the format of the inputs; null if it cannot edit this one. */
  readonly edit?: (input: Uint8Array, random: Random) => Uint8Array | null;
  readonly prepare: () => Prepared | Promise<Prepared>;
}

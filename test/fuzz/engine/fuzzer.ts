/**
 * Makes inputs from seeds and from inputs with new outcomes, runs a target with them, and stores inputs that break it.
 */
import { Random } from '../../support/random.ts';
import { editBytes, putWord, splice } from './bytes.ts';
import { editCbor } from './cbor.ts';
import type { FuzzTarget, Prepared } from './target.ts';

/** Default maximum length of an input, in bytes. */
const MAX_BYTES = 8 * 1024;
/** Maximum number of inputs in the pool of new outcomes. */
const MAX_POOL = 1000;
/** Maximum edits of one input. */
const MAX_EDITS = 6;

/** An input that broke a property, and the error. */
export interface Finding {
  readonly input: Uint8Array;
  readonly error: unknown;
}

export interface FuzzReport {
  readonly inputs: number;
  /** Number of inputs by outcome. */
  readonly outcomes: ReadonlyMap<string, number>;
  readonly finding: Finding | null;
  /** The slowest input, and its time in milliseconds. */
  readonly slowest: { readonly input: Uint8Array; readonly ms: number };
}

/** Objects that no input may change. */
const PROTOTYPES: readonly object[] = [Object.prototype, Array.prototype];

function pollution(): number {
  return PROTOTYPES.reduce((sum, prototype) => sum + Reflect.ownKeys(prototype).length, 0);
}

export class Fuzzer {
  readonly #target: FuzzTarget;
  readonly #prepared: Prepared;
  readonly #random: Random;
  readonly #pool: Uint8Array[];
  readonly #outcomes = new Map<string, number>();
  readonly #clean = pollution();
  #inputs = 0;
  #slowest: FuzzReport['slowest'] = { input: new Uint8Array(), ms: 0 };

  /** The same seed produces the same inputs, as long as the target's outcomes are the same. */
  constructor(target: FuzzTarget, prepared: Prepared, seed: number) {
    this.#target = target;
    this.#prepared = prepared;
    this.#random = new Random(seed);
    this.#pool = [...prepared.seeds];
  }

  /** Runs the given inputs, then generated ones until `isEnough`, or until one breaks a property. */
  async run(first: readonly Uint8Array[], isEnough: (inputs: number) => boolean): Promise<FuzzReport> {
    // Most inputs end in an error, and capturing stacks would take most of the time.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      return await this.#run(first, isEnough);
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }

  async #run(first: readonly Uint8Array[], isEnough: (inputs: number) => boolean): Promise<FuzzReport> {
    let finding: Finding | null = null;
    for (const input of [...this.#prepared.seeds, ...first]) finding ??= await this.#feed(input);
    while (finding === null && !isEnough(this.#inputs)) finding = await this.#feed(this.#next());
    return { inputs: this.#inputs, outcomes: this.#outcomes, finding, slowest: this.#slowest };
  }

  #next(): Uint8Array {
    const random = this.#random;
    // Half of the inputs start from a seed, because inputs far from every seed are mostly rejected early.
    let input = random.pick(random.chance(0.5) ? this.#prepared.seeds : this.#pool);
    for (let edits = 1 + random.below(random.chance(0.5) ? 1 : MAX_EDITS); edits > 0; edits--)
      input = this.#edit(input);
    return input.subarray(0, this.#target.maxBytes ?? MAX_BYTES);
  }

  #edit(input: Uint8Array): Uint8Array {
    const random = this.#random;
    const { edit, words } = this.#target;
    const chance = random.next();
    if (chance < 0.5) {
      const edited = edit === undefined ? editCbor(input, random) : edit(input, random);
      if (edited !== null) return edited;
    }
    if (chance < 0.6) return splice(input, random.pick(this.#pool), random);
    if (words !== undefined && chance < 0.8) return putWord(input, random.pick(words), random);
    return editBytes(input, random);
  }

  async #feed(input: Uint8Array): Promise<Finding | null> {
    this.#inputs++;
    const before = performance.now();
    try {
      const pending = this.#prepared.run(Uint8Array.from(input));
      const outcome = typeof pending === 'string' ? pending : await pending;
      if (pollution() !== this.#clean) throw new Error('a prototype has another member');
      this.#note(input, outcome);
    } catch (error) {
      return { input, error };
    }
    const ms = performance.now() - before;
    if (ms > this.#slowest.ms) this.#slowest = { input, ms };
    return null;
  }

  #note(input: Uint8Array, outcome: string): void {
    const count = this.#outcomes.get(outcome) ?? 0;
    if (count === 0 && this.#outcomes.size >= MAX_POOL) return;
    this.#outcomes.set(outcome, count + 1);
    if (count === 0) this.#pool.push(input);
  }
}

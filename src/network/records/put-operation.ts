/**
 * One record on its way to the nodes closest to its key. Nodes are given it as soon as they answer
 * and stand close enough, while others are still searched for; it is done when enough have kept it.
 */

import type { Address } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { compareFreshness, type SignedRecord } from '../../foundation/records/record.ts';
import { BEYOND, type Lookup, type LookupAnswer } from './lookup.ts';
import type { StoreCode } from './messages.ts';
import type { PutOptions, PutResult } from './types.ts';

/** So many acknowledgements at least, where half of those near a key are enough. */
export const FEWEST_REPLICAS = 4;

/**
 * Where nodes are nearby, no more of them than are needed are given a record at first, and the others so much later:
 * milliseconds. What such nodes take for an answer is work, and some share a machine with others or with us.
 */
export const HOLD_MS = 20;

/** A node's verdict on a record; `newer` is what it holds instead, verified. */
export interface StoreVerdict {
  readonly code: StoreCode;
  readonly newer: SignedRecord | null;
  /** What the node says that the note was removed with; not verified. */
  readonly token: Uint8Array | null;
}

interface PutOperationOptions {
  /** How many acknowledgements end the wait; more nodes are given the record in the background. */
  readonly wanted: number;
  /** How many of the closest nodes are given the record. */
  readonly width: number;
  /** After how many milliseconds a node that has not acknowledged is no longer waited for. */
  readonly patienceMs: number;
}

interface PutOperationDependencies {
  readonly clock: Clock;
  /** Runs what is done later, with what else is then. */
  readonly later: Clock['after'];
  /** Whether a node answers sooner than `HOLD_MS`. */
  readonly isNearby: (node: Address) => boolean;
  /** Hands the record to a node; null where it does not answer. */
  readonly store: (at: LookupAnswer) => Promise<StoreVerdict | null>;
  /** Keeps a copy at this node if the record belongs here as well: false if there is no room. */
  readonly keep: (() => Promise<boolean>) | null;
  /** Told how many other nodes keep it, each time that there is one more. */
  readonly onKept?: PutOptions['onKept'];
  readonly onWhole?: PutOptions['onWhole'];
}

export class PutOperation {
  readonly #options: PutOperationOptions;
  readonly #deps: PutOperationDependencies;
  readonly #given = new Set<LookupAnswer>();
  readonly #refused: Record<string, number> = {};
  readonly #done = Promise.withResolvers<void>();
  /** Keys of the nodes that keep it: one that answers at several addresses counts once. */
  readonly #keepers = new Set<string>();
  #newer: SignedRecord | null = null;
  /** Nodes that were given the record and have not answered, and those that took too long. */
  readonly #waiting = new Set<LookupAnswer>();
  readonly #overdue = new Set<LookupAnswer>();
  /** This node is writing its own copy, which is not a replica: it goes when the node goes. */
  #isKeeping = false;
  #isHere = false;
  #searched = false;
  #isAnswered = false;
  #isWhole = false;
  /** Until the others are given it; null where none is held back. */
  #holding: Timer | null = null;
  #holdsNone = false;
  #lookup: Lookup | null = null;

  constructor(options: PutOperationOptions, dependencies: PutOperationDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  /** Runs along a lookup, whose answers its owner hands on to `advance`. Rejects where this node cannot write. */
  async run(lookup: Lookup): Promise<PutResult> {
    this.#lookup = lookup;
    this.#keepHere();
    detach(
      lookup.finished.then(() => {
        this.advance(lookup);
        this.#searched = true;
        this.#settle();
      }),
    );
    await this.#done.promise;
    return this.#result();
  }

  #keepHere(): void {
    const { keep } = this.#deps;
    if (keep === null) return;
    this.#isKeeping = true;
    keep().then(
      (isKept) => {
        this.#isHere = isKept;
        this.#isKeeping = false;
        this.#settle();
      },
      (error: unknown) => this.#done.reject(error),
    );
  }

  #keptBy(nodeKey: Uint8Array): void {
    this.#keepers.add(toHex(nodeKey));
    this.#deps.onKept?.(this.#keepers.size);
  }

  #result(): PutResult {
    const here: Pick<PutResult, 'isHere'> = this.#isHere ? { isHere: true } : {};
    return { replicas: this.#keepers.size, newer: this.#newer, refused: { ...this.#refused }, ...here };
  }

  /** Gives the record to every node that has answered and now stands among the closest. */
  advance(lookup: Lookup): void {
    // protocol-dht.md, step 10
    const { width } = this.#options;
    for (const answer of lookup.within(width)) {
      if (this.#given.size >= 2 * lookup.beyond(width)) return;
      if (answer.token === null || this.#given.has(answer)) continue;
      if (this.#holdsBack(answer, lookup)) return;
      this.#give(answer);
    }
  }

  /** Whether a node is given it later, as those that have it already are enough for an answer and will give it soon. */
  #holdsBack({ address }: LookupAnswer, lookup: Lookup): boolean {
    if (this.#deps.onWhole === undefined || this.#holdsNone || lookup.looksDense) return false;
    if (!this.#deps.isNearby(address)) this.#holdsNone = true;
    else if (this.#given.size >= this.#needed(lookup)) {
      this.#holding ??= this.#deps.later(HOLD_MS, () => {
        this.#giveRest();
        this.#settle();
      });
      return true;
    }
    return false;
  }

  #giveRest(): void {
    this.#holdsNone = true;
    this.#holding?.cancel();
    this.#holding = null;
    if (this.#lookup !== null) this.advance(this.#lookup);
  }

  /** Ends the wait with what has been acknowledged so far. */
  stop(): void {
    this.#holding?.cancel();
    this.#isAnswered = true;
    this.#done.resolve();
  }

  #give(answer: LookupAnswer): void {
    this.#given.add(answer);
    this.#waiting.add(answer);
    const timer = this.#deps.clock.after(this.#options.patienceMs, () => {
      this.#overdue.add(answer);
      this.#settle();
    });
    detach(
      this.#deps.store(answer).then((verdict) => {
        timer.cancel();
        this.#waiting.delete(answer);
        if (verdict !== null) this.#count(verdict, answer);
        // Those that were given it are no longer enough.
        if (verdict?.code !== 'kept' && this.#holding !== null) this.#giveRest();
        this.#settle();
      }),
    );
  }

  #count(verdict: StoreVerdict, { reply }: LookupAnswer): void {
    if (verdict.code === 'kept') {
      this.#keptBy(reply.nodeKey);
      return;
    }
    this.#refused[verdict.code] = (this.#refused[verdict.code] ?? 0) + 1;
    const { newer } = verdict;
    if (newer !== null && (this.#newer === null || compareFreshness(newer, this.#newer) > 0)) this.#newer = newer;
  }

  #settle(): void {
    const kept = this.#keepers.size;
    const awaited = kept > 0 ? this.#waiting.difference(this.#overdue).size : this.#waiting.size;
    if (this.#isWhole) return;
    this.#isWhole = this.#searched && awaited === 0 && !this.#isKeeping && this.#holding === null;
    if (this.#isAnswered) {
      if (this.#isWhole) this.#deps.onWhole?.(this.#result());
    } else if (this.#isWhole || kept >= this.#enough()) {
      this.#isAnswered = true;
      this.#done.resolve();
    }
  }

  /** How many have to keep it before there is an answer. */
  #enough(): number {
    const { wanted } = this.#options;
    // Where the closest may be in league, enough means so many that others are among them.
    if (this.#lookup?.looksDense === true) return wanted * BEYOND;
    if (this.#lookup === null || !this.#searched || this.#deps.onWhole === undefined) return wanted;
    return this.#needed(this.#lookup);
  }

  /** Of networks so small that nearly all of their nodes would have to answer, half: who reads there hears them all. */
  #needed(lookup: Lookup): number {
    const { wanted, width } = this.#options;
    return Math.min(wanted, Math.max(FEWEST_REPLICAS, Math.ceil(lookup.within(width).length / 2)));
  }
}

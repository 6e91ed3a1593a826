/**
 * How many talks about rooms are answered at one time. Whoever has not said yet which room it means,
 * and may be anybody, waits at the door: when that is full the one that waits longest goes, so that
 * silent strangers keep nobody out. Inside are members only.
 */
import type { Aid } from '../../foundation/identity/aid.ts';
import { Tally } from '../../foundation/tally.ts';

/** Talks that wait at the door. */
const MAX_AT_DOOR = 64;
/** Talks with members at one time, of all and of one: one calls for each local agent that is in a room with it. */
const MAX_INSIDE = 128;
const MAX_INSIDE_OF_ONE = 32;

interface Visitor {
  readonly caller: Aid;
  destroy(): unknown;
}

export class TalkSlots {
  readonly #door = new Set<Visitor>();
  readonly #inside = new Set<Visitor>();
  readonly #insideOf = new Tally<Aid>();

  /** Lets somebody wait at the door. */
  knock(visitor: Visitor): void {
    this.#door.add(visitor);
    if (this.#door.size <= MAX_AT_DOOR) return;
    for (const longest of this.#door) {
      this.#door.delete(longest);
      longest.destroy();
      break;
    }
  }

  /** Lets a member in; false where there are too many. */
  enter(visitor: Visitor): boolean {
    this.#door.delete(visitor);
    if (this.#inside.size >= MAX_INSIDE || this.#insideOf.of(visitor.caller) >= MAX_INSIDE_OF_ONE) return false;
    this.#inside.add(visitor);
    this.#insideOf.add(visitor.caller);
    return true;
  }

  /** Takes notice that a talk is over, wherever it stood. */
  leave(visitor: Visitor): void {
    this.#door.delete(visitor);
    if (this.#inside.delete(visitor)) this.#insideOf.add(visitor.caller, -1);
  }
}

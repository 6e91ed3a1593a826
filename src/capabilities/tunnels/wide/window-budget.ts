/** What all wide tunnel connections together may keep for readers that are behind, of either direction. */
import { Tally } from '../../../foundation/tally.ts';

/** With one other node or agent, bytes. */
export const MAX_WINDOWS_PER_PEER_BYTES = 64 * 1024 * 1024;
/** With all of them, bytes. */
export const MAX_WINDOWS_BYTES = 256 * 1024 * 1024;
/** The part of both that windows may grow into; the rest is for new connections. */
const GROWTH = 0.5;

export class WindowBudget {
  readonly #taken = new Tally();

  /**
   * Takes bytes for a connection with a peer; false where there is no room.
   * @param part of the budget that may be used up, 0 to 1
   */
  take(peer: string, bytes: number, part = 1): boolean {
    if (!this.hasRoom(peer, bytes, part)) return false;
    this.#taken.add(peer, bytes);
    return true;
  }

  /** Whether `take` would take them. */
  hasRoom(peer: string, bytes: number, part = 1): boolean {
    const { total } = this.#taken;
    return (
      this.#taken.of(peer) + bytes <= part * MAX_WINDOWS_PER_PEER_BYTES && total + bytes <= part * MAX_WINDOWS_BYTES
    );
  }

  /** Gives bytes back. */
  give(peer: string, bytes: number): void {
    this.#taken.add(peer, -bytes);
  }
}

/** The part of the budget that one connection has taken. */
export class WindowShare {
  readonly #budget: WindowBudget;
  readonly #peer: string;
  #taken = 0;

  constructor(budget: WindowBudget, peer: string) {
    this.#budget = budget;
    this.#peer = peer;
  }

  /** Takes what a new connection needs; false where there is no room. */
  begin(bytes: number): boolean {
    return this.#take(bytes, 1);
  }

  /** Takes more; false where there is no room. */
  grow(bytes: number): boolean {
    return this.#take(bytes, GROWTH);
  }

  #take(bytes: number, part: number): boolean {
    if (!this.#budget.take(this.#peer, bytes, part)) return false;
    this.#taken += bytes;
    return true;
  }

  /** Gives all of it back. */
  giveAll(): void {
    this.#budget.give(this.#peer, this.#taken);
    this.#taken = 0;
  }
}

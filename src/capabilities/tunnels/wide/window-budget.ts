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
   * Whether there are so many bytes for a connection with a peer.
   * @param part of the budget that may be used up, 0 to 1
   */
  hasRoom(peer: string, bytes: number, part = 1): boolean {
    const ofPeer = this.#taken.of(peer) + bytes;
    return ofPeer <= part * MAX_WINDOWS_PER_PEER_BYTES && this.#taken.total + bytes <= part * MAX_WINDOWS_BYTES;
  }

  /** Takes bytes or, below 0, gives them back. */
  take(peer: string, bytes: number): void {
    this.#taken.add(peer, bytes);
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

  /**
   * Takes what a new connection needs; false where there is no room.
   * @param part of the budget that may be used up, 0 to 1
   */
  begin(bytes: number, part = 1): boolean {
    if (!this.#budget.hasRoom(this.#peer, bytes, part)) return false;
    this.#budget.take(this.#peer, bytes);
    this.#taken += bytes;
    return true;
  }

  /** Takes more; false where there is no room. */
  grow(bytes: number): boolean {
    return this.begin(bytes, GROWTH);
  }

  /** Gives all of it back. */
  giveAll(): void {
    this.#budget.take(this.#peer, -this.#taken);
    this.#taken = 0;
  }
}

/** What all wide tunnel connections together may keep for readers that are behind, of either direction. */

/** With one other node or agent, bytes. */
export const MAX_WINDOWS_PER_PEER_BYTES = 64 * 1024 * 1024;
/** With all of them, bytes. */
export const MAX_WINDOWS_BYTES = 256 * 1024 * 1024;
/** The part of both that windows may grow into; the rest is for new connections. */
const GROWTH = 0.5;

export class WindowBudget {
  readonly #perPeer = new Map<string, number>();
  #total = 0;

  /**
   * Takes bytes for a connection with a peer; false where there is no room.
   * @param part of the budget that may be used up, 0 to 1
   */
  take(peer: string, bytes: number, part = 1): boolean {
    if (!this.hasRoom(peer, bytes, part)) return false;
    this.#perPeer.set(peer, (this.#perPeer.get(peer) ?? 0) + bytes);
    this.#total += bytes;
    return true;
  }

  /** Whether `take` would take them. */
  hasRoom(peer: string, bytes: number, part = 1): boolean {
    const taken = this.#perPeer.get(peer) ?? 0;
    return taken + bytes <= part * MAX_WINDOWS_PER_PEER_BYTES && this.#total + bytes <= part * MAX_WINDOWS_BYTES;
  }

  /** Gives bytes back. */
  give(peer: string, bytes: number): void {
    this.#total -= bytes;
    const left = (this.#perPeer.get(peer) ?? 0) - bytes;
    if (left <= 0) this.#perPeer.delete(peer);
    else this.#perPeer.set(peer, left);
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

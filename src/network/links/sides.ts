/**
 * Connections that carry bulk beside the one that two nodes use for all else: dialled by number when
 * a lane is wanted on one, shared by all who want that number, closed soon after their last stream.
 */
import type { SharedAttempt } from './attempt.ts';
import type { NodeSession } from './node-session.ts';

/** Most of them that one node dials to another. */
export const MAX_SIDES = 16;

interface Sides {
  readonly dialled: Map<number, NodeSession>;
  readonly dialling: Map<number, SharedAttempt<NodeSession>>;
  readonly accepted: Set<NodeSession>;
}

export class SideSessions {
  readonly #ofNode = new Map<string, Sides>();

  /**
   * The connection of a number to a node: the one that stands, or a new one.
   * @throws what `dial` rejects with, or the signal's reason
   */
  async connect(
    node: string,
    index: number,
    signal: AbortSignal,
    dial: () => SharedAttempt<NodeSession>,
  ): Promise<NodeSession> {
    if (!Number.isInteger(index) || index < 0 || index >= MAX_SIDES) throw new RangeError(`there is no side ${index}`);
    const sides = this.#of(node);
    const standing = sides.dialled.get(index);
    if (standing !== undefined && !standing.closed && !standing.draining) return standing;
    const running = sides.dialling.get(index);
    const attempt = running ?? dial();
    sides.dialling.set(index, attempt);
    try {
      const session = await attempt.join(signal);
      if (!session.closed) sides.dialled.set(index, session);
      return session;
    } finally {
      if (sides.dialling.get(index) === attempt) sides.dialling.delete(index);
    }
  }

  /** Takes one that the other node dialled; false where it has too many. */
  accept(session: NodeSession): boolean {
    const { accepted } = this.#of(session.nodeId);
    if (accepted.size >= MAX_SIDES) return false;
    accepted.add(session);
    return true;
  }

  /** Forgets one that has ended. */
  forget(session: NodeSession): void {
    const sides = this.#ofNode.get(session.nodeId);
    if (sides === undefined) return;
    sides.accepted.delete(session);
    for (const [index, dialled] of sides.dialled) if (dialled === session) sides.dialled.delete(index);
    if (sides.accepted.size + sides.dialled.size + sides.dialling.size === 0) this.#ofNode.delete(session.nodeId);
  }

  /** Those of a node. */
  *of(node: string): Generator<NodeSession> {
    const sides = this.#ofNode.get(node);
    if (sides !== undefined) yield* [...sides.dialled.values(), ...sides.accepted];
  }

  *[Symbol.iterator](): Generator<NodeSession> {
    for (const node of this.#ofNode.keys()) yield* this.of(node);
  }

  /** Gives up what is being dialled. */
  cancel(): void {
    for (const { dialling } of this.#ofNode.values()) for (const attempt of dialling.values()) attempt.cancel();
  }

  #of(node: string): Sides {
    const known = this.#ofNode.get(node);
    if (known !== undefined) return known;
    const sides: Sides = { dialled: new Map(), dialling: new Map(), accepted: new Set() };
    this.#ofNode.set(node, sides);
    return sides;
  }
}

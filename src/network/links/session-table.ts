/** The connections between two nodes that stand, whoever dialled them, and which one of them counts. */
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import type { NodeSession } from './node-session.ts';

/** Connections that both nodes dialled within this time of each other were dialled at once, milliseconds. */
export const SIMULTANEOUS_MS = 5_000;
/** Connections of one node: the current one, and earlier ones that still carry streams. */
export const MAX_PER_NODE = 4;

/** What stands between us and one other node. */
interface Peer {
  /** The oldest first. */
  readonly sessions: Set<NodeSession>;
  current: NodeSession | null;
}

function isUsable(session: NodeSession | null | undefined): session is NodeSession {
  return session !== null && session !== undefined && !session.closed && !session.draining;
}

function isRelay({ connection }: NodeSession): boolean {
  return isRelayed(connection.path.kind);
}

export class SessionTable {
  readonly #localKey: Uint8Array;
  /** By the hex of the node's key. */
  readonly #peers = new Map<string, Peer>();

  /** @param localKey public key of this node */
  constructor(localKey: Uint8Array) {
    this.#localKey = localKey;
  }

  /**
   * The connection to a node that new streams of ours use; null where none stands.
   * @param relays false where a relayed one is of no use
   */
  current(node: string, relays: boolean = true): NodeSession | null {
    const peer = this.#peers.get(node);
    if (isUsable(peer?.current) && (relays || !isRelay(peer.current))) return peer.current;
    return relays ? null : (this.of(node).findLast((other) => isUsable(other) && !isRelay(other)) ?? null);
  }

  /** One that came by a relay after another connection to the same node, which seems dead; null where none did. */
  detourOf(session: NodeSession): NodeSession | null {
    const isDetour = (other: NodeSession): boolean =>
      isUsable(other) && isRelay(other) && other.openedAt > session.openedAt && other !== session;
    return this.of(session.nodeId).findLast(isDetour) ?? null;
  }

  /** The last one to the same node that came after this one and takes streams; null where none did. */
  newerThan(session: NodeSession): NodeSession | null {
    const isNewer = (other: NodeSession): boolean => isUsable(other) && other.openedAt > session.openedAt;
    return this.of(session.nodeId).findLast(isNewer) ?? null;
  }

  isCurrent(session: NodeSession): boolean {
    return this.#peers.get(session.nodeId)?.current === session;
  }

  /** Takes a connection in and decides which one of its node counts; closes the oldest spare ones of too many. */
  add(session: NodeSession): void {
    const peer = this.#peers.get(session.nodeId) ?? { sessions: new Set(), current: null };
    this.#peers.set(session.nodeId, peer);
    peer.sessions.add(session);
    const { current } = peer;
    if (!isUsable(current) || !this.#wins(current, session)) peer.current = session;
    for (const spare of peer.sessions) {
      if (peer.sessions.size <= MAX_PER_NODE) return;
      if (spare === peer.current) continue;
      peer.sessions.delete(spare);
      spare.close();
    }
  }

  /** Makes a connection the current one where no usable one is. */
  prefer(session: NodeSession): void {
    const peer = this.#peers.get(session.nodeId);
    if (peer?.sessions.has(session) === true && !isUsable(peer.current)) peer.current = session;
  }

  /** Forgets a connection that has ended; another that stands takes its place. */
  remove(session: NodeSession): void {
    const peer = this.#peers.get(session.nodeId);
    if (peer === undefined) return;
    peer.sessions.delete(session);
    if (peer.current === session) {
      const left = [...peer.sessions].filter(isUsable);
      peer.current = left.findLast((other) => !isRelay(other)) ?? left.at(-1) ?? null;
    }
    if (peer.sessions.size === 0) this.#peers.delete(session.nodeId);
  }

  /** Uses what stands to a node for no new streams of ours. */
  drain(node: string): void {
    const peer = this.#peers.get(node);
    if (peer === undefined) return;
    for (const session of peer.sessions) session.drain();
    peer.current = null;
  }

  /** Those of a node. */
  of(node: string): readonly NodeSession[] {
    return [...(this.#peers.get(node)?.sessions ?? [])];
  }

  *[Symbol.iterator](): Generator<NodeSession> {
    for (const { sessions } of this.#peers.values()) yield* sessions;
  }

  /**
   * Whether a connection stays the current one beside a newer one. One without a relay counts more than one with;
   * of two others the newer one counts, since a node dials anew only where the older one has failed it; but where both nodes dialled at once,
   * both must choose the same: the one that the node with the smaller key dialled.
   */
  #wins(current: NodeSession, newer: NodeSession): boolean {
    // protocol-links.md, step 5
    if (isRelay(current) !== isRelay(newer)) return isRelay(newer);
    if (current.connection.outbound === newer.connection.outbound) return false;
    if (newer.openedAt - current.openedAt > SIMULTANEOUS_MS) return false;
    const weAreSmaller = Buffer.compare(this.#localKey, current.there.nodeKey) < 0;
    return current.connection.outbound === weAreSmaller;
  }
}

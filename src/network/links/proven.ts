/**
 * Proven agents: each connection needs one proof per agent, later links only name the agent. With this: the newest
 * delegation of each agent, the open links that depend on it, and recent pairs of agents.
 */

import type { Duplex } from 'node:stream';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { DelegationMemory } from '../../foundation/node-parts.ts';
import type { NodeSession } from '../peers/session.ts';
import {
  isCurrent,
  makeProof,
  type Proof,
  type ProofRole,
  type ProvenWindow,
  sameDelegation,
  verifyProof,
} from './proofs.ts';
import type { LocalIdentity } from './types.ts';

/** Maximum number of proven agents on one connection, for each role. */
export const MAX_PROVEN = 1024;

interface Remembered {
  /** Agents of the other node, by their proven role. */
  readonly theirs: Readonly<Record<ProofRole, LruCache<Aid, ProvenWindow>>>;
  /** Local callers that the other node accepted, with the delegation in their proof. */
  readonly ours: LruCache<Aid, Delegation>;
}

export class ProvenAgents {
  readonly #floor: DelegationFloor;
  readonly #verifier: DelegationVerifier;
  readonly #ofSession = new WeakMap<NodeSession, Remembered>();

  constructor(floor: DelegationFloor, verifier: DelegationVerifier) {
    this.#floor = floor;
    this.#verifier = verifier;
  }

  /** Verifies and stores a proof. Returns its validity. Rejects as `verifyProof`. */
  async verify(role: ProofRole, session: NodeSession, aid: Aid, proof: Proof, now: number): Promise<ProvenWindow> {
    const floor = this.#floor;
    const context = { here: session.here, there: session.there, oldest: floor.of(aid), now };
    const window = await verifyProof(role, aid, proof, context, this.#verifier);
    if (role === 'called') floor.note(aid, window.issuedAt, null);
    else floor.meet(aid, window.issuedAt, session.connection.path.source);
    this.#of(session).theirs[role].set(aid, window);
    return window;
  }

  /** The validity of an earlier proof, or null without a valid one. */
  find(role: ProofRole, session: NodeSession, aid: Aid, now: number): ProvenWindow | null {
    // protocol-links.md, step 13
    const window = this.#of(session).theirs[role].get(aid);
    return window !== undefined && this.isValid(aid, window, now) ? window : null;
  }

  /** True if an earlier proof is still valid. */
  isValid(aid: Aid, window: ProvenWindow, now: number): boolean {
    return isCurrent(window, this.#floor.of(aid), now);
  }

  /** To be called for an accepted caller. */
  admit(session: NodeSession, aid: Aid, { issuedAt }: ProvenWindow): void {
    this.#floor.note(aid, issuedAt, session.connection.path.source);
  }

  /** The proof of a local caller, or null if the other node already accepted it. */
  callerProof(session: NodeSession, identity: LocalIdentity): Proof | null {
    const seen = this.#of(session).ours.get(identity.aid);
    if (seen !== undefined && sameDelegation(seen, identity.delegation)) return null;
    return makeProof('caller', identity, session.here, session.there);
  }

  /** To be called after the other node accepted the proof of a local caller. */
  accepted(session: NodeSession, identity: LocalIdentity): void {
    this.#of(session).ours.set(identity.aid, identity.delegation);
  }

  /** To be called when the other node requires the proof again. */
  forgotten(session: NodeSession, identity: LocalIdentity): void {
    this.#of(session).ours.delete(identity.aid);
  }

  #of(session: NodeSession): Remembered {
    const known = this.#ofSession.get(session);
    if (known !== undefined) return known;
    const maxEntries = MAX_PROVEN;
    const theirs = {
      caller: new LruCache<Aid, ProvenWindow>({ maxEntries }),
      called: new LruCache<Aid, ProvenWindow>({ maxEntries }),
    };
    const made: Remembered = { theirs, ours: new LruCache({ maxEntries }) };
    this.#ofSession.set(session, made);
    return made;
  }
}

/** Maximum number of agents with a stored delegation. The least recently used one is removed first. */
export const MAX_AGENTS = 65_536;

interface FloorStore {
  readonly seen?: DelegationMemory | undefined;
  /**
   * Called for a newer delegation than the stored one, and for the first one of an agent, because an older one may have
   * been removed.
   */
  raised?(aid: Aid, issuedAt: number): void;
}

export class DelegationFloor {
  readonly #newest = new LruCache<Aid, number>({ maxEntries: MAX_AGENTS });
  readonly #store: FloorStore;

  constructor(store: FloorStore = {}) {
    this.#store = store;
  }

  /** The earliest valid `issuedAt`, Unix seconds. */
  of(aid: Aid): number {
    return Math.max(this.#newest.get(aid) ?? 0, this.#store.seen?.newest(aid) ?? 0);
  }

  /** Stores a verified delegation of a caller before its permission, if the agent is already stored. */
  meet(aid: Aid, issuedAt: number, source: string): void {
    if (this.of(aid) > 0) this.note(aid, issuedAt, source);
  }

  /**
   * Stores a verified delegation.
   * @param source the address of an accepted caller; null if this node called the agent
   */
  note(aid: Aid, issuedAt: number, source: string | null): void {
    const known = this.#newest.get(aid);
    if (known !== undefined && known >= issuedAt) return;
    this.#newest.set(aid, issuedAt);
    this.#store.seen?.note(aid, issuedAt, source);
    this.#store.raised?.(aid, issuedAt);
  }
}

export class OpenLinks {
  /** The links of each agent, with `issuedAt` of their proven delegation, Unix seconds. */
  readonly #links = new Map<Aid, Map<Duplex, number>>();

  /** Number of agents with an open link. */
  get agents(): number {
    return this.#links.size;
  }

  /**
   * Stores a link until it closes.
   * @param issuedAt of the agent's proven delegation, Unix seconds
   */
  add(aid: Aid, link: Duplex, issuedAt: number): void {
    const links = this.#links.get(aid) ?? new Map<Duplex, number>();
    this.#links.set(aid, links.set(link, issuedAt));
    link.once('close', () => {
      links.delete(link);
      if (links.size === 0 && this.#links.get(aid) === links) this.#links.delete(aid);
    });
  }

  /** Closes links of an agent with a proven delegation older than `issuedAt`, Unix seconds. */
  endOlder(aid: Aid, issuedAt: number): void {
    // protocol-links.md, step 14
    for (const [link, provenWith] of this.#links.get(aid) ?? []) if (provenWith < issuedAt) link.destroy();
  }
}

/** Maximum number of nodes with stored pairs. */
const MAX_MET_NODES = 256;
/** Maximum number of stored pairs of one node. */
export const MAX_MET_PAIRS = 32;
/** Time from a pair's last new link until it expires, milliseconds. */
export const MET_MS = 3_600_000;

/** A local agent and an agent of the other node, both proven. */
export interface AgentPair {
  readonly local: Aid;
  readonly remote: Aid;
}

export class MetAgents {
  readonly #clock: Clock;
  /** By the node's key in hex, then by both AIDs. */
  readonly #nodes = new LruCache<string, LruCache<string, AgentPair>>({ maxEntries: MAX_MET_NODES });

  constructor(dependencies: { readonly clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  /** To be called for a new link. */
  note(nodeKey: Uint8Array, pair: AgentPair): void {
    const node = toHex(nodeKey);
    const options = { maxEntries: MAX_MET_PAIRS, ttlMs: MET_MS };
    const pairs = this.#nodes.get(node) ?? new LruCache<string, AgentPair>(options, { clock: this.#clock });
    pairs.set(`${pair.local} ${pair.remote}`, pair);
    this.#nodes.set(node, pairs);
  }

  /** Recent pairs, the oldest first. */
  with(nodeKey: Uint8Array): readonly AgentPair[] {
    return this.#nodes.peek(toHex(nodeKey))?.values() ?? [];
  }
}

/** Who has been proven on which connection: proofs are made and verified once, then only named. */

import type { Duplex } from 'node:stream';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
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
import type { LinksDependencies, LocalIdentity } from './types.ts';

/** Agents of the other node that are remembered as proven on one connection, in each role. */
export const MAX_PROVEN = 1024;

interface Remembered {
  /** Agents of the other node, by the role in which they were proven to us. */
  readonly theirs: Readonly<Record<ProofRole, LruCache<Aid, ProvenWindow>>>;
  /** Our callers that the other node has accepted, with the delegation that it saw. */
  readonly ours: LruCache<Aid, Delegation>;
}

export class ProvenAgents {
  readonly #floor: DelegationFloor;
  readonly #verifier: Pick<DelegationVerifier, 'verifyAsync'>;
  readonly #ofSession = new WeakMap<NodeSession, Remembered>();

  constructor(floor: DelegationFloor, verifier: Pick<DelegationVerifier, 'verifyAsync'>) {
    this.#floor = floor;
    this.#verifier = verifier;
  }

  /** Verifies a proof and remembers it; returns when it counts. Rejects as `verifyProof`. */
  async verify(role: ProofRole, session: NodeSession, aid: Aid, proof: Proof, now: number): Promise<ProvenWindow> {
    const floor = this.#floor;
    const context = { here: session.here, there: session.there, oldest: floor.of(aid), now };
    const window = await verifyProof(role, aid, proof, context, this.#verifier);
    if (role === 'called') floor.note(aid, window.issuedAt, null);
    else floor.meet(aid, window.issuedAt, session.connection.path.source);
    this.#of(session).theirs[role].set(aid, window);
    return window;
  }

  /** What an agent of the other node was proven with before; null where it was not, or that no longer counts. */
  find(role: ProofRole, session: NodeSession, aid: Aid, now: number): ProvenWindow | null {
    // protocol-links.md, step 13
    const window = this.#of(session).theirs[role].get(aid);
    return window !== undefined && this.stands(aid, window, now) ? window : null;
  }

  /** True where what an agent was proven with still counts. */
  stands(aid: Aid, window: ProvenWindow, now: number): boolean {
    return isCurrent(window, this.#floor.of(aid), now);
  }

  /** A caller was let in. */
  admit(session: NodeSession, aid: Aid, { issuedAt }: ProvenWindow): void {
    this.#floor.note(aid, issuedAt, session.connection.path.source);
  }

  /** The proof that one of our callers must show; null where the other node has accepted it before. */
  callerProof(session: NodeSession, identity: LocalIdentity): Proof | null {
    const seen = this.#of(session).ours.get(identity.aid);
    if (seen !== undefined && sameDelegation(seen, identity.delegation)) return null;
    return makeProof('caller', identity, session.here, session.there);
  }

  /** The other node has accepted the proof of one of our callers. */
  accepted(session: NodeSession, identity: LocalIdentity): void {
    this.#of(session).ours.set(identity.aid, identity.delegation);
  }

  /** The other node asks for a proof again. */
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

/** Agents remembered; the least recently met one is forgotten first. */
export const MAX_AGENTS = 65_536;

interface FloorStore extends Pick<LinksDependencies, 'noteDelegation' | 'newestDelegation'> {
  /**
   * Told of a delegation that is newer than all that are remembered of its agent: also of the first
   * one, as those before it may have been forgotten.
   */
  raised?(aid: Aid, issuedAt: number): void;
}

export class DelegationFloor {
  readonly #newest = new LruCache<Aid, number>({ maxEntries: MAX_AGENTS });
  readonly #store: FloorStore;

  constructor(store: FloorStore = {}) {
    this.#store = store;
  }

  /** Unix seconds: an older `issuedAt` no longer counts. */
  of(aid: Aid): number {
    return Math.max(this.#newest.get(aid) ?? 0, this.#store.newestDelegation?.(aid) ?? 0);
  }

  /** Remembers a verified delegation of a caller that was not let in yet, if it is known already. */
  meet(aid: Aid, issuedAt: number, source: string): void {
    if (this.of(aid) > 0) this.note(aid, issuedAt, source);
  }

  /**
   * Remembers a verified delegation.
   * @param source the address of a caller that was let in; null if this node called the agent
   */
  note(aid: Aid, issuedAt: number, source: string | null): void {
    const known = this.#newest.get(aid);
    if (known !== undefined && known >= issuedAt) return;
    this.#newest.set(aid, issuedAt);
    this.#store.noteDelegation?.(aid, issuedAt, source);
    this.#store.raised?.(aid, issuedAt);
  }
}

export class OpenLinks {
  /** The links of each agent, with the `issuedAt` of the delegation that it was proven with: Unix seconds. */
  readonly #links = new Map<Aid, Map<Duplex, number>>();

  /** Agents with a link that stands. */
  get agents(): number {
    return this.#links.size;
  }

  /**
   * Keeps a link in mind until it closes.
   * @param issuedAt of the delegation that the agent was proven with, Unix seconds
   */
  add(aid: Aid, link: Duplex, issuedAt: number): void {
    const links = this.#links.get(aid) ?? new Map<Duplex, number>();
    this.#links.set(aid, links.set(link, issuedAt));
    link.once('close', () => {
      links.delete(link);
      if (links.size === 0 && this.#links.get(aid) === links) this.#links.delete(aid);
    });
  }

  /** Ends the links with an agent that were proven with a delegation older than `issuedAt`, Unix seconds. */
  endOlder(aid: Aid, issuedAt: number): void {
    // protocol-links.md, step 14
    for (const [link, provenWith] of this.#links.get(aid) ?? []) if (provenWith < issuedAt) link.destroy();
  }
}

/** Nodes of which it is remembered. */
const MAX_MET_NODES = 256;
/** Pairs of agents that are remembered of one node. */
export const MAX_MET_PAIRS = 32;
/** For how long a pair is remembered after its last link was opened, milliseconds. */
export const MET_MS = 3_600_000;

/** An agent here, and one of the other node; both were proven. */
export interface AgentPair {
  readonly local: Aid;
  readonly remote: Aid;
}

export class MetAgents {
  readonly #clock: Clock;
  /** By the hex of the node's key, then by both AIDs. */
  readonly #nodes = new LruCache<string, LruCache<string, AgentPair>>({ maxEntries: MAX_MET_NODES });

  constructor(dependencies: { readonly clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  /** A link between the two was opened. */
  note(nodeKey: Uint8Array, pair: AgentPair): void {
    const node = toHex(nodeKey);
    const options = { maxEntries: MAX_MET_PAIRS, ttlMs: MET_MS };
    const pairs = this.#nodes.get(node) ?? new LruCache<string, AgentPair>(options, { clock: this.#clock });
    pairs.set(`${pair.local} ${pair.remote}`, pair);
    this.#nodes.set(node, pairs);
  }

  /** Those who spoke lately, the last to begin comes last. */
  with(nodeKey: Uint8Array): readonly AgentPair[] {
    return this.#nodes.peek(toHex(nodeKey))?.values() ?? [];
  }
}

/** Who has been proven on which connection: proofs are made and verified once, then only named. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { NodeSession } from '../peers/session.ts';
import type { DelegationFloor } from './floor.ts';
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

/** Agents of the other node that are remembered as proven on one connection, in each role. */
export const MAX_PROVEN = 1024;

interface Remembered {
  /** Agents of the other node, by the role in which they were proven to us. */
  readonly theirs: Readonly<Record<ProofRole, LruCache<Aid, ProvenWindow>>>;
  /** Our callers that the other node has accepted, with the delegation that it saw. */
  readonly ours: LruCache<Aid, Delegation>;
}

interface ProvenAgentsDependencies {
  readonly floor: DelegationFloor;
  readonly verifier: Pick<DelegationVerifier, 'verifyAsync'>;
}

export class ProvenAgents {
  readonly #deps: ProvenAgentsDependencies;
  readonly #ofSession = new WeakMap<NodeSession, Remembered>();

  constructor(dependencies: ProvenAgentsDependencies) {
    this.#deps = dependencies;
  }

  /** Verifies a proof and remembers it; returns when it counts. Rejects as `verifyProof`. */
  async verify(role: ProofRole, session: NodeSession, aid: Aid, proof: Proof, now: number): Promise<ProvenWindow> {
    const { floor, verifier } = this.#deps;
    const context = { here: session.here, there: session.there, oldest: floor.of(aid), now };
    const window = await verifyProof(role, aid, proof, context, verifier);
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
    return isCurrent(window, this.#deps.floor.of(aid), now);
  }

  /** A caller was let in. */
  admit(session: NodeSession, aid: Aid, { issuedAt }: ProvenWindow): void {
    this.#deps.floor.note(aid, issuedAt, session.connection.path.source);
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

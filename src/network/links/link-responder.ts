/** The called side of a link: verifies the caller, checks its permission, answers, delivers the stream. */
import type { Duplex } from 'node:stream';
import { unixSeconds } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { schemeOf } from '../../foundation/identity/aid.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { type Rate, RateQuota } from '../../foundation/rate-limit.ts';
import type { KnownNodes } from '../known-nodes.ts';
import { type NodeSession, sessionHolder } from '../peers/session.ts';
import { ProtocolBreach, Refusal, readFrame, STATUS, u16 } from '../peers/wire.ts';
import type { Stream } from '../transport/types.ts';
import { decodeHeader, type LinkHeader, MAX_LINK_HEADER_BYTES } from './header.ts';
import { HeldBytes } from './held-bytes.ts';
import { pairHolder } from './holder.ts';
import { encodeProof, makeProof, type ProvenWindow } from './proofs.ts';
import type { MetAgents, OpenLinks, ProvenAgents } from './proven.ts';
import { asQuicLink, isPurpose } from './stream.ts';
import type { AccessRequest, LinkNames, LinkStream, LinksDependencies, LocalIdentity, Purpose } from './types.ts';

/** Verified proofs of one node. Each proof requires two signature checks. */
export const PROOF_RATE: Rate = { perSecond: 100, burst: 500 };
/** The same for strangers at one IPv4 address or IPv6 /64. */
export const PROOF_RATE_PER_SOURCE: Rate = { perSecond: 200, burst: 1000 };
/** The same for strangers in one IPv4 /24 or IPv6 /48. */
export const PROOF_RATE_PER_NETWORK: Rate = { perSecond: 300, burst: 1500 };
/** The same for all strangers. This is a seventh of one CPU core. */
export const PROOF_RATE_OF_STRANGERS: Rate = { perSecond: 500, burst: 2500 };
/** The cost of a proof with a wallet, in proofs of a native agent. Its signature is checked in JavaScript. */
export const WALLET_PROOF_COST = 8;

export type LinkHandler = (stream: LinkStream) => void;
export type LinkCheck = (request: AccessRequest) => void;

interface AnsweringDependencies
  extends Pick<LinksDependencies, 'identity' | 'authorize' | 'isNamed' | 'isAdmitted'>,
    NodeParts {
  readonly proven: ProvenAgents;
  readonly openLinks: OpenLinks;
  readonly met: MetAgents;
  readonly known: KnownNodes;
  /** Counts a stream that remains open after its last use. */
  readonly lingers: (stream: Stream, session: NodeSession) => void;
}

export class LinkResponder {
  readonly #dependencies: AnsweringDependencies;
  readonly #proofs: RateQuota;
  /** The unsent bytes of links to slow readers. */
  readonly held = new HeldBytes();
  readonly #takers = new Map<Purpose, { readonly handler: LinkHandler; readonly check: LinkCheck | undefined }>();

  constructor(dependencies: AnsweringDependencies) {
    this.#dependencies = dependencies;
    this.#proofs = new RateQuota(
      {
        perKey: PROOF_RATE,
        perSource: PROOF_RATE_PER_SOURCE,
        perNetwork: PROOF_RATE_PER_NETWORK,
        strangers: PROOF_RATE_OF_STRANGERS,
      },
      dependencies,
    );
  }

  /** Sets the handler for links of a purpose. Each purpose has one handler. As `Links.accept`. */
  accept(purpose: Purpose, handler: LinkHandler, check?: LinkCheck): void {
    if (this.#takers.has(purpose)) throw new Error(`links for ${purpose} are already taken`);
    this.#takers.set(purpose, { handler, check });
  }

  /**
   * Handles a stream of kind "link". The status of a thrown error is sent to the other side.
   * @param accepted called before the answer
   */
  async answer(stream: Stream, session: NodeSession, signal: AbortSignal, accepted?: () => void): Promise<void> {
    const header = decodeHeader(await readFrame(stream, MAX_LINK_HEADER_BYTES, signal));
    if (header === null) throw new ProtocolBreach('The header of a link is malformed.');
    const window = await this.#checkCaller(header, session);
    const { caller, called, purpose, accessToken } = header;
    const { nodeKey } = session.there;
    const { source } = session.connection.path;
    const { names, identity } = await this.permit(purpose, { caller, called, accessToken, nodeKey }, source);
    if (stream.destroyed) return;
    // The permission check may have taken long. A newer delegation meanwhile closed open links, but not this request.
    // protocol-links.md, step 9
    if (!this.#dependencies.proven.isValid(caller, window, unixSeconds(this.#dependencies.clock)))
      throw new Refusal(STATUS.proofNeeded);
    accepted?.();
    const proof = header.wantsProof ? encodeProof(makeProof('called', identity, session.here, session.there)) : null;
    if (this.#dependencies.isAdmitted?.(names) !== false) this.#dependencies.proven.admit(session, caller, window);
    this.#dependencies.openLinks.add(caller, stream, window.issuedAt);
    this.#dependencies.met.note(nodeKey, { local: called, remote: caller });
    const isNamed = this.#dependencies.isNamed?.({ caller, called }) === true;
    if (isNamed) this.#dependencies.known.note(nodeKey);
    stream.write(Buffer.concat([Uint8Array.of(STATUS.ok), ...(proof === null ? [] : [u16(proof.length), proof])]));
    const lingers = (): void => this.#dependencies.lingers(stream, session);
    const coverByProof = (other: Duplex): void => {
      this.#dependencies.openLinks.add(caller, other, window.issuedAt);
      if (!this.#dependencies.proven.isValid(caller, window, unixSeconds(this.#dependencies.clock))) other.destroy();
    };
    const link = Object.assign(asQuicLink(stream, names, session.upgrade), { lingers, coverByProof });
    this.held.watch(stream, pairHolder(link, isNamed));
    this.deliver(link);
  }

  /**
   * Checks whether a verified caller may open a link to an agent of this daemon.
   * @param source the source for limits on the caller's node; null on the same daemon
   * @throws SvcError `access_denied`, `rate_limited`, `no_inbound` from the permission; `Refusal` otherwise
   */
  async permit(
    purpose: string,
    request: Omit<LinkNames, 'purpose'>,
    source: string | null,
  ): Promise<{ readonly names: LinkNames; readonly identity: LocalIdentity }> {
    // protocol-links.md, step 8
    const identity = this.#dependencies.identity(request.called);
    if (identity === null) throw new Refusal(STATUS.notHere);
    const taker = isPurpose(purpose) ? this.#takers.get(purpose) : undefined;
    if (!isPurpose(purpose) || taker === undefined) throw new Refusal(STATUS.unknownPurpose);
    const names = { ...request, purpose };
    await this.#dependencies.authorize({ ...names, source });
    taker.check?.({ ...names, source });
    return { names, identity };
  }

  /** Delivers a permitted link to the handler of its purpose. */
  deliver(link: LinkStream): void {
    try {
      this.#takers.get(link.purpose)?.handler(link);
    } catch (error) {
      this.#dependencies.log.error({ purpose: link.purpose, error }, 'the handler of a link failed');
      link.destroy();
    }
  }

  async #checkCaller({ caller, proof }: LinkHeader, session: NodeSession): Promise<ProvenWindow> {
    // protocol-links.md, step 7
    const { proven, clock } = this.#dependencies;
    const now = unixSeconds(clock);
    if (proof === null) {
      const known = proven.find('caller', session, caller, now);
      if (known === null) throw new Refusal(STATUS.proofNeeded);
      return known;
    }
    const cost = schemeOf(caller) === 'native' ? 1 : WALLET_PROOF_COST;
    if (!this.#proofs.take(sessionHolder(session, this.#dependencies.known), cost)) throw new SvcError('rate_limited');
    return await proven.verify('caller', session, caller, proof, now);
  }
}

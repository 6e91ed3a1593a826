/** The called side of a link: proves the caller, asks for permission, answers, hands the stream over. */
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Log } from '../../foundation/log.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import type { QuicStream } from '../quic/types.ts';
import { decodeHeader, type LinkHeader, MAX_LINK_HEADER_BYTES } from './header.ts';
import type { MetAgents } from './met-agents.ts';
import type { NodeSession } from './node-session.ts';
import type { OpenLinks } from './open-links.ts';
import { encodeProof, makeProof, type ProvenWindow } from './proofs.ts';
import type { ProvenAgents } from './proven.ts';
import { ProtocolBreach, Refusal, STATUS } from './status.ts';
import { asQuicLink, isPurpose } from './stream.ts';
import { MAX_LIMITED_NODES } from './stream-dispatcher.ts';
import type { AccessRequest, LinkNames, LinkStream, LinksDependencies, LocalIdentity, Purpose } from './types.ts';
import { readFrame, u16 } from './wire.ts';

/** Proofs of one node that are verified a second, and at once: each costs two signature checks. */
export const PROOFS_PER_S = 100;
export const PROOFS_BURST = 500;

export type LinkHandler = (stream: LinkStream) => void;
export type LinkCheck = (request: AccessRequest) => void;

interface AnsweringDependencies extends Pick<LinksDependencies, 'identity' | 'authorize'> {
  readonly proven: ProvenAgents;
  readonly standing: OpenLinks;
  readonly met: MetAgents;
  readonly clock: Clock;
  readonly log: Log;
}

export class LinkResponder {
  readonly #dependencies: AnsweringDependencies;
  readonly #proofs: RateLimiter;
  readonly #takers = new Map<Purpose, { readonly handler: LinkHandler; readonly check: LinkCheck | undefined }>();

  constructor(dependencies: AnsweringDependencies) {
    this.#dependencies = dependencies;
    const perNode = { perSecond: PROOFS_PER_S, burst: PROOFS_BURST, maxKeys: MAX_LIMITED_NODES };
    this.#proofs = new RateLimiter(perNode, dependencies);
  }

  /** Names who takes the links of a purpose; once each. As `Links.accept`. */
  accept(purpose: Purpose, handler: LinkHandler, check?: LinkCheck): void {
    if (this.#takers.has(purpose)) throw new Error(`links for ${purpose} are already taken`);
    this.#takers.set(purpose, { handler, check });
  }

  /** Takes a stream of kind "link"; what it throws is told to the other side. */
  async answer(stream: QuicStream, session: NodeSession, signal: AbortSignal): Promise<void> {
    const header = decodeHeader(await readFrame(stream, MAX_LINK_HEADER_BYTES, signal));
    if (header === null) throw new ProtocolBreach('The header of a link is malformed.');
    const window = await this.#checkCaller(header, session);
    const { caller, called, purpose, accessToken } = header;
    const { nodeKey } = session.there;
    const { source } = session.connection.path;
    const { names, identity } = await this.permit(purpose, { caller, called, accessToken, nodeKey }, source);
    if (stream.destroyed) return;
    // Permission may have waited long: a newer delegation met meanwhile has ended what stood, not what asked.
    if (!this.#dependencies.proven.stands(caller, window, unixSeconds(this.#dependencies.clock)))
      throw new Refusal(STATUS.proofNeeded);
    const proof = header.wantsProof ? encodeProof(makeProof('called', identity, session.here, session.there)) : null;
    this.#dependencies.standing.add(caller, stream, window.issuedAt);
    this.#dependencies.met.note(nodeKey, { local: called, remote: caller });
    stream.write(Buffer.concat([Uint8Array.of(STATUS.ok), ...(proof === null ? [] : [u16(proof.length), proof])]));
    this.deliver(asQuicLink(stream, names, session.beside));
  }

  /**
   * Asks whether a proven caller may open a link to an agent here.
   * @param source whom the connection of the caller's node counts for; null on the same daemon
   * @throws SvcError `access_denied`, `rate_limited`, `no_inbound` from the permission; `Refusal` otherwise
   */
  async permit(
    purpose: string,
    request: Omit<LinkNames, 'purpose'>,
    source: string | null,
  ): Promise<{ readonly names: LinkNames; readonly identity: LocalIdentity }> {
    const identity = this.#dependencies.identity(request.called);
    if (identity === null) throw new Refusal(STATUS.notHere);
    const taker = isPurpose(purpose) ? this.#takers.get(purpose) : undefined;
    if (!isPurpose(purpose) || taker === undefined) throw new Refusal(STATUS.unknownPurpose);
    const names = { ...request, purpose };
    await this.#dependencies.authorize({ ...names, source });
    taker.check?.({ ...names, source });
    return { names, identity };
  }

  /** Hands a permitted link to who takes its purpose. */
  deliver(link: LinkStream): void {
    try {
      this.#takers.get(link.purpose)?.handler(link);
    } catch (error) {
      this.#dependencies.log.error({ purpose: link.purpose, error }, 'the handler of a link failed');
      link.destroy();
    }
  }

  async #checkCaller({ caller, proof }: LinkHeader, session: NodeSession): Promise<ProvenWindow> {
    const { proven, clock } = this.#dependencies;
    const now = unixSeconds(clock);
    if (proof === null) {
      const known = proven.find('caller', session, caller, now);
      if (known === null) throw new Refusal(STATUS.proofNeeded);
      return known;
    }
    if (!this.#proofs.take(session.nodeId)) throw new SvcError('rate_limited');
    return await proven.verify('caller', session, caller, proof, now);
  }
}

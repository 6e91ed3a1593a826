/** Verifies the evidence of calls that arrive here, so that a service gets none that its daemon would not believe. */
import { type Clock, unixSeconds } from '../../../foundation/clock.ts';
import { CLOCK_SKEW_S } from '../../../foundation/domain/time.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { Aid } from '../../../foundation/identity/aid.ts';
import {
  type Delegation,
  decodeDelegation,
  encodeDelegation,
  MAX_DELEGATION_BYTES,
} from '../../../foundation/identity/delegation.ts';
import type { DelegationVerifier } from '../../../foundation/identity/delegation-verifier.ts';
import { checkWindow } from '../../../foundation/identity/grant.ts';
import { VerifierKeys } from '../../../foundation/identity/keys.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';
import type { RawHeaders } from '../headers.ts';
import {
  componentsOf,
  type Evidence,
  evidenceHeaders,
  fieldValue,
  keyIdOf,
  MAX_EVIDENCE_AGE_S,
  readEvidence,
} from './call-evidence.ts';
import { byteSequence, signatureBase } from './signature-base.ts';

/** Nonces that are remembered; one takes about 150 bytes. Where more come in five minutes, the oldest are forgotten sooner. */
const MAX_NONCES = 65_536;
/** Delegations that are at hand, read. */
const MAX_READ = 1024;
/** Longest text of a delegation, characters: base64 between colons. */
const MAX_DELEGATION_CHARS: number = Math.ceil(MAX_DELEGATION_BYTES / 3) * 4 + 2;

/** A call as it arrived. */
export interface ArrivedCall {
  /** Proven on the link. */
  readonly caller: Aid;
  readonly called: Aid;
  readonly method: string;
  readonly target: string;
  readonly headers: RawHeaders;
}

export interface EvidenceCheckDependencies {
  readonly clock: Clock;
  readonly delegations: Pick<DelegationVerifier, 'verifyAsync'>;
  /** `issuedAt` of the newest delegation met of an agent, Unix seconds; 0 where none is known. */
  newest(aid: Aid): number;
}

/** What a delegation says, and the name of the key that it lets act. */
interface ReadDelegation {
  readonly delegation: Delegation;
  readonly keyId: string;
  /** The agent signed it; when it is in force is another matter. */
  isSigned: boolean;
}

export class EvidenceCheck {
  readonly #deps: EvidenceCheckDependencies;
  readonly #keys = new VerifierKeys();
  readonly #read = new LruCache<string, ReadDelegation>({ maxEntries: MAX_READ });
  readonly #nonces: LruCache<string, true>;

  constructor(dependencies: EvidenceCheckDependencies) {
    this.#deps = dependencies;
    const { clock } = dependencies;
    // From the first moment at which a clock may take it to the last.
    const ttlMs = (MAX_EVIDENCE_AGE_S + 2 * CLOCK_SKEW_S) * 1000;
    this.#nonces = new LruCache({ maxEntries: MAX_NONCES, ttlMs }, { clock });
  }

  /**
   * Verifies what a call carries.
   * @returns the headers for the service, as they came; none where the call carries no evidence
   * @throws SvcError `bad_evidence` where it carries any that does not hold for this call, or did already
   */
  async check(call: ArrivedCall): Promise<string[]> {
    const evidence = readEvidence(call.headers);
    if (evidence === undefined) return [];
    if (evidence === null) throw refused('it is malformed');
    this.#checkTime(evidence);
    const read = this.#delegationOf(evidence);
    const { delegation, keyId } = read;
    if (delegation.agent !== call.caller) throw refused('it is of another agent than the caller');
    if (keyId !== evidence.keyId) throw refused('it is signed by another key than the delegated one');
    const digest = fieldValue(call.headers, 'content-digest');
    if ((digest !== null) !== evidence.isDigestCovered) throw refused('it does not cover the digest');
    const signed = signatureBase(componentsOf({ ...call, digest, delegation: evidence.delegation }), evidence.params);
    // A caller gets this far who was let in: his calls are limited, and each costs more than this.
    if (!this.#keys.verifySync(delegation.operationalKey, signed, evidence.signature))
      throw refused('its signature does not verify');
    await this.#checkDelegation(read);
    // Last: whoever may not sign cannot use up a nonce.
    if (this.#nonces.has(evidence.nonce)) throw refused('it was used before');
    this.#nonces.set(evidence.nonce, true);
    return evidenceHeaders(evidence.params, byteSequence(evidence.signature), evidence.delegation);
  }

  #checkTime({ created }: Evidence): void {
    const now = unixSeconds(this.#deps.clock);
    if (created > now + CLOCK_SKEW_S) throw refused('it is of a time to come');
    if (created < now - MAX_EVIDENCE_AGE_S - CLOCK_SKEW_S) throw refused('it is too old');
  }

  #delegationOf({ delegation: text }: Evidence): ReadDelegation {
    const known = this.#read.get(text);
    if (known !== undefined) return known;
    const delegation = readDelegation(text);
    const read = { delegation, keyId: keyIdOf(delegation.agent, delegation.operationalKey), isSigned: false };
    this.#read.set(text, read);
    return read;
  }

  async #checkDelegation(read: ReadDelegation): Promise<void> {
    const { delegation, isSigned } = read;
    if (delegation.issuedAt < this.#deps.newest(delegation.agent)) throw refused('a newer delegation replaced its own');
    try {
      const now = unixSeconds(this.#deps.clock);
      if (isSigned) return checkWindow(delegation, now);
      await this.#deps.delegations.verifyAsync(delegation, now);
      read.isSigned = true;
    } catch (cause) {
      throw refused('its delegation does not verify', cause);
    }
  }
}

function readDelegation(text: string): Delegation {
  try {
    if (text.length > MAX_DELEGATION_CHARS) throw new RangeError('too long');
    const delegation = decodeDelegation(Buffer.from(text.slice(1, -1), 'base64'));
    // One delegation has one text.
    if (byteSequence(encodeDelegation(delegation)) !== text) throw new RangeError('another spelling');
    return delegation;
  } catch (cause) {
    throw refused('its delegation is malformed', cause);
  }
}

function refused(reason: string, cause?: unknown): SvcError {
  return new SvcError('bad_evidence', {
    message: `The evidence of this call is refused: ${reason}.`,
    details: { reason },
    ...(cause === undefined ? {} : { cause }),
  });
}

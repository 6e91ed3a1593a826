/** Verifies the evidence of incoming calls, so that services only receive valid evidence. */
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

/** Cached nonces; each uses about 150 bytes. The oldest are forgotten first. */
const MAX_NONCES = 65_536;
/** Parsed delegations in the cache. */
const MAX_CACHED_DELEGATIONS = 1024;
/** Longest text of a delegation, in characters: base64 between colons. */
const MAX_DELEGATION_CHARS: number = Math.ceil(MAX_DELEGATION_BYTES / 3) * 4 + 2;

/** An incoming call. */
export interface IncomingCall {
  /** Authenticated by the link. */
  readonly caller: Aid;
  readonly called: Aid;
  readonly method: string;
  readonly target: string;
  readonly headers: RawHeaders;
}

/** A parsed delegation and the ID of the key that it authorizes. */
interface ParsedDelegation {
  readonly delegation: Delegation;
  readonly keyId: string;
  /** The agent's signature is valid. The validity period is checked separately. */
  isSigned: boolean;
}

export class EvidenceCheck {
  readonly #clock: Clock;
  readonly #delegations: DelegationVerifier;
  readonly #newest: (aid: Aid) => number;
  readonly #keys = new VerifierKeys();
  readonly #read = new LruCache<string, ParsedDelegation>({ maxEntries: MAX_CACHED_DELEGATIONS });
  readonly #nonces: LruCache<string, true>;

  /**
   * @param newest `issuedAt` of the newest known delegation of an agent, in Unix seconds; 0 if none is known
   */
  constructor(clock: Clock, delegations: DelegationVerifier, newest: (aid: Aid) => number) {
    this.#clock = clock;
    this.#delegations = delegations;
    this.#newest = newest;
    // They do not expire, because a clock that is set back makes an old signature valid again.
    this.#nonces = new LruCache({ maxEntries: MAX_NONCES });
  }

  /**
   * Verifies the evidence of a call.
   * @returns the headers for the service, unchanged; none if the call carries no evidence
   * @throws SvcError `bad_evidence` if the evidence is invalid for this call or was used before
   */
  async check(call: IncomingCall): Promise<string[]> {
    const evidence = readEvidence(call.headers);
    if (evidence === undefined) return [];
    if (evidence === null) throw refused('it is malformed');
    this.#checkTime(evidence);
    const read = this.#delegationOf(evidence);
    const { delegation, keyId } = read;
    if (delegation.agent !== call.caller) throw refused('its delegation belongs to another agent');
    if (keyId !== evidence.keyId) throw refused('it is not signed by the delegated key');
    const digest = fieldValue(call.headers, 'content-digest');
    if ((digest !== null) !== evidence.isDigestCovered) throw refused('it does not cover the content digest');
    const signed = signatureBase(componentsOf({ ...call, digest, delegation: evidence.delegation }), evidence.params);
    // Only authorized callers reach this step. Their calls are limited, and a call costs more than this check.
    if (!this.#keys.verifySync(delegation.operationalKey, signed, evidence.signature))
      throw refused('its signature is invalid');
    await this.#checkDelegation(read);
    // Checked last, so that an invalid signature cannot use up a nonce.
    if (this.#nonces.has(evidence.nonce)) throw refused('it was used before');
    this.#nonces.set(evidence.nonce, true);
    return evidenceHeaders(evidence.params, byteSequence(evidence.signature), evidence.delegation);
  }

  #checkTime({ created }: Evidence): void {
    const now = unixSeconds(this.#clock);
    if (created > now + CLOCK_SKEW_S) throw refused('it is dated in the future');
    if (created < now - MAX_EVIDENCE_AGE_S - CLOCK_SKEW_S) throw refused('it is too old');
  }

  #delegationOf({ delegation: text }: Evidence): ParsedDelegation {
    const known = this.#read.get(text);
    if (known !== undefined) return known;
    const delegation = readDelegation(text);
    const read = { delegation, keyId: keyIdOf(delegation.agent, delegation.operationalKey), isSigned: false };
    this.#read.set(text, read);
    return read;
  }

  async #checkDelegation(read: ParsedDelegation): Promise<void> {
    const { delegation, isSigned } = read;
    if (delegation.issuedAt < this.#newest(delegation.agent))
      throw refused('a newer delegation replaces its delegation');
    try {
      const now = unixSeconds(this.#clock);
      if (isSigned) return checkWindow(delegation, now);
      await this.#delegations.verifyAsync(delegation, now);
      read.isSigned = true;
    } catch (cause) {
      throw refused('its delegation is invalid', cause);
    }
  }
}

function readDelegation(text: string): Delegation {
  try {
    if (text.length > MAX_DELEGATION_CHARS) throw new RangeError('too long');
    const delegation = decodeDelegation(Buffer.from(text.slice(1, -1), 'base64'));
    // A delegation has one canonical encoding.
    if (byteSequence(encodeDelegation(delegation)) !== text) throw new RangeError('not the canonical encoding');
    return delegation;
  } catch (cause) {
    throw refused('its delegation is malformed', cause);
  }
}

function refused(reason: string, cause?: unknown): SvcError {
  return new SvcError('bad_evidence', {
    message: `The evidence of this call was rejected: ${reason}.`,
    details: { reason },
    ...(cause === undefined ? {} : { cause }),
  });
}

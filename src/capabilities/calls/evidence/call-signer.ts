/** Signs the calls of local agents that give evidence, with the caller's own key on its own node. */
import { type Clock, unixSeconds } from '../../../foundation/clock.ts';
import type { Aid } from '../../../foundation/identity/aid.ts';
import { encodeDelegation } from '../../../foundation/identity/delegation.ts';
import type { LocalIdentity } from '../../../network/links/types.ts';
import { EVIDENCE, endToEnd, type RawHeaders } from '../headers.ts';
import { componentsOf, EVIDENCE_NONCE_BYTES, evidenceHeaders, fieldValue, keyIdOf, paramsOf } from './call-evidence.ts';
import { byteSequence, contentDigest, signatureBase } from './signature-base.ts';

/** A call to sign. */
export interface CallToSign {
  readonly caller: Aid;
  readonly called: Aid;
  readonly method: string;
  readonly target: string;
  /** Headers of the call, without hop-by-hop headers. */
  readonly headers: RawHeaders;
  /** Null if the body streams and is not known yet; empty if there is no body. */
  readonly body: Uint8Array | null;
}

/** The part of an agent's evidence that does not change between calls. */
interface Credentials {
  readonly keyId: string;
  readonly delegation: string;
}

export class CallSigner {
  readonly #clock: Clock;
  readonly #identity: (caller: Aid) => LocalIdentity | null;
  readonly #random: (bytes: number) => Uint8Array;
  readonly #credentials = new WeakMap<LocalIdentity, Credentials>();

  /**
   * @param identity the identity of an agent, or null if it gives no evidence
   */
  constructor(clock: Clock, identity: (caller: Aid) => LocalIdentity | null, random: (bytes: number) => Uint8Array) {
    this.#clock = clock;
    this.#identity = identity;
    this.#random = random;
  }

  /** True if the calls of an agent carry evidence. */
  signs(caller: Aid): boolean {
    return this.#identity(caller) !== null;
  }

  /**
   * The headers of a call with fresh evidence. A repeated call carries a new signature. If the program sets
   * `Content-Digest`, it is kept and signed; otherwise the digest of the body is added.
   */
  sign(call: CallToSign): string[] {
    const { caller, called, method, target, body } = call;
    const identity = this.#identity(caller);
    // Evidence was switched off after `signs`.
    if (identity === null) return [...call.headers];
    const { keyId, delegation } = this.#of(identity);
    const headers = endToEnd(call.headers, EVIDENCE);
    const own = fieldValue(headers, 'content-digest');
    if (own === null && body !== null) headers.push('Content-Digest', contentDigest(body));
    const digest = fieldValue(headers, 'content-digest');
    const nonce = Buffer.from(this.#random(EVIDENCE_NONCE_BYTES)).toString('base64url');
    const components = componentsOf({ caller, called, method, target, digest, delegation });
    const params = paramsOf(components, { created: unixSeconds(this.#clock), nonce, keyId });
    const signature = identity.sign(signatureBase(components, params));
    return [...headers, ...evidenceHeaders(params, byteSequence(signature), delegation)];
  }

  #of(identity: LocalIdentity): Credentials {
    const known = this.#credentials.get(identity);
    if (known !== undefined) return known;
    const { aid, delegation } = identity;
    const made = {
      keyId: keyIdOf(aid, delegation.operationalKey),
      delegation: byteSequence(encodeDelegation(delegation)),
    };
    this.#credentials.set(identity, made);
    return made;
  }
}

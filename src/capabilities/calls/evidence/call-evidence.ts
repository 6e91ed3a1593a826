/**
 * Evidence of a call: a signature by the caller's operational key over the request, the called agent and the time, with
 * the delegation that authorizes the key. A service can verify it without svcd. Format: docs/evidence.md.
 */
import { type Aid, didOf } from '../../../foundation/identity/aid.ts';
import { encodeMultikey } from '../../../foundation/identity/multikey.ts';
import { evidenceLines, pairs, type RawHeaders } from '../headers.ts';
import { type CoveredComponent, signatureParams } from './signature-base.ts';

/** Carries the delegation: base64 of its CBOR between colons. */
export const DELEGATION_HEADER = 'Svc-Caller-Delegation';
/** Maximum age of a signature when the called side reads it, in seconds. Clock skew is allowed on top. */
export const MAX_EVIDENCE_AGE_S = 300;
/** Random bytes in a nonce. */
export const EVIDENCE_NONCE_BYTES = 16;

/** Label of our signature in the dictionaries `Signature` and `Signature-Input`. */
const LABEL = 'svcd';
/** Purpose of the signature. A signature made for another purpose is not evidence of a call. */
const TAG = 'svcd-call';
const ALGORITHM = 'ed25519';

/** The signed fields of a call. */
export interface SignedCall {
  readonly caller: Aid;
  readonly called: Aid;
  /** In upper case. */
  readonly method: string;
  /** Path and query, as the service receives them. */
  readonly target: string;
  /** All values of `Content-Digest`, or null if the body is not known yet. */
  readonly digest: string | null;
  /** Value of `Svc-Caller-Delegation`. */
  readonly delegation: string;
}

/** Time, nonce and key of a signature. */
interface Signing {
  /** Unix seconds. */
  readonly created: number;
  readonly nonce: string;
  readonly keyId: string;
}

/** Evidence as it appears in a request. */
export interface Evidence extends Signing {
  /** Value in `Signature-Input`, without the label. */
  readonly params: string;
  readonly isDigestCovered: boolean;
  readonly signature: Uint8Array;
  /** Value of `Svc-Caller-Delegation`. */
  readonly delegation: string;
}

/** The components that evidence covers, in order. */
export function componentsOf({ caller, called, method, target, digest, delegation }: SignedCall): CoveredComponent[] {
  return [
    ['@method', method],
    ['@request-target', target],
    ...(digest === null ? [] : [['content-digest', digest] as const]),
    ['svc-caller-aid', caller],
    ['svc-local-aid', called],
    [DELEGATION_NAME, delegation],
  ];
}

/** The parameters of the signature for `Signature-Input`, without the label. */
export function paramsOf(components: readonly CoveredComponent[], { created, nonce, keyId }: Signing): string {
  return signatureParams(components, [
    ['created', created],
    ['nonce', nonce],
    ['keyid', keyId],
    ['alg', ALGORITHM],
    ['tag', TAG],
  ]);
}

/** The key ID: the agent's DID, or its AID if it has no DID, followed by the operational key as in its DID document. */
export function keyIdOf(agent: Aid, operationalKey: Uint8Array): string {
  return `${didOf(agent) ?? agent}#${encodeMultikey('ed25519', operationalKey)}`;
}

/**
 * The headers that carry evidence.
 * @param signature as the text of a structured field
 */
export function evidenceHeaders(params: string, signature: string, delegation: string): string[] {
  const lines = ['Signature-Input', `${LABEL}=${params}`, 'Signature', `${LABEL}=${signature}`];
  return [...lines, DELEGATION_HEADER, delegation];
}

const DELEGATION_NAME = DELEGATION_HEADER.toLowerCase();
const INPUT_NAME = 'signature-input';
const SIGNATURE_NAME = 'signature';

/** All values of a header joined as signatures require (RFC 9421, section 2.1), or null if it is missing. */
export function fieldValue(raw: RawHeaders, wanted: string): string | null {
  const values = [...pairs(raw)].filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value.trim());
  return values.length === 0 ? null : values.join(', ');
}

const INPUT =
  /^svcd=(\("@method" "@request-target"( "content-digest")? "svc-caller-aid" "svc-local-aid" "svc-caller-delegation"\);created=([1-9]\d{0,11});nonce="([A-Za-z0-9_-]{22})";keyid="([A-Za-z0-9:#]{1,200})";alg="ed25519";tag="svcd-call")$/;
/** 64 bytes in their only canonical base64 encoding. */
const SIGNATURE = /^svcd=:([A-Za-z0-9+/]{85}[AQgw]==):$/;

/**
 * Reads the evidence of a request. Only the canonical encoding is accepted.
 * @returns undefined if there is no evidence, null if it is malformed
 */
export function readEvidence(raw: RawHeaders): Evidence | null | undefined {
  const lines = evidenceLines(raw);
  // Signatures without a delegation, in any spelling, are no evidence.
  if (lines.every(([name]) => name.startsWith(SIGNATURE_NAME))) return undefined;
  const value = (wanted: string) => lines.find(([name]) => name === wanted)?.[1];
  const delegation = value(DELEGATION_NAME);
  const [, params, digest, created, nonce, keyId] = INPUT.exec(value(INPUT_NAME) ?? '') ?? [];
  const [, bytes] = SIGNATURE.exec(value(SIGNATURE_NAME) ?? '') ?? [];
  // Three lines with three different names, so each occurs once.
  if (lines.length !== 3 || delegation === undefined) return null;
  if (params === undefined || nonce === undefined || keyId === undefined || bytes === undefined) return null;
  return {
    params,
    isDigestCovered: digest !== undefined,
    created: Number(created),
    nonce,
    keyId,
    signature: Buffer.from(bytes, 'base64'),
    delegation,
  };
}

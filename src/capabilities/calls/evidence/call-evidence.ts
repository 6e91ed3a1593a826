/**
 * The evidence that a call may carry: a signature by the caller's operational key over what is asked, of whom and when,
 * with the delegation that lets this key act. The service verifies it with nothing of ours. Format: docs/evidence.md.
 */
import type { Aid } from '../../../foundation/identity/aid.ts';
import { didOf } from '../../../foundation/identity/did.ts';
import { encodeMultikey } from '../../../foundation/identity/multikey.ts';
import { pairs, type RawHeaders } from '../headers.ts';
import { type CoveredComponent, signatureParams } from './signature-base.ts';

/** The delegation, in the base64 of its CBOR between colons. */
export const DELEGATION_HEADER = 'Svc-Caller-Delegation';
/** How long before the called side reads it a call may have been signed, seconds; its clock may run ahead or behind as well. */
export const MAX_EVIDENCE_AGE_S = 300;
/** Random bytes in a nonce. */
export const EVIDENCE_NONCE_BYTES = 16;

/** Key of our signature in the dictionaries `Signature` and `Signature-Input`. */
const LABEL = 'svcd';
/** What the signature is for: one that was made for something else is none of a call. */
const TAG = 'svcd-call';
const ALGORITHM = 'ed25519';

/** What is signed of a call. */
export interface SignedCall {
  readonly caller: Aid;
  readonly called: Aid;
  /** In upper case. */
  readonly method: string;
  /** Path and query, as the service receives them. */
  readonly target: string;
  /** All values of `Content-Digest`; null where nobody knows the body yet. */
  readonly digest: string | null;
  /** Value of `Svc-Caller-Delegation`. */
  readonly delegation: string;
}

/** When and by which key it was signed. */
interface Signing {
  /** Unix seconds. */
  readonly created: number;
  readonly nonce: string;
  readonly keyId: string;
}

/** Our evidence as a request carries it. */
export interface Evidence extends Signing {
  /** As `Signature-Input` says it, without the label. */
  readonly params: string;
  readonly isDigestCovered: boolean;
  readonly signature: Uint8Array;
  /** Value of `Svc-Caller-Delegation`. */
  readonly delegation: string;
}

/** The components that evidence covers, in their order. */
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

/** The parameters of the signature, as `Signature-Input` says them without the label. */
export function paramsOf(components: readonly CoveredComponent[], { created, nonce, keyId }: Signing): string {
  return signatureParams(components, [
    ['created', created],
    ['nonce', nonce],
    ['keyid', keyId],
    ['alg', ALGORITHM],
    ['tag', TAG],
  ]);
}

/** The key's name: the DID of the agent, or its AID where it has none, and the operational key as in its DID document. */
export function keyIdOf(agent: Aid, operationalKey: Uint8Array): string {
  return `${didOf(agent) ?? agent}#${encodeMultikey('ed25519', operationalKey)}`;
}

/** The headers that hand over evidence. @param signature in a structured field's text */
export function evidenceHeaders(params: string, signature: string, delegation: string): string[] {
  const lines = ['Signature-Input', `${LABEL}=${params}`, 'Signature', `${LABEL}=${signature}`];
  return [...lines, DELEGATION_HEADER, delegation];
}

const DELEGATION_NAME = DELEGATION_HEADER.toLowerCase();
const INPUT_NAME = 'signature-input';
const SIGNATURE_NAME = 'signature';

/** True where CGI-like servers, which take `_` and `.` for `-`, see a name as this one. */
function isSpelled(name: string, wanted: string): boolean {
  // Most names differ in their length already.
  return name.length === wanted.length && name.toLowerCase().replace(/[^a-z0-9]/g, '-') === wanted;
}

function isDelegation(name: string): boolean {
  return isSpelled(name, DELEGATION_NAME);
}

/** True for a line of `Signature` or `Signature-Input` that holds our label, however deep: no program has a use for it. */
function isOurs(name: string, value: string): boolean {
  const isSignature = isSpelled(name, SIGNATURE_NAME) || isSpelled(name, INPUT_NAME);
  return isSignature && /(?:^|[^a-z0-9_.*-])svcd\s*=/.test(value);
}

/** Headers without evidence, ours or forged: signatures that programs make themselves stay. */
export function withoutEvidence(raw: RawHeaders): string[] {
  const kept: string[] = [];
  for (const [name, value] of pairs(raw)) if (!isDelegation(name) && !isOurs(name, value)) kept.push(name, value);
  return kept;
}

/** All values of a header as one, as signatures see them (RFC 9421, section 2.1); null where there is none. */
export function fieldValue(raw: RawHeaders, wanted: string): string | null {
  const values = [...pairs(raw)].filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value.trim());
  return values.length === 0 ? null : values.join(', ');
}

const INPUT =
  /^svcd=(\("@method" "@request-target"( "content-digest")? "svc-caller-aid" "svc-local-aid" "svc-caller-delegation"\);created=([1-9]\d{0,11});nonce="([A-Za-z0-9_-]{22})";keyid="([A-Za-z0-9:#]{1,200})";alg="ed25519";tag="svcd-call")$/;
/** 64 bytes, in the one spelling that base64 has for them. */
const SIGNATURE = /^svcd=:([A-Za-z0-9+/]{85}[AQgw]==):$/;

/**
 * Reads the evidence of a request. There is one way to write it.
 * @returns undefined where it carries none, null where what it carries is malformed
 */
export function readEvidence(raw: RawHeaders): Evidence | null | undefined {
  const lines = [...pairs(raw)].filter(([name, value]) => isDelegation(name) || isOurs(name, value));
  if (!lines.some(([name]) => isDelegation(name))) return undefined;
  const value = (wanted: string) => lines.find(([name]) => name.toLowerCase() === wanted)?.[1];
  const delegation = value(DELEGATION_NAME);
  const [, params, digest, created, nonce, keyId] = INPUT.exec(value(INPUT_NAME) ?? '') ?? [];
  const [, bytes] = SIGNATURE.exec(value(SIGNATURE_NAME) ?? '') ?? [];
  // Each once: of three lines, three are of different names.
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

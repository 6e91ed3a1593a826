/**
 * Detached signatures with Ed25519 over bytes that travel elsewhere: JWS (RFC 7515, appendix F; EdDSA of RFC 8037) in the
 * members that A2A cards have for them.
 */
import { SIGNATURE_BYTES, type Signer } from '../identity/ed25519.ts';
import { verifySignature } from '../identity/keys.ts';
import { isObject, readJson } from '../json.ts';
import { canonicalJson } from './canonical-json.ts';

/** Longest protected header that is looked at, characters. */
export const MAX_PROTECTED_CHARS = 2048;

/** One signature: what it says of itself, base64url, and the signature, base64url. */
export interface DetachedJws {
  readonly protected: string;
  readonly signature: string;
}

/** Members of a protected header. */
export type JwsHeader = Readonly<Record<string, unknown>>;

/** Base64url without padding (RFC 7515, section 2). */
export function toBase64url(bytes: Uint8Array | string): string {
  return Buffer.from(bytes).toString('base64url');
}

/** The bytes of a base64url text; null for any spelling but the one without padding. */
export function fromBase64url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}

/** What is signed: RFC 7515, section 5.1, step 8. */
function signingInput(protectedHeader: string, payload: Uint8Array | string): Uint8Array {
  return Buffer.from(`${protectedHeader}.${toBase64url(payload)}`, 'latin1');
}

/** Signs a payload; `alg` is set here. */
export function signDetached(
  header: JwsHeader,
  payload: Uint8Array | string,
  signer: Pick<Signer, 'sign'>,
): DetachedJws {
  const protectedHeader = toBase64url(canonicalJson({ ...header, alg: 'EdDSA' }));
  return { protected: protectedHeader, signature: toBase64url(signer.sign(signingInput(protectedHeader, payload))) };
}

/** The protected header of a signature; null where it is none, and for what we could not verify anyway. */
export function readHeader(jws: { readonly protected: string }): JwsHeader | null {
  if (jws.protected.length > MAX_PROTECTED_CHARS) return null;
  const bytes = fromBase64url(jws.protected);
  const header = bytes === null ? undefined : readJson(bytes.toString('utf8'));
  return isObject(header) ? header : null;
}

/**
 * True where a signature is `publicKey`'s over the payload, with EdDSA. A header that asks for more to be understood
 * (`crit`) or for another form of the payload (`b64`) is none of ours: false.
 */
export function verifyDetached(jws: DetachedJws, payload: Uint8Array | string, publicKey: Uint8Array): boolean {
  const header = readHeader(jws);
  if (header === null || header['alg'] !== 'EdDSA' || 'crit' in header || 'b64' in header) return false;
  const signature = fromBase64url(jws.signature);
  if (signature?.length !== SIGNATURE_BYTES) return false;
  return verifySignature(publicKey, signingInput(jws.protected, payload), signature);
}

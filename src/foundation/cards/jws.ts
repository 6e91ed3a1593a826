/** Detached Ed25519 signatures: JWS (RFC 7515, appendix F; EdDSA of RFC 8037) in the members that A2A cards define. */
import { SIGNATURE_BYTES, type Signer } from '../identity/ed25519.ts';
import { verifySignature } from '../identity/keys.ts';
import { isObject, readJson } from '../json.ts';
import { canonicalJson } from './canonical-json.ts';

/** Maximum length of a protected header, in characters. */
export const MAX_PROTECTED_CHARS = 2048;

/** A signature and its protected header, both in base64url. */
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

/** Decodes base64url without padding; null for any other text. */
export function fromBase64url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}

/** The signed bytes: RFC 7515, section 5.1, step 8. */
function signingInput(protectedHeader: string, payload: Uint8Array | string): Uint8Array {
  return Buffer.from(`${protectedHeader}.${toBase64url(payload)}`, 'latin1');
}

/** Signs a payload. This function sets `alg`. */
export function signDetached(
  header: JwsHeader,
  payload: Uint8Array | string,
  signer: Pick<Signer, 'sign'>,
): DetachedJws {
  const protectedHeader = toBase64url(canonicalJson({ ...header, alg: 'EdDSA' }));
  return { protected: protectedHeader, signature: toBase64url(signer.sign(signingInput(protectedHeader, payload))) };
}

/** The protected header of a signature; null if it is malformed or not supported. */
export function readHeader(jws: { readonly protected: string }): JwsHeader | null {
  if (jws.protected.length > MAX_PROTECTED_CHARS) return null;
  const bytes = fromBase64url(jws.protected);
  const header = bytes === null ? undefined : readJson(bytes.toString('utf8'));
  return isObject(header) ? header : null;
}

/**
 * True if a signature by `publicKey` over the payload is valid (EdDSA). False for headers with extensions (`crit`) or
 * another payload form (`b64`), which are not supported.
 */
export function verifyDetached(jws: DetachedJws, payload: Uint8Array | string, publicKey: Uint8Array): boolean {
  const header = readHeader(jws);
  if (header === null || header['alg'] !== 'EdDSA' || 'crit' in header || 'b64' in header) return false;
  const signature = fromBase64url(jws.signature);
  if (signature?.length !== SIGNATURE_BYTES) return false;
  return verifySignature(publicKey, signingInput(jws.protected, payload), signature);
}

/** HTTP Message Signatures (RFC 9421) and digest fields (RFC 9530): the signature base and the header values. */
import { createHash } from 'node:crypto';

/** A component that a signature covers: its lower-case name and its value (RFC 9421, section 2). */
export type CoveredComponent = readonly [name: string, value: string];

/** The parameters of a signature in serialization order (RFC 9421, section 2.3). */
export type SignatureParameter = readonly [name: string, value: string | number];

/**
 * The covered components and parameters of a signature, as in `Signature-Input`. Values must not contain `"` or `\`.
 */
export function signatureParams(
  components: readonly CoveredComponent[],
  parameters: readonly SignatureParameter[],
): string {
  const names = components.map(([name]) => `"${name}"`).join(' ');
  const rest = parameters.map(([name, value]) => `;${name}=${typeof value === 'number' ? value : `"${value}"`}`);
  return `(${names})${rest.join('')}`;
}

/**
 * The bytes to sign (RFC 9421, section 2.5).
 * @param params the result of `signatureParams` for these components
 */
export function signatureBase(components: readonly CoveredComponent[], params: string): Buffer {
  const lines = [...components, ['@signature-params', params]].map(([name, value]) => `"${name}": ${value}`);
  // Node decodes header values as Latin-1.
  return Buffer.from(lines.join('\n'), 'latin1');
}

/** A byte sequence as in structured fields (RFC 9651, section 3.3.5). */
export function byteSequence(bytes: Uint8Array): string {
  return `:${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')}:`;
}

/** Value of `Content-Digest` for a body (RFC 9530, section 2), with SHA-256. */
export function contentDigest(body: Uint8Array): string {
  return `sha-256=${byteSequence(createHash('sha256').update(body).digest())}`;
}

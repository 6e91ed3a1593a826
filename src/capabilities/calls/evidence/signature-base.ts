/** HTTP Message Signatures (RFC 9421) and digest fields (RFC 9530): the texts that are signed, and those that say so. */
import { createHash } from 'node:crypto';

/** A component that a signature covers: its name, in lower case, and its value (RFC 9421, section 2). */
export type CoveredComponent = readonly [name: string, value: string];

/** The parameters of a signature, in the order in which they are written (RFC 9421, section 2.3). */
export type SignatureParameter = readonly [name: string, value: string | number];

/** What a signature covers and how it was made, as `Signature-Input` says it. Values hold no `"` and no `\`. */
export function signatureParams(
  components: readonly CoveredComponent[],
  parameters: readonly SignatureParameter[],
): string {
  const names = components.map(([name]) => `"${name}"`).join(' ');
  const rest = parameters.map(([name, value]) => `;${name}=${typeof value === 'number' ? value : `"${value}"`}`);
  return `(${names})${rest.join('')}`;
}

/**
 * The bytes that are signed (RFC 9421, section 2.5).
 * @param params what `signatureParams` gives for these components
 */
export function signatureBase(components: readonly CoveredComponent[], params: string): Buffer {
  const lines = [...components, ['@signature-params', params]].map(([name, value]) => `"${name}": ${value}`);
  // Header values are bytes that Node shows as Latin-1.
  return Buffer.from(lines.join('\n'), 'latin1');
}

/** Bytes as a structured field writes them (RFC 9651, section 3.3.5). */
export function byteSequence(bytes: Uint8Array): string {
  return `:${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')}:`;
}

/** Value of `Content-Digest` for a body (RFC 9530, section 2), with SHA-256. */
export function contentDigest(body: Uint8Array): string {
  return `sha-256=${byteSequence(createHash('sha256').update(body).digest())}`;
}

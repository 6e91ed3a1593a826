/** A SHA-256 in paths, bodies and files: lower-case hex. */
export const SHA256_PATTERN = '^[0-9a-f]{64}$';

const SHA256 = new RegExp(SHA256_PATTERN);

export function isSha256(text: string): boolean {
  return SHA256.test(text);
}

/**
 * Master keys in the page. They are created, read, used and wiped here and never sent. The page sends only the signed
 * delegation, in the format that the daemon reads.
 */
import { fromHex, toHex } from '../../../src/foundation/bytes.ts';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { delegationSigningInput, encodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { PUBLIC_KEY_BYTES, SEED_BYTES } from '../../../src/foundation/identity/ed25519.ts';
import { checkGrant, SCOPE_NETWORK } from '../../../src/foundation/identity/grant.ts';

/** The PKCS #8 header before the seed of an Ed25519 key (RFC 8410). */
const PKCS8 = '302e020100300506032b657004220420';
/** Prefix of comment lines in a master key file. */
const REMARK = '#';

export type Bytes = Uint8Array<ArrayBuffer>;

/** An Ed25519 key in the page. */
export interface PageKey {
  readonly publicKey: Bytes;
  /** The 64-byte signature of a message. */
  sign(message: Uint8Array): Promise<Bytes>;
}

/** True if the browser can sign. It cannot on a remote page over plain HTTP. */
export function canSign(): boolean {
  const { crypto } = globalThis;
  return crypto !== undefined && crypto.subtle !== undefined;
}

/** A new seed. Anyone who has it has the key. */
export function newSeed(): Bytes {
  return crypto.getRandomValues(new Uint8Array(SEED_BYTES));
}

function base64urlBytes(text: string): Bytes {
  const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(plain, (char) => char.charCodeAt(0));
}

/**
 * The key of a seed.
 *
 * @throws TypeError if the browser does not support Ed25519
 */
export async function keyOf(seed: Uint8Array): Promise<PageKey> {
  const pkcs8 = new Uint8Array([...(fromHex(PKCS8) ?? []), ...seed]);
  try {
    const readable = await crypto.subtle.importKey('pkcs8', pkcs8, 'Ed25519', true, ['sign']);
    const { x = '' } = await crypto.subtle.exportKey('jwk', readable);
    const publicKey = base64urlBytes(x);
    if (publicKey.length !== PUBLIC_KEY_BYTES) throw new TypeError('This browser does not support Ed25519 keys.');
    const key = await crypto.subtle.importKey('pkcs8', pkcs8, 'Ed25519', false, ['sign']);
    const sign = async (message: Uint8Array): Promise<Bytes> =>
      new Uint8Array(await crypto.subtle.sign('Ed25519', key, Uint8Array.from(message)));
    return { publicKey, sign };
  } finally {
    pkcs8.fill(0);
  }
}

/** The AID of a master key. */
export function aidOfKey({ publicKey }: PageKey): string {
  return nativeAid(publicKey);
}

/**
 * The delegation of an operational key, in hex.
 *
 * @param issuedAt Unix seconds
 * @param expiresAt Unix seconds; 0 means never
 * @throws SvcError `bad_delegation` if the times are invalid
 */
export async function proofHex(
  master: PageKey,
  operationalKey: Uint8Array,
  issuedAt: number,
  expiresAt: number,
): Promise<string> {
  const grant = { agent: nativeAid(master.publicKey), operationalKey, scope: SCOPE_NETWORK, issuedAt, expiresAt };
  checkGrant(grant);
  const signature = await master.sign(delegationSigningInput(grant));
  return toHex(encodeDelegation({ ...grant, signature }));
}

/** The content of a master key file, the same as from `svc`. */
export function masterFileText(aid: string, seed: Uint8Array): string {
  return `# Master key of ${aid}: the only way to restore this identity. Keep it offline.\n${toHex(seed)}\n`;
}

/** The seed in a file or in typed text. Null if there is none. */
export function readSeed(text: string): Bytes | null {
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  const digits = lines
    .filter((line) => !line.startsWith(REMARK))
    .join('')
    .replaceAll(/\s/g, '');
  const bytes = fromHex(digits);
  // The public key may follow the seed.
  if (bytes === null || (bytes.length !== SEED_BYTES && bytes.length !== SEED_BYTES + PUBLIC_KEY_BYTES)) return null;
  const seed = Uint8Array.from(bytes.subarray(0, SEED_BYTES));
  bytes.fill(0);
  return seed;
}

/** Hex in groups of four digits, for people. */
export function groupsOf(seed: Uint8Array): readonly string[] {
  return toHex(seed).match(/.{4}/g) ?? [];
}

/** The last hex digits. The user types them to prove that the key was written down. */
export function lastDigits(seed: Uint8Array, digits: number): string {
  return toHex(seed).slice(-digits);
}

export { toHex };

/**
 * The issue time of a new delegation, Unix seconds: now, but later than the current delegation.
 *
 * @param issued issue time of the current delegation, as the daemon reports it; empty if there is none
 * @param now milliseconds since 1970
 */
export function issueTime(previous: string, now: number): number {
  const after = previous === '' ? 0 : Math.floor(Date.parse(previous) / 1000) + 1;
  return Math.max(Math.floor(now / 1000), after);
}

/**
 * Release keys: Ed25519 keys of the project that sign each release. The public keys are pinned in the build, so that
 * the owner of a registry name alone cannot publish a release. `tools/sign-release.ts` signs.
 */
import { type Static, Type } from 'typebox';
import { fromHex } from '../../foundation/bytes.ts';
import { verifySignature } from '../../foundation/identity/keys.ts';

/** Public keys in hex. A release needs a signature by one of them. Without a key there is no release channel. */
export const RELEASE_KEYS: readonly string[] = [];

const DOMAIN = 'svcd/release/v1';
/** Signatures per release. There is more than one only while a key is replaced. */
const MAX_RELEASE_SIGNATURES = 8;

/** 32 bytes in hex. */
const KEY_HEX_CHARS = 64;
/** 64 bytes in base64. */
const SIGNATURE_BASE64_CHARS = 88;

/** The field `svcd` of a version in the registry. */
export const ReleaseProof = Type.Object({
  signatures: Type.Array(
    Type.Object({
      /** The public key in hex. */
      key: Type.String({ maxLength: KEY_HEX_CHARS }),
      /** The 64 bytes of the signature in base64. */
      signature: Type.String({ maxLength: SIGNATURE_BASE64_CHARS }),
    }),
    { maxItems: MAX_RELEASE_SIGNATURES },
  ),
});
export type ReleaseProof = Static<typeof ReleaseProof>;

export interface SignedRelease {
  readonly name: string;
  readonly version: string;
  /** `sha512-…` of the tarball. */
  readonly integrity: string;
}

/** The bytes that a release key signs. */
export function releaseMessage({ name, version, integrity }: SignedRelease): Uint8Array {
  return Buffer.from([DOMAIN, name, version, integrity].join('\0'), 'utf8');
}

/** Why a release is not an authentic release of the project; null if it is. */
export function releaseProblem(release: SignedRelease, proof: ReleaseProof, keys: readonly string[]): string | null {
  const title = `${release.name}@${release.version}`;
  const pinned = proof.signatures.filter(({ key }) => keys.includes(key));
  if (pinned.length === 0) return `${title} is not signed with a release key of svcd`;
  const message = releaseMessage(release);
  const holds = pinned.every(({ key, signature }) =>
    verifySignature(fromHex(key) ?? new Uint8Array(), message, Buffer.from(signature, 'base64')),
  );
  return holds ? null : `${title} has an invalid signature by the release key`;
}

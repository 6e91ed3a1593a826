/**
 * Signatures of an npm registry: ECDSA over P-256 with SHA-256 of `name@version:integrity`, by keys that the registry
 * lists at `/-/npm/v1/keys`. `npm audit signatures` checks the same.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { type Static, Type } from 'typebox';

const KEY_TYPE = 'ecdsa-sha2-nistp256';
const CURVE = 'prime256v1';

export const RegistryKeys = Type.Object({
  keys: Type.Array(
    Type.Object({
      keyid: Type.String(),
      keytype: Type.String(),
      /** Subject public key info, DER in base64. */
      key: Type.String(),
      expires: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    }),
  ),
});
type RegistryKey = Static<typeof RegistryKeys>['keys'][number];

export const Signatures = Type.Array(Type.Object({ keyid: Type.String(), sig: Type.String() }));

/** A signed release, before verification. */
export interface Signed {
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
  readonly signatures: Static<typeof Signatures>;
  /** Publication time, in Unix milliseconds. A key may have expired since. */
  readonly publishedAt: number;
}

/** Null if the key has another type or is unreadable. */
function publicKey(key: RegistryKey): KeyObject | null {
  if (key.keytype !== KEY_TYPE) return null;
  try {
    const object = createPublicKey({ key: Buffer.from(key.key, 'base64'), format: 'der', type: 'spki' });
    return object.asymmetricKeyDetails?.namedCurve === CURVE ? object : null;
  } catch {
    return null;
  }
}

function isValidAt({ expires }: RegistryKey, time: number): boolean {
  return expires === undefined || expires === null || time < Date.parse(expires);
}

/**
 * Why a release is not trusted; null if it is. At least one signature by a key of the registry must be valid, and none
 * may be invalid. While a registry replaces its key, it signs with both.
 */
export function signatureProblem(signed: Signed, keys: readonly RegistryKey[]): string | null {
  const { name, version, integrity, signatures, publishedAt } = signed;
  const release = `${name}@${version}`;
  if (keys.length === 0) return 'the registry lists no signing keys';
  if (signatures.length === 0) return `${release} is not signed`;
  let holds = 0;
  for (const { keyid, sig } of signatures) {
    const listed = keys.find((key) => key.keyid === keyid);
    const key = listed === undefined ? null : publicKey(listed);
    if (listed === undefined || key === null) continue;
    if (!isValidAt(listed, publishedAt)) return `the key that signed ${release} had expired`;
    if (!verify('sha256', Buffer.from(`${release}:${integrity}`), key, Buffer.from(sig, 'base64')))
      return `the signature of ${release} is invalid`;
    holds++;
  }
  return holds > 0 ? null : `${release} is signed with a key that the registry does not list`;
}

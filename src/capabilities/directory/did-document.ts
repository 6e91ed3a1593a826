/**
 * The DID document of a native agent (W3C, "Decentralized Identifiers 1.0"), from its publications. The did:key contains
 * only the master key, which is offline and may only delegate. The document adds the operational keys with their proofs,
 * the keys for notes, and the address of the agent.
 */
import { toBase64 } from '../../foundation/base64.ts';
import { isoTime } from '../../foundation/clock.ts';
import { type Aid, didOf, nativePublicKey } from '../../foundation/identity/aid.ts';
import { type Delegation, encodeDelegation } from '../../foundation/identity/delegation.ts';
import { encodeMultikey } from '../../foundation/identity/multikey.ts';
import { decodeEncryptionKeysPayload, decodeEndpointsPayload } from '../../foundation/records/payloads.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
import { readProfile } from './cards.ts';

interface VerificationMethod {
  readonly id: string;
  readonly type: 'Multikey';
  readonly controller: string;
  readonly publicKeyMultibase: string;
  /** When the key expires; absent if it does not, ISO 8601. */
  readonly expires?: string;
  /** The delegation proof of the agent's master key for this key, which lets it act, deterministic CBOR in base64. */
  readonly delegation?: string;
}

interface Service {
  readonly id: string;
  readonly type: string;
  readonly serviceEndpoint: readonly string[] | Readonly<Record<string, unknown>>;
}

export interface DidDocument {
  readonly '@context': readonly string[];
  readonly id: string;
  readonly verificationMethod: readonly VerificationMethod[];
  readonly capabilityDelegation: readonly string[];
  readonly authentication: readonly string[];
  readonly assertionMethod: readonly string[];
  readonly capabilityInvocation: readonly string[];
  readonly keyAgreement: readonly string[];
  readonly service: readonly Service[];
}

const CONTEXT = ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/multikey/v1'];

function method(did: string, key: string, more: Partial<VerificationMethod> = {}): VerificationMethod {
  return { id: `${did}#${key}`, type: 'Multikey', controller: did, publicKeyMultibase: key, ...more };
}

function operational(did: string, delegation: Delegation): VerificationMethod {
  const { operationalKey, expiresAt } = delegation;
  return method(did, encodeMultikey('ed25519', operationalKey), {
    ...(expiresAt === 0 ? {} : { expires: isoTime(expiresAt * 1000) }),
    delegation: toBase64(encodeDelegation(delegation)),
  });
}

function servicesOf(did: string, records: readonly SignedRecord[]): Service[] {
  return records.flatMap(({ type, payload }): Service[] => {
    const endpoints = type === RECORD.endpoints ? decodeEndpointsPayload(payload)?.endpoints : undefined;
    if (endpoints !== undefined) return [{ id: `${did}#svcd`, type: 'SvcdAgent', serviceEndpoint: endpoints }];
    const profile = type === RECORD.profile ? readProfile(payload) : null;
    return profile === null ? [] : [{ id: `${did}#profile`, type: 'SvcdProfile', serviceEndpoint: { ...profile } }];
  });
}

/**
 * The document of an agent; null for agents of wallets, which have no did:key.
 * @param records the records under its AID and its newest delegation
 */
export function didDocument(aid: Aid, records: readonly SignedRecord[]): DidDocument | null {
  const did = didOf(aid);
  const masterKey = nativePublicKey(aid);
  if (did === null || masterKey === null) return null;
  const master = method(did, encodeMultikey('ed25519', masterKey));
  // Two records of one delegation name one key once.
  const acting = new Map(records.map(({ delegation }) => [toBase64(delegation.operationalKey), delegation]));
  const actors = [...acting.values()].map((delegation) => operational(did, delegation));
  const sealing = records
    .filter(({ type }) => type === RECORD.encryptionKeys)
    .flatMap(({ payload }) => decodeEncryptionKeysPayload(payload) ?? [])
    .map(({ publicKey }) => method(did, encodeMultikey('x25519', publicKey)));
  const acts = actors.map(({ id }) => id);
  return {
    '@context': CONTEXT,
    id: did,
    verificationMethod: [master, ...actors, ...sealing],
    capabilityDelegation: [master.id],
    authentication: acts,
    assertionMethod: acts,
    capabilityInvocation: acts,
    keyAgreement: sealing.map(({ id }) => id),
    service: servicesOf(did, records),
  };
}

/**
 * Delegation proofs: the master key of an AID allows an operational key to act for it for a given time. Format and
 * signing input: docs/protocol.md, "Delegation proofs".
 */
import { concatBytes } from '@noble/hashes/utils.js';
import { equalBytes, toHex } from '../bytes.ts';
import { asMap, decodeCbor, encodeCbor, isBytes, isUint } from '../cbor.ts';
import { SvcError } from '../errors.ts';
import { LruCache } from '../lru-cache.ts';
import { type Aid, aidFromBytes, aidToBytes, nativeAid, schemeOf } from './aid.ts';
import { SIGNATURE_BYTES, type Signer } from './ed25519.ts';
import { badDelegation, checkGrant, type Grant, SCOPE_NETWORK } from './grant.ts';
import { WALLET_SIGNATURE_BYTES } from './wallet.ts';

const VERSION = 1;
const DOMAIN = new TextEncoder().encode('svcd/delegation/v1\0');
/** Maximum size of an encoded proof, in bytes. */
export const MAX_DELEGATION_BYTES = 1024;
/** Maximum number of cached decoded proofs, about a kilobyte each. A storage node sees the same few repeatedly. */
const MAX_PROOFS_AT_HAND = 1024;

/** A proof: the grant, and the signature of the agent's master key or wallet. */
export interface Delegation extends Grant {
  /** Ed25519 (64 bytes) for native agents, recoverable ECDSA (65 bytes) for wallets. */
  readonly signature: Uint8Array;
  /** The text that a wallet signed; undefined for native agents. */
  readonly text?: string;
}

/** The wire format of a grant. Keys have one letter to save space in datagrams. */
function grantMap(grant: Grant): { readonly [key: string]: Uint8Array | number } {
  return {
    v: VERSION,
    a: aidToBytes(grant.agent),
    k: grant.operationalKey,
    s: grant.scope,
    i: grant.issuedAt,
    e: grant.expiresAt,
  };
}

/** The bytes that the master key of a native agent signs. */
export function delegationSigningInput(grant: Grant): Uint8Array {
  return concatBytes(DOMAIN, encodeCbor(grantMap(grant)));
}

/**
 * Issues a native delegation with the master key of the AID.
 * @param issuedAt Unix seconds
 * @param expiresAt Unix seconds; 0 means never
 * @throws SvcError `bad_delegation` if the times or the operational key are invalid
 */
export function issueDelegation(
  master: Signer,
  operationalKey: Uint8Array,
  issuedAt: number,
  expiresAt = 0,
): Delegation {
  const grant: Grant = {
    agent: nativeAid(master.publicKey),
    operationalKey,
    scope: SCOPE_NETWORK,
    issuedAt,
    expiresAt,
  };
  checkGrant(grant);
  return Object.freeze({ ...grant, signature: master.sign(delegationSigningInput(grant)) });
}

/** Recently decoded proofs by their bytes in hex. Their signatures are not verified. */
const wellFormed = new LruCache<string, Delegation>({ maxEntries: MAX_PROOFS_AT_HAND });
/** Encoded bytes of proofs. Every record contains a proof and is encoded several times. */
const encodings = new WeakMap<Delegation, Uint8Array>();

/** Encodes a proof in deterministic CBOR. Do not change the result. */
export function encodeDelegation(d: Delegation): Uint8Array {
  const known = encodings.get(d);
  if (known !== undefined) return known;
  const bytes = encodeCbor({ ...grantMap(d), g: d.signature, t: d.text });
  // A frozen proof cannot change, so its encoding can be cached.
  if (Object.isFrozen(d)) encodings.set(d, bytes);
  return bytes;
}

/**
 * Decodes a proof. The result is well-formed but not verified.
 * @throws SvcError `bad_delegation`
 */
export function decodeDelegation(bytes: Uint8Array): Delegation {
  const name = toHex(bytes);
  const known = wellFormed.get(name);
  if (known !== undefined) return known;
  const delegation = readDelegation(bytes);
  wellFormed.set(name, delegation);
  return delegation;
}

function readDelegation(bytes: Uint8Array): Delegation {
  let decoded: unknown;
  try {
    decoded = decodeCbor(bytes, MAX_DELEGATION_BYTES);
  } catch (error) {
    throw new SvcError('bad_delegation', { message: 'The delegation proof is malformed.', cause: error });
  }
  const map = asMap(decoded, ['v', 'a', 'k', 's', 'i', 'e', 'g'], ['t']);
  if (map === null || map['v'] !== VERSION) throw badDelegation('unknown format');
  const { a: agent, k: operationalKey, s: scope, i: issuedAt, e: expiresAt, g: signature, t: text } = map;
  if (!isBytes(agent) || !isBytes(operationalKey) || !isBytes(signature)) throw badDelegation('malformed field');
  if (!isUint(scope) || !isUint(issuedAt) || !isUint(expiresAt)) throw badDelegation('malformed field');
  if (text !== undefined && typeof text !== 'string') throw badDelegation('malformed field');
  const grant = { agent: readAgent(agent), operationalKey, scope, issuedAt, expiresAt };
  checkGrant(grant);
  const native = schemeOf(grant.agent) === 'native';
  if (signature.length !== (native ? SIGNATURE_BYTES : WALLET_SIGNATURE_BYTES)) throw badDelegation('malformed field');
  if (native !== (text === undefined)) throw badDelegation('a wallet must sign a text, and a native agent must not');
  const delegation = Object.freeze({ ...grant, signature, ...(text === undefined ? {} : { text }) });
  encodings.set(delegation, Uint8Array.from(bytes));
  return delegation;
}

function readAgent(bytes: Uint8Array): Aid {
  try {
    return aidFromBytes(bytes);
  } catch (error) {
    throw new SvcError('bad_delegation', { message: 'The delegation proof names no valid agent.', cause: error });
  }
}

/** The self-delegation of a node: its key is both master and operational key. */
export function selfDelegation(node: Signer): Delegation {
  return issueDelegation(node, node.publicKey, 0);
}

/** True if `publicKey` is the operational key of a grant or proof. */
export function delegates(d: Grant, publicKey: Uint8Array): boolean {
  return equalBytes(d.operationalKey, publicKey);
}

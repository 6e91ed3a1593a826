/**
 * Delegations signed by a wallet: Ethereum (EIP-191 `personal_sign`) and Paralism (Bitcoin signed message). The
 * signature does not contain the key. The key is recovered from it, and must own the agent.
 */
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes } from '@noble/hashes/utils.js';
import { equalBytes, fromHex, toHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { type Aid, parseAid, schemeOf } from './aid.ts';
import { badDelegation, checkGrant, type Grant, SCOPE_NETWORK } from './grant.ts';
import { type WalletScheme, walletAid, walletPublicKey } from './wallet-keys.ts';

/** A recoverable ECDSA signature: 32 bytes r, 32 bytes s, and one recovery byte. */
export const WALLET_SIGNATURE_BYTES = 65;
/** Ethereum's `v`, after r and s: 27 plus the parity of the recovered point. */
const ETHEREUM_V = 27;
/** Bitcoin's header byte for a compressed key, before r and s: 31 plus the parity. */
const BITCOIN_HEADER = 31;
/** Other signers use segwit headers (P2SH and native), which are 4 or 8 higher. This is the highest. */
const BITCOIN_HEADER_LAST = 42;

/** A wallet's proof: the grant, its text, and the signature over the text. */
export interface WalletDelegation extends Grant {
  readonly signature: Uint8Array;
  readonly text: string;
}

/** The hash that Ethereum's `personal_sign` signs (EIP-191, version 0x45). */
function ethereumHash(text: Uint8Array): Uint8Array {
  const prefix = new TextEncoder().encode(`\x19Ethereum Signed Message:\n${text.length}`);
  return keccak_256(concatBytes(prefix, text));
}

/**
 * The hash that Bitcoin's `signmessage` signs. The length is a Bitcoin variable integer of one byte, because our texts
 * are shorter than 253 bytes.
 */
function bitcoinHash(text: Uint8Array): Uint8Array {
  const prefix = new TextEncoder().encode('\x18Bitcoin Signed Message:\n');
  return sha256(sha256(concatBytes(prefix, Uint8Array.of(text.length), text)));
}

function hashOf(scheme: WalletScheme, text: string): Uint8Array {
  const bytes = new TextEncoder().encode(text);
  return scheme === 'ethereum' ? ethereumHash(bytes) : bitcoinHash(bytes);
}

function walletSchemeOf(agent: Aid): WalletScheme {
  const scheme = schemeOf(agent);
  if (scheme === 'native') throw badDelegation('the agent is not a wallet');
  return scheme;
}

/** The parity in a recovery byte, in any form that wallets use; null for other bytes. */
function parityOf(scheme: WalletScheme, byte: number): number | null {
  if (scheme === 'ethereum') return byte === 0 || byte === 1 ? byte : byte === 27 || byte === 28 ? byte - 27 : null;
  if (byte < BITCOIN_HEADER || byte > BITCOIN_HEADER_LAST) return null;
  const recovery = (byte - BITCOIN_HEADER) % 4;
  return recovery < 2 ? recovery : null;
}

/** The canonical form of a signature in proofs. */
function normalize(scheme: WalletScheme, parity: number, rs: Uint8Array): Uint8Array {
  return scheme === 'ethereum'
    ? concatBytes(rs, Uint8Array.of(ETHEREUM_V + parity))
    : concatBytes(Uint8Array.of(BITCOIN_HEADER + parity), rs);
}

/** Converts a wallet's signature to the canonical form. */
function normalizeSignature(scheme: WalletScheme, signature: Uint8Array): Uint8Array {
  if (signature.length !== WALLET_SIGNATURE_BYTES)
    throw badDelegation(`a wallet signature has ${WALLET_SIGNATURE_BYTES} bytes`);
  const atEnd = scheme === 'ethereum';
  const parity = parityOf(scheme, signature[atEnd ? WALLET_SIGNATURE_BYTES - 1 : 0] ?? 0xff);
  if (parity === null) throw badDelegation('the signature has an unknown recovery byte');
  return normalize(scheme, parity, atEnd ? signature.subarray(0, -1) : signature.subarray(1));
}

/** The agent whose key made a signature in canonical form. */
function signerOf(scheme: WalletScheme, signature: Uint8Array, text: string): Aid {
  const ethereum = scheme === 'ethereum';
  const rs = ethereum ? signature.subarray(0, -1) : signature.subarray(1);
  const parity = ethereum ? (signature.at(-1) ?? 0) - ETHEREUM_V : (signature[0] ?? 0) - BITCOIN_HEADER;
  try {
    const parsed = secp256k1.Signature.fromBytes(rs, 'compact');
    // n − s is a valid signature of the same text. Only the lower value is accepted, so that the signature is unique.
    if (parsed.hasHighS()) throw badDelegation('the signature has a high s');
    return walletAid(scheme, parsed.addRecoveryBit(parity).recoverPublicKey(hashOf(scheme, text)).toBytes(true));
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw badDelegation('no key can be recovered from the signature');
  }
}

/**
 * Verifies that the wallet of the proof's agent signed its text, and that the text matches the grant.
 * @throws SvcError `bad_delegation` with the reason
 */
export function verifyWalletDelegation(d: Grant & { readonly signature: Uint8Array; readonly text?: string }): void {
  const scheme = walletSchemeOf(d.agent);
  const stated = d.text === undefined ? null : parseWalletText(d.text);
  if (d.text === undefined || stated === null) throw badDelegation('the signed text is not a delegation');
  if (stated.agent !== d.agent) throw badDelegation('the signed text contains another agent');
  if (!equalBytes(stated.operationalKey, d.operationalKey)) throw badDelegation('the signed text contains another key');
  if (stated.scope !== d.scope || stated.issuedAt !== d.issuedAt || stated.expiresAt !== d.expiresAt)
    throw badDelegation('the signed text contains another scope or time');
  if (!equalBytes(normalizeSignature(scheme, d.signature), d.signature))
    throw badDelegation('the signature is not in canonical form');
  if (signerOf(scheme, d.signature, d.text) !== d.agent) throw badDelegation('the agent did not sign it');
}

/**
 * Creates the proof from a wallet's signature over `walletText(grant)`. Accepts all forms that wallets use (v of 0, 1,
 * 27, 28; the segwit headers).
 * @throws SvcError `bad_delegation` if the agent did not sign; `signer` in its details is the signer
 */
export function walletDelegation(grant: Grant, signature: Uint8Array): WalletDelegation {
  const text = walletText(grant);
  const scheme = walletSchemeOf(grant.agent);
  const proof = { ...grant, signature: normalizeSignature(scheme, signature), text };
  const signer = signerOf(scheme, proof.signature, text);
  if (signer !== grant.agent) throw wrongSigner(signer);
  return proof;
}

/**
 * A signature of any text recovers to some address. Only the user knows which of the two causes
 * applies.
 */
function wrongSigner(signer: Aid): SvcError {
  const reason = 'the agent did not sign it';
  return new SvcError('bad_delegation', {
    message: `Invalid delegation proof: ${reason}. Either ${signer} signed it, or the signed text has other times or another key.`,
    details: { reason, signer },
  });
}

/**
 * Signs a delegation with a wallet's private key (32 bytes).
 * @throws SvcError `bad_key`; `bad_delegation` if the grant is invalid or belongs to another agent
 */
export function signDelegation(scheme: WalletScheme, privateKey: Uint8Array, grant: Grant): WalletDelegation {
  if (walletAid(scheme, walletPublicKey(privateKey)) !== grant.agent)
    throw badDelegation('the agent belongs to another wallet key');
  const text = walletText(grant);
  const [parity = 0, ...rs] = secp256k1.sign(hashOf(scheme, text), privateKey, { prehash: false, format: 'recovered' });
  return { ...grant, signature: normalize(scheme, parity, Uint8Array.from(rs)), text };
}

/**
 * Issues a delegation for the agent of a wallet key (32 bytes).
 * @param issuedAt Unix seconds
 * @param expiresAt Unix seconds; 0 means never
 * @throws SvcError `bad_key`; `bad_delegation` if the times or the operational key are invalid
 */
export function issueWalletDelegation(
  scheme: WalletScheme,
  privateKey: Uint8Array,
  operationalKey: Uint8Array,
  issuedAt: number,
  expiresAt = 0,
): WalletDelegation {
  const agent = walletAid(scheme, walletPublicKey(privateKey));
  return signDelegation(scheme, privateKey, { agent, operationalKey, scope: SCOPE_NETWORK, issuedAt, expiresAt });
}

// The text that a wallet signs to delegate. Each grant has exactly one text, and parsing it returns the grant.
// Format: docs/protocol.md, "Wallet text".

const TITLE = 'svcd delegation v1\nAllow the key below to act for my agent.\n\n';
const FIELDS =
  /^op_key: ([0-9a-f]{64})\nagent: ([0-9A-Za-z]{1,90})\nscope: ([0-9]{1,2})\nissued_at: ([0-9]{1,12})\nexpires_at: ([0-9]{1,12})$/;

/**
 * Formats a grant, without a line break at the end.
 * @throws SvcError `bad_delegation` if the grant is invalid
 */
export function walletText(grant: Grant): string {
  checkGrant(grant);
  return `${TITLE}op_key: ${toHex(grant.operationalKey)}\nagent: ${grant.agent}\nscope: ${grant.scope}\nissued_at: ${grant.issuedAt}\nexpires_at: ${grant.expiresAt}`;
}

/** Parses a text; null unless it is exactly the text that `walletText` returns for the grant. */
export function parseWalletText(text: string): Grant | null {
  const fields = text.startsWith(TITLE) ? FIELDS.exec(text.slice(TITLE.length)) : null;
  if (fields === null) return null;
  const [, key = '', agent = '', scope, issuedAt, expiresAt] = fields;
  try {
    const grant: Grant = {
      agent: parseAid(agent),
      operationalKey: fromHex(key) ?? new Uint8Array(),
      scope: Number(scope),
      issuedAt: Number(issuedAt),
      expiresAt: Number(expiresAt),
    };
    return walletText(grant) === text ? grant : null;
  } catch (error) {
    if (error instanceof SvcError) return null;
    throw error;
  }
}

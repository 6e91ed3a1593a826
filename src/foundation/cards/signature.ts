/**
 * Card signatures: a JWS over the canonical JSON of a card without `signatures` (A2A 1.0, section 8.4). It is signed
 * with the operational key of the agent in `kid`, and contains the delegation of that key. No other root of trust is
 * accepted: with a `jku` the signer could choose one.
 */
import { toBase64 } from '../base64.ts';
import { fromBase64 } from '../bytes.ts';
import { CLOCK_SKEW_S } from '../domain/time.ts';
import { SvcError } from '../errors.ts';
import { type Aid, DID_KEY_PREFIX, parseAid } from '../identity/aid.ts';
import { type Delegation, decodeDelegation, encodeDelegation } from '../identity/delegation.ts';
import { SIGNATURE_BYTES, type Signer } from '../identity/ed25519.ts';
import { verifySignature } from '../identity/keys.ts';
import { encodeMultikey } from '../identity/multikey.ts';
import { isObject, readJson } from '../json.ts';
import { canonicalJson, withoutEmpty } from './canonical-json.ts';
import { badCard, type Card } from './card.ts';

// Detached Ed25519 signatures: JWS (RFC 7515, appendix F; EdDSA of RFC 8037) in the members that A2A cards define.

/** Maximum length of a protected header, in characters. */
const MAX_PROTECTED_CHARS = 2048;

/** A signature and its protected header, both in base64url. */
interface DetachedJws {
  readonly protected: string;
  readonly signature: string;
}

/** Members of a protected header. */
type JwsHeader = Readonly<Record<string, unknown>>;

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

/** Maximum number of signatures per card. */
const MAX_SIGNATURES = 8;
/** Header members in which a signer names its own keys or their location. */
const ROOTS = ['jku', 'jwk', 'x5u', 'x5c'];

/** A local agent that signs. */
export interface CardSigner extends Pick<Signer, 'sign'> {
  readonly aid: Aid;
  readonly delegation: Delegation;
}

/** Known facts about an agent when its card is verified. */
export interface CardCheck {
  readonly aid: Aid;
  /** Unix seconds. */
  readonly now: number;
  /** `issuedAt` of the newest known delegation of the agent. An older one belongs to a replaced key. */
  readonly newestDelegation: number;
  /** Signing time of the newest known card of the agent, in Unix seconds; 0 if none is known. */
  readonly newestCard: number;
  /** @throws SvcError `bad_delegation` */
  readonly verifyDelegation: (delegation: Delegation, now: number) => void;
}

/** The result of a verified signature. */
export interface CardProof {
  /** Unix seconds. */
  readonly signedAt: number;
  readonly delegation: Delegation;
}

interface Entry extends DetachedJws {
  readonly header: Readonly<Record<string, unknown>>;
}

/** A card without its signatures, which is the signed content. */
export function unsigned(card: Card): Card {
  const { signatures: _, ...rest } = card;
  return rest;
}

/**
 * Signs a card and replaces its signatures. If the card has empty members, a second signature covers the form without
 * them, because the A2A SDKs omit them before they verify.
 * @param now Unix seconds
 * @throws SvcError `bad_card`
 */
export function signCard(card: Card, signer: CardSigner, now: number): Card {
  const content = unsigned(card);
  const protectedHeader = { iat: now, kid: signer.aid, typ: 'JOSE' };
  const { delegation } = signer;
  const header = {
    delegation: toBase64(encodeDelegation(delegation)),
    key: `${DID_KEY_PREFIX}${encodeMultikey('ed25519', delegation.operationalKey)}`,
  };
  const payloads = new Set([canonicalJson(content), canonicalJson(withoutEmpty(content) ?? {})]);
  const signatures = [...payloads].map((payload) => ({ ...signDetached(protectedHeader, payload, signer), header }));
  return { ...content, signatures };
}

function entriesOf(card: Card): Entry[] {
  const { signatures = [] } = card;
  if (!Array.isArray(signatures) || signatures.length > MAX_SIGNATURES)
    throw badCard('bad_signature', `its signatures are not a list of at most ${MAX_SIGNATURES}`);
  return signatures.map((one: unknown) => {
    const entry = isObject(one) ? one : {};
    const { protected: head, signature, header = {} } = entry;
    if (typeof head !== 'string' || typeof signature !== 'string' || !isObject(header))
      throw badCard('bad_signature', 'one of its signatures is malformed');
    return { protected: head, signature, header };
  });
}

/** The agent in a key ID; null for other key IDs. */
function agentOf(kid: unknown): Aid | null {
  try {
    return typeof kid === 'string' ? parseAid(kid) : null;
  } catch {
    return null;
  }
}

function delegationIn({ header }: Entry, { aid, now, newestDelegation, verifyDelegation }: CardCheck): Delegation {
  const text = header['delegation'];
  const bytes = typeof text === 'string' ? fromBase64(text) : null;
  if (bytes === null) throw badCard('bad_signature', 'it has no delegation');
  let delegation: Delegation;
  try {
    delegation = decodeDelegation(bytes);
    verifyDelegation(delegation, now);
  } catch (cause) {
    if (!(cause instanceof SvcError)) throw cause;
    const isOver = cause.details?.['reason'] === 'it has expired';
    throw badCard(isOver ? 'expired' : 'bad_signature', cause.message.replace(/\.$/, ''), { cause });
  }
  if (delegation.agent !== aid) throw badCard('swapped', 'its delegation belongs to another agent');
  if (delegation.issuedAt < newestDelegation)
    throw badCard('replayed', 'it is signed with a key that the agent has replaced');
  return delegation;
}

function proofOf(entry: Entry, kid: Aid, signedAt: unknown, check: CardCheck): CardProof {
  if (kid !== check.aid) throw badCard('swapped', 'it belongs to another agent', { details: { aid: kid } });
  if (typeof signedAt !== 'number' || !Number.isSafeInteger(signedAt))
    throw badCard('bad_signature', 'its signing time is missing');
  if (signedAt > check.now + CLOCK_SKEW_S) throw badCard('bad_signature', 'its signing time is in the future');
  const delegation = delegationIn(entry, check);
  if (signedAt < check.newestCard) throw badCard('replayed', 'a newer card of this agent is known');
  return { signedAt, delegation };
}

/**
 * Checks the signatures with the key ID of an agent. Signatures with other key IDs prove nothing here and are ignored.
 * @returns the proof, or null if no signature has the key ID of an agent
 * @throws SvcError `bad_card` with `foreign_root`, `swapped`, `replayed`, `expired`, `bad_signature`
 */
export function checkSignatures(card: Card, check: CardCheck): CardProof | null {
  const payload = canonicalJson(unsigned(card));
  let proof: CardProof | null = null;
  let ours = 0;
  for (const entry of entriesOf(card)) {
    const head = readHeader(entry);
    if (head === null) throw badCard('bad_signature', 'one of its signatures is malformed');
    if (ROOTS.some((name) => name in head || name in entry.header))
      throw badCard('foreign_root', 'one of its signatures names its own root of trust (jku)');
    const kid = agentOf(head['kid']);
    if (kid === null) continue;
    ours++;
    const one = proofOf(entry, kid, head['iat'], check);
    if (verifyDetached(entry, payload, one.delegation.operationalKey)) proof ??= one;
  }
  if (ours > 0 && proof === null) throw badCard('bad_signature', 'its signature is invalid');
  return proof;
}

/**
 * Verifies that an agent signed a card.
 * @throws SvcError `bad_card` as `checkSignatures`, and with `unsigned`
 */
export function verifyCard(card: Card, check: CardCheck): CardProof {
  const proof = checkSignatures(card, check);
  if (proof === null) throw badCard('unsigned', 'no agent has signed it');
  return proof;
}

/**
 * Agent identifiers (AIDs). Canonical bytes are one version byte and a body; the text form depends
 * on the version. See docs/protocol.md, "Agent identifiers".
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bech32, bech32m, createBase58check } from '@scure/base';
import { fromHex, toHex } from '../bytes.ts';
import { AID_SCHEMES, type AidScheme, MAX_AID_CHARS } from '../domain/agents.ts';
import { SvcError } from '../errors.ts';
import { LruCache } from '../lru-cache.ts';
import { cleanPastedAid } from '../pasted.ts';
import { isUsablePublicKey } from './ed25519.ts';
import { decodeEd25519Multikey, encodeMultikey } from './multikey.ts';

/** An AID in canonical text. Only the functions here create one. */
export type Aid = string & { readonly brand: 'Aid' };

/** Version bytes of the canonical form. */
const VERSION: Readonly<Record<AidScheme, number>> = { native: 0xa0, paralism: 0xa2, ethereum: 0xa3 };
const BODY_BYTES: Readonly<Record<AidScheme, number>> = { native: 32, paralism: 20, ethereum: 20 };
const NATIVE_PREFIX = 'aid';
const PARALISM_PREFIX = 'bc';
const PARALISM_ALIAS_PREFIX = 'pr';
/** Prefix of did:key identifiers. The did:key of an Ed25519 key is another form of a native AID. */
export const DID_KEY_PREFIX = 'did:key:';
/** Rejects non-ASCII letters before any case folding: the Kelvin sign folds to "k". */
const TEXT = /^(?:did:key:)?[0-9A-Za-z]+$/;

/** An AID with a path, also as a link. */
const LINK = /^(?:svc:\/\/)?([^/]+)(\/[!-~]*)$/i;

/**
 * Maximum number of cached AIDs per cache. Every request and link names some, and a checksum costs more than routing
 * it.
 */
const MAX_REMEMBERED = 4096;
/** AIDs by their input texts. */
const read = new LruCache<string, Aid>({ maxEntries: MAX_REMEMBERED });
/** AIDs by scheme and hex of the body. */
const written = new LruCache<string, Aid>({ maxEntries: MAX_REMEMBERED });
/** Canonical bytes; callers receive a copy. */
const canonical = new LruCache<Aid, Uint8Array>({ maxEntries: MAX_REMEMBERED });

const base58check = createBase58check(sha256);

function badAid(reason: string): SvcError {
  return new SvcError('bad_aid', { details: { reason } });
}

function hasPrefix(text: string, prefix: string): text is `${string}1${string}` {
  return text.toLowerCase().startsWith(`${prefix}1`);
}

function bodyOfNative(text: `${string}1${string}`): Uint8Array {
  const { prefix, words } = bech32m.decode(text, MAX_AID_CHARS);
  if (prefix !== NATIVE_PREFIX) throw badAid('wrong prefix');
  return bech32m.fromWords(words);
}

/** A segwit version 0 address (BIP 173) with either prefix. */
function bodyOfSegwit(text: `${string}1${string}`): Uint8Array {
  const { prefix, words } = bech32.decode(text, MAX_AID_CHARS);
  // The separator is the last "1", so a text may start with "bc1" and still have a longer prefix.
  if (prefix !== PARALISM_PREFIX && prefix !== PARALISM_ALIAS_PREFIX) throw badAid('wrong prefix');
  if (words[0] !== 0) throw badAid('only segwit version 0 is supported');
  return bech32.fromWords(words.slice(1));
}

/** EIP-55: the case of each letter is a bit of the Keccak-256 of the lower-case text. */
function eip55(hex: string): string {
  const hash = toHex(keccak_256(new TextEncoder().encode(hex)));
  return `0x${hex.replace(/[a-f]/g, (letter, i: number) => (hash.charAt(i) >= '8' ? letter.toUpperCase() : letter))}`;
}

/** Without a checksum if all letters have the same case. */
function bodyOfEthereum(text: string): Uint8Array {
  const digits = text.slice(2);
  const body = fromHex(digits);
  if (body?.length !== BODY_BYTES.ethereum) throw badAid('an Ethereum address has 40 hex characters');
  const hex = toHex(body);
  if (digits !== hex && digits !== hex.toUpperCase() && `0x${digits}` !== eip55(hex))
    throw badAid('wrong EIP-55 checksum');
  return body;
}

function bodyOfDidKey(text: string): Uint8Array {
  const publicKey = decodeEd25519Multikey(text.slice(DID_KEY_PREFIX.length));
  if (publicKey === null) throw badAid('only a did:key of an Ed25519 key is an AID');
  return publicKey;
}

function decodeText(text: string): [AidScheme, Uint8Array] {
  if (hasPrefix(text, NATIVE_PREFIX)) return ['native', bodyOfNative(text)];
  if (hasPrefix(text, PARALISM_PREFIX) || hasPrefix(text, PARALISM_ALIAS_PREFIX))
    return ['paralism', bodyOfSegwit(text)];
  if (text.startsWith('0x') || /^0X[0-9A-F]+$/.test(text)) return ['ethereum', bodyOfEthereum(text)];
  if (text.startsWith(DID_KEY_PREFIX)) return ['native', bodyOfDidKey(text)];
  // A P2PKH address: the "1" is its version byte, 0.
  if (text.startsWith('1')) return ['paralism', base58check.decode(text).slice(1)];
  throw badAid('unknown format');
}

function checkBody(scheme: AidScheme, body: Uint8Array): void {
  if (body.length !== BODY_BYTES[scheme]) throw badAid('wrong length');
  if (scheme === 'native' && !isUsablePublicKey(body)) throw badAid('not a usable Ed25519 public key');
}

function encodeText(scheme: AidScheme, body: Uint8Array): Aid {
  switch (scheme) {
    case 'native':
      return bech32m.encode(NATIVE_PREFIX, bech32m.toWords(body), MAX_AID_CHARS) as Aid;
    case 'paralism':
      return bech32.encode(PARALISM_PREFIX, [0, ...bech32.toWords(body)], MAX_AID_CHARS) as Aid;
    case 'ethereum':
      return eip55(toHex(body)) as Aid;
  }
}

/**
 * Parses an AID in any form. Quotes, punctuation and line breaks around a pasted one are ignored: see pasted.ts.
 * @throws SvcError `bad_aid`
 */
export function parseAid(text: string): Aid {
  const known = read.get(text);
  if (known !== undefined) return known;
  const aid = readAid(text);
  // Inputs with much around the AID are not cached.
  if (text.length <= MAX_AID_CHARS) read.set(text, aid);
  return aid;
}

/** The error for a link that names more than an agent. Null for other texts. */
function withPath(text: string): SvcError | null {
  const [, agent = '', path = ''] = LINK.exec(text) ?? [];
  if (!TEXT.test(agent) || path === '') return null;
  return new SvcError('bad_aid', {
    message: `An agent is expected, but this also names the path "${path}". Leave the path out: ${agent}`,
    details: { reason: 'a path follows' },
  });
}

function readAid(text: string): Aid {
  const plain = text.trim();
  const trimmed = TEXT.test(plain) ? plain : cleanPastedAid(text);
  if (trimmed.length > MAX_AID_CHARS) throw badAid('too long');
  if (!TEXT.test(trimmed)) throw withPath(trimmed) ?? badAid('wrong character');
  try {
    const [scheme, body] = decodeText(trimmed);
    checkBody(scheme, body);
    return encodeText(scheme, body);
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw new SvcError('bad_aid', { details: { reason: 'wrong checksum or character' }, cause: error });
  }
}

/**
 * The AID of canonical bytes.
 * @throws SvcError `bad_aid`
 */
export function aidFromBytes(bytes: Uint8Array): Aid {
  const scheme = AID_SCHEMES.find((name) => VERSION[name] === bytes[0]);
  if (scheme === undefined) throw badAid('unknown version');
  return aidOf(scheme, bytes.subarray(1));
}

/**
 * The AID of a scheme's body: a native public key, or a wallet's 20-byte address.
 * @throws SvcError `bad_aid`
 */
export function aidOf(scheme: AidScheme, body: Uint8Array): Aid {
  const name = `${scheme} ${toHex(body)}`;
  const known = written.get(name);
  if (known !== undefined) return known;
  checkBody(scheme, body);
  const aid = encodeText(scheme, body);
  written.set(name, aid);
  return aid;
}

/** The canonical bytes `version || body` of an AID. */
export function aidToBytes(aid: Aid): Uint8Array {
  const known = canonical.get(aid);
  if (known !== undefined) return known.slice();
  const [scheme, body] = decodeText(aid);
  const bytes = Uint8Array.of(VERSION[scheme], ...body);
  canonical.set(aid, bytes);
  return bytes.slice();
}

/** The scheme of an AID. */
export function schemeOf(aid: Aid): AidScheme {
  if (aid.startsWith('0x')) return 'ethereum';
  return aid.startsWith(`${NATIVE_PREFIX}1`) ? 'native' : 'paralism';
}

/**
 * The native AID of a 32-byte Ed25519 public key.
 * @throws SvcError `bad_aid`
 */
export function nativeAid(publicKey: Uint8Array): Aid {
  return aidOf('native', publicKey);
}

/** The Ed25519 public key of a native AID; null for other schemes. */
export function nativePublicKey(aid: Aid): Uint8Array | null {
  return schemeOf(aid) === 'native' ? aidToBytes(aid).subarray(1) : null;
}

/** `did:key:z6Mk…`; null for wallet agents, whose AIDs are hashes of keys. */
export function didOf(aid: Aid): string | null {
  const publicKey = nativePublicKey(aid);
  return publicKey === null ? null : `${DID_KEY_PREFIX}${encodeMultikey('ed25519', publicKey)}`;
}

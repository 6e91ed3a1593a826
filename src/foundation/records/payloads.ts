/**
 * The payloads of endpoint and service records, in deterministic CBOR. Encoders reject invalid values; decoders return
 * null for them. Decoders ignore unknown members, so that later versions can add some. The signature covers all bytes.
 */

import { createHash } from 'node:crypto';
import { parseAddress } from '../address.ts';
import { equalBytes } from '../bytes.ts';
import { type CborValue, encodeCbor, isBytes, isUint } from '../cbor.ts';
import { MAX_NAT_TYPE } from '../domain/directory.ts';
import { isServiceName } from '../domain/services.ts';
import { MAX_UNIX_S } from '../domain/time.ts';
import { PUBLIC_KEY_BYTES } from '../identity/ed25519.ts';
import {
  checkCount,
  checked,
  checkLabels,
  checkMeta,
  checkText,
  decodeMap,
  emptyToUndefined,
  invalidField,
  readText,
  readTexts,
} from './fields.ts';
import {
  isCustomType,
  MAX_BRIEF_BYTES,
  MAX_CARD_HASH_BYTES,
  MAX_CUSTOM_PAYLOAD_BYTES,
  MAX_DATAGRAM_RECORD_BYTES,
  MAX_NAME_BYTES,
  MAX_SKILL_BYTES,
  MAX_SKILLS,
  MAX_WAKES_WITHIN_S,
  RECORD,
} from './types.ts';

/** A helper: it introduces nodes that strangers cannot reach, and relays their encrypted packets. */
export interface HelperNode {
  readonly nodeKey: Uint8Array;
  /** `host:port` of its QUIC endpoint. */
  readonly address: string;
}

/** The mailbox in which a node without a helper receives requests to meet at a TURN server. */
export interface TurnRendezvous {
  /** An X25519 public key. Requests are sealed to it and stored under its `turnRendezvousKey`. */
  readonly publicKey: Uint8Array;
  /** The IPv4 address that peers observe for the node. */
  readonly host: string;
}

/** Payload of an endpoint record: the current endpoint of an agent. */
export interface EndpointsPayload {
  /** `quic://host:port`, best first; at most 8. */
  readonly endpoints: readonly string[];
  /** The endpoints that are port mappings of the node's router; omitted if there are none. */
  readonly mapped?: readonly string[];
  /** 0 unknown, 1 public or full cone, 2 restricted, 3 port-restricted, 4 symmetric. */
  readonly natType: number;
  /** The Ed25519 key of the node that hosts the agent. */
  readonly nodeKey: Uint8Array;
  /** Best first; at most 4. */
  readonly helpers: readonly HelperNode[];
  /** True if the node has its own TURN server; otherwise omitted. */
  readonly hasTurn?: true;
  /** Omitted if the node has helpers or does not need them. */
  readonly meeting?: TurnRendezvous;
  /** The custom record types that this agent publishes. */
  readonly customTypes: readonly number[];
  /** The address of the bound service as the owner wrote it; omitted if there is none. */
  readonly service?: string;
}

/** Payload of a service record: the offer of an agent under one service name. */
export interface ServicePayload {
  readonly service: string;
  readonly name: string;
  readonly protocols: readonly string[];
  readonly tags: readonly string[];
  readonly brief: string;
  /** JSON text of the free-form `meta` object; empty if there is none. */
  readonly meta: string;
  readonly wakesWithinS?: WakesWithin;
}

/** The agent starts when it is called, usually within this time in seconds. Omitted if it always runs. */
type WakesWithin = number | undefined;

function checkWakes(seconds: WakesWithin): void {
  if (seconds !== undefined && (seconds === 0 || !isUint(seconds, MAX_WAKES_WITHIN_S)))
    throw invalidField('wakes_within_s', `is not 1 to ${MAX_WAKES_WITHIN_S}`);
}

/** Null if it is invalid. */
function readWakes(value: unknown): { readonly wakesWithinS?: number } | null {
  if (value === undefined) return {};
  return isUint(value) ? { wakesWithinS: value } : null;
}

/** Maximum number of endpoints per agent. */
export const MAX_ENDPOINTS = 8;
/** Maximum number of helpers per agent. */
export const MAX_HELPERS = 4;
/** Maximum length of a service address in an endpoint record, in bytes. */
export const MAX_BOUND_SERVICE_BYTES = 128;
const CUSTOM_TYPES: number = RECORD.customLast - RECORD.customFirst + 1;
/** Prefix of an endpoint, before `host:port`. */
export const ENDPOINT_SCHEME = 'quic://';

function isDialable(text: string): boolean {
  const address = parseAddress(text);
  return address !== null && address.host !== '' && address.port > 0;
}

/** Used in browsers too, so without Node's functions. */
function isIPv4(text: string): boolean {
  return /^[\d.]+$/.test(text) && parseAddress(`${text}:1`)?.host === text;
}

function checkEndpoints(p: EndpointsPayload): void {
  checkCount('endpoints', p.endpoints, MAX_ENDPOINTS);
  checkCount('helpers', p.helpers, MAX_HELPERS);
  checkCount('custom types', p.customTypes, CUSTOM_TYPES);
  if (!p.endpoints.every((e) => e.startsWith(ENDPOINT_SCHEME) && isDialable(e.slice(ENDPOINT_SCHEME.length))))
    throw invalidField('endpoints', 'contains an entry that is not quic://host:port');
  if (!isUint(p.natType, MAX_NAT_TYPE)) throw invalidField('nat_type', 'is not 0 to 4');
  if (p.nodeKey.length !== PUBLIC_KEY_BYTES) throw invalidField('node key', 'is not an Ed25519 key');
  if (!p.helpers.every((h) => h.nodeKey.length === PUBLIC_KEY_BYTES && isDialable(h.address)))
    throw invalidField('helpers', 'contains an entry without a valid key and host:port');
  if (p.meeting !== undefined && (!isIPv4(p.meeting.host) || p.meeting.publicKey.length !== X25519_PUBLIC_KEY_BYTES))
    throw invalidField('turn rendezvous', 'has no valid key and IPv4 address');
  if (!p.customTypes.every(isCustomType)) throw invalidField('custom types', 'contains an invalid type');
  checkText('service', p.service ?? '', MAX_BOUND_SERVICE_BYTES);
}

/** @throws SvcError `too_large`, `invalid_request` */
export function encodeEndpointsPayload(p: EndpointsPayload): Uint8Array {
  checkEndpoints(p);
  const helpers: CborValue[] = p.helpers.map((h) => [h.nodeKey, h.address]);
  const mapped = p.endpoints.reduce((bits, e, i) => (p.mapped?.includes(e) === true ? bits + 2 ** i : bits), 0);
  return encodeCbor({
    e: emptyToUndefined(p.endpoints),
    m: mapped === 0 ? undefined : mapped,
    n: p.natType,
    k: p.nodeKey,
    h: emptyToUndefined(helpers),
    c: emptyToUndefined(p.customTypes),
    r: p.meeting === undefined ? undefined : [p.meeting.publicKey, p.meeting.host],
    s: emptyToUndefined(p.service ?? ''),
    t: p.hasTurn,
  });
}

function readMeeting(value: unknown): TurnRendezvous | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const [publicKey, host]: unknown[] = value;
  return isBytes(publicKey) && typeof host === 'string' ? { publicKey, host } : null;
}

function readHelper(value: unknown): HelperNode | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const [nodeKey, address]: unknown[] = value;
  return isBytes(nodeKey) && typeof address === 'string' ? { nodeKey, address } : null;
}

function isNumbers(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'number');
}

/** Null if the payload is invalid. */
export function decodeEndpointsPayload(bytes: Uint8Array): EndpointsPayload | null {
  const map = decodeMap(bytes, MAX_DATAGRAM_RECORD_BYTES);
  const endpoints = readTexts(map?.['e']);
  const helpers = map?.['h'] ?? [];
  const customTypes = map?.['c'] ?? [];
  const { n: natType, k: nodeKey } = map ?? {};
  if (endpoints === null || !Array.isArray(helpers) || !isNumbers(customTypes)) return null;
  if (!isUint(natType) || !isBytes(nodeKey)) return null;
  const read = helpers.map(readHelper);
  if (!read.every((helper) => helper !== null)) return null;
  const service = readText(map?.['s']);
  if (service === null) return null;
  const bound = service === '' ? {} : { service };
  const bits = map?.['m'] ?? 0;
  if (!isUint(bits, 2 ** MAX_ENDPOINTS - 1)) return null;
  const mapped = endpoints.filter((_, i) => Math.floor(bits / 2 ** i) % 2 === 1);
  const behind = mapped.length === 0 ? {} : { mapped };
  const { r: place, t: flag } = map ?? {};
  const meeting = place === undefined ? undefined : readMeeting(place);
  if (meeting === null || (flag !== undefined && flag !== true)) return null;
  const turn = {
    ...(meeting === undefined ? {} : { meeting }),
    ...(flag === undefined ? {} : ({ hasTurn: true } as const)),
  };
  const payload = { endpoints, natType, nodeKey, helpers: read, customTypes, ...bound, ...behind, ...turn };
  return checked(payload, checkEndpoints);
}

/**
 * Removes the last endpoints and helpers until the payload fits. Records that the daemon creates automatically must
 * never be too large to publish.
 * @param maxBytes see `payloadBudget`
 */
export function fitEndpointsPayload(p: EndpointsPayload, maxBytes: number): EndpointsPayload {
  let fitting: EndpointsPayload = {
    ...p,
    endpoints: p.endpoints.slice(0, MAX_ENDPOINTS),
    helpers: p.helpers.slice(0, MAX_HELPERS),
  };
  while (encodeEndpointsPayload(fitting).length > maxBytes) {
    const { endpoints, helpers } = fitting;
    if (endpoints.length === 0 && helpers.length === 0) break;
    fitting =
      helpers.length >= endpoints.length
        ? { ...fitting, helpers: helpers.slice(0, -1) }
        : { ...fitting, endpoints: endpoints.slice(0, -1) };
  }
  return fitting;
}

function checkService(p: ServicePayload): void {
  if (!isServiceName(p.service)) throw invalidField('service', 'is not a service name');
  checkText('name', p.name, MAX_NAME_BYTES);
  checkText('brief', p.brief, MAX_BRIEF_BYTES);
  checkLabels('protocols', p.protocols);
  checkLabels('tags', p.tags);
  checkMeta(p.meta);
  checkWakes(p.wakesWithinS);
}

/** @throws SvcError `too_large`, `invalid_request` */
export function encodeServicePayload(p: ServicePayload): Uint8Array {
  checkService(p);
  return encodeCbor({
    s: p.service,
    n: emptyToUndefined(p.name),
    p: emptyToUndefined(p.protocols),
    t: emptyToUndefined(p.tags),
    b: emptyToUndefined(p.brief),
    m: emptyToUndefined(p.meta),
    w: p.wakesWithinS,
  });
}

/** Null if the payload is invalid. */
export function decodeServicePayload(bytes: Uint8Array): ServicePayload | null {
  const map = decodeMap(bytes, MAX_DATAGRAM_RECORD_BYTES);
  const service = map?.['s'];
  const [name, brief, meta] = [readText(map?.['n']), readText(map?.['b']), readText(map?.['m'])];
  const [protocols, tags] = [readTexts(map?.['p']), readTexts(map?.['t'])];
  if (typeof service !== 'string' || name === null || brief === null || meta === null) return null;
  const wakes = readWakes(map?.['w']);
  if (protocols === null || tags === null || wakes === null) return null;
  return checked({ service, name, protocols, tags, brief, meta, ...wakes }, checkService);
}

// The profile: custom record 0x02, the public description of an agent. All members are optional.

export interface ProfilePayload {
  readonly name: string;
  readonly brief: string;
  readonly protocols: readonly string[];
  /** At most 3. */
  readonly skills: readonly string[];
  readonly modalities: readonly string[];
  /** Hash of a more detailed card elsewhere, in the form of its format. */
  readonly cardHash: string;
  /** JSON text of the free-form `meta` object; empty if there is none. */
  readonly meta: string;
  readonly wakesWithinS?: WakesWithin;
}

/** An empty profile. */
export const EMPTY_PROFILE: ProfilePayload = {
  name: '',
  brief: '',
  protocols: [],
  skills: [],
  modalities: [],
  cardHash: '',
  meta: '',
};

function checkProfile(p: ProfilePayload): void {
  checkText('name', p.name, MAX_NAME_BYTES);
  checkText('brief', p.brief, MAX_BRIEF_BYTES);
  checkLabels('protocols', p.protocols);
  checkCount('skills', p.skills, MAX_SKILLS);
  for (const skill of p.skills) checkText('skills', skill, MAX_SKILL_BYTES);
  checkLabels('modalities', p.modalities);
  checkText('card_hash', p.cardHash, MAX_CARD_HASH_BYTES);
  checkMeta(p.meta);
  checkWakes(p.wakesWithinS);
}

/**
 * Encodes a profile in deterministic CBOR. The 4 KiB limit is checked when the record is signed.
 * @throws SvcError `too_large`, `invalid_request`
 */
export function encodeProfilePayload(p: ProfilePayload): Uint8Array {
  checkProfile(p);
  return encodeCbor({
    n: emptyToUndefined(p.name),
    b: emptyToUndefined(p.brief),
    p: emptyToUndefined(p.protocols),
    s: emptyToUndefined(p.skills),
    o: emptyToUndefined(p.modalities),
    h: emptyToUndefined(p.cardHash),
    m: emptyToUndefined(p.meta),
    w: p.wakesWithinS,
  });
}

/** Null if the payload is not a profile: applications can put anything into custom records. */
export function decodeProfilePayload(bytes: Uint8Array): ProfilePayload | null {
  const map = decodeMap(bytes, MAX_CUSTOM_PAYLOAD_BYTES);
  if (map === null) return null;
  const [name, brief] = [readText(map['n']), readText(map['b'])];
  const [cardHash, meta] = [readText(map['h']), readText(map['m'])];
  const [protocols, skills, modalities] = [readTexts(map['p']), readTexts(map['s']), readTexts(map['o'])];
  if (name === null || brief === null || cardHash === null || meta === null) return null;
  const wakes = readWakes(map['w']);
  if (protocols === null || skills === null || modalities === null || wakes === null) return null;
  return checked({ name, brief, protocols, skills, modalities, cardHash, meta, ...wakes }, checkProfile);
}

// Encryption keys for notes (record 0x11): the X25519 keys that an agent can open notes with.

interface EncryptionKey {
  /** 8 bytes that identify the key in a note. They are derived from the key and not transmitted. */
  readonly keyId: Uint8Array;
  /** 32-byte X25519 public key. */
  readonly publicKey: Uint8Array;
  /** Unix seconds. */
  readonly createdAt: number;
}

export const KEY_ID_BYTES = 8;
export const X25519_PUBLIC_KEY_BYTES = 32;
/** Maximum number of keys per agent: the newest, and older ones for notes in transit. */
const MAX_ENCRYPTION_KEYS = 4;
const KEY_ID_DOMAIN = 'svcd/key-id/v1\0';

/** The id of an X25519 public key: the first 8 bytes of its SHA-256 under a prefix. */
export function encryptionKeyId(publicKey: Uint8Array): Uint8Array {
  const digest = createHash('sha256').update(KEY_ID_DOMAIN).update(publicKey).digest();
  return Uint8Array.from(digest.subarray(0, KEY_ID_BYTES));
}

/** Keys must be newest first and unique. */
function checkKeys(keys: readonly EncryptionKey[]): void {
  if (keys.length === 0) throw invalidField('keys', 'is empty');
  checkCount('keys', keys, MAX_ENCRYPTION_KEYS);
  for (const [index, key] of keys.entries()) {
    if (key.publicKey.length !== X25519_PUBLIC_KEY_BYTES) throw invalidField('keys', 'contains an invalid X25519 key');
    if (!isUint(key.createdAt, MAX_UNIX_S)) throw invalidField('keys', 'contains an invalid time');
    const earlier = keys.slice(0, index);
    if (earlier.some((other) => other.createdAt < key.createdAt)) throw invalidField('keys', 'is not newest first');
    if (earlier.some((other) => equalBytes(other.keyId, key.keyId)))
      throw invalidField('keys', 'contains a duplicate key');
  }
}

/** @throws SvcError `too_large`, `invalid_request` */
export function encodeEncryptionKeysPayload(keys: readonly Omit<EncryptionKey, 'keyId'>[]): Uint8Array {
  checkKeys(keys.map(withId));
  return encodeCbor({ k: keys.map((key) => [key.publicKey, key.createdAt]) });
}

function withId(key: Omit<EncryptionKey, 'keyId'>): EncryptionKey {
  return { keyId: encryptionKeyId(key.publicKey), publicKey: key.publicKey, createdAt: key.createdAt };
}

function readKey(value: unknown): EncryptionKey | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const [publicKey, createdAt]: unknown[] = value;
  return isBytes(publicKey, X25519_PUBLIC_KEY_BYTES) && isUint(createdAt) ? withId({ publicKey, createdAt }) : null;
}

/** Null if the payload is invalid. */
export function decodeEncryptionKeysPayload(bytes: Uint8Array): readonly EncryptionKey[] | null {
  const list = decodeMap(bytes, MAX_DATAGRAM_RECORD_BYTES)?.['k'];
  if (!Array.isArray(list) || list.length > MAX_ENCRYPTION_KEYS) return null;
  const keys = list.map(readKey);
  return keys.every((key) => key !== null) ? checked(keys, checkKeys) : null;
}

/**
 * The payloads of endpoint and service records, in deterministic CBOR. Encoders reject invalid values; decoders return
 * null for them. Decoders ignore unknown members, so that later versions can add some. The signature covers all bytes.
 */

import { createHash } from 'node:crypto';
import { parseAddress } from '../address.ts';
import { equalBytes } from '../bytes.ts';
import { isUint } from '../cbor.ts';
import {
  bool,
  bytes,
  bytesUpTo,
  CborMap,
  converted,
  fromBytes,
  list,
  optional,
  orElse,
  text,
  toBytes,
  tuple,
  uint,
  type ValueOf,
} from '../cbor-map.ts';
import { MAX_NAT_TYPE } from '../domain/directory.ts';
import { isServiceName } from '../domain/services.ts';
import { MAX_UNIX_S } from '../domain/time.ts';
import { PUBLIC_KEY_BYTES } from '../identity/ed25519.ts';
import { checkCount, checked, checkLabels, checkMeta, checkText, invalidField } from './fields.ts';
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

/** Maximum number of endpoints per agent. */
export const MAX_ENDPOINTS = 8;
/** Maximum number of helpers per agent. */
export const MAX_HELPERS = 4;
/** Maximum length of a service address in an endpoint record, in bytes. */
export const MAX_BOUND_SERVICE_BYTES = 128;
const CUSTOM_TYPES: number = RECORD.customLast - RECORD.customFirst + 1;
/** Prefix of an endpoint, before `host:port`. */
export const ENDPOINT_SCHEME = 'quic://';

// The structure of payloads. The checks below have their limits.
const TEXT = text(() => true);
const ANY_BYTES = bytesUpTo(MAX_CUSTOM_PAYLOAD_BYTES);
const NAME = orElse(TEXT, '');
const TEXTS = orElse(list(TEXT, MAX_CUSTOM_PAYLOAD_BYTES), []);
const OPEN = { isOpen: true } as const;

/** A helper introduces nodes that strangers cannot reach, and relays their encrypted packets. */
const HELPER = tuple({
  nodeKey: ANY_BYTES,
  /** `host:port` of its QUIC endpoint. */
  address: TEXT,
});

/** The mailbox in which a node without a helper receives requests to meet at a TURN server. */
const TURN_RENDEZVOUS = tuple({
  /** An X25519 public key. Requests are sealed to it and stored under its `turnRendezvousKey`. */
  publicKey: ANY_BYTES,
  /** The IPv4 address that peers observe for the node. */
  host: TEXT,
});

const ENDPOINTS = new CborMap(
  {
    /** `quic://host:port`, best first; at most 8. */
    endpoints: ['e', TEXTS],
    /** A bit for each endpoint that is a port mapping of the node's router. */
    mappedBits: ['m', orElse(uint(2 ** MAX_ENDPOINTS - 1), 0)],
    /** 0 unknown, 1 public or full cone, 2 restricted, 3 port-restricted, 4 symmetric. */
    natType: ['n', uint()],
    /** The Ed25519 key of the node that hosts the agent. */
    nodeKey: ['k', ANY_BYTES],
    /** Best first; at most 4. */
    helpers: ['h', orElse(list(HELPER, MAX_DATAGRAM_RECORD_BYTES), [])],
    /** True if the node has its own TURN server; otherwise omitted. */
    hasTurn: ['t', optional(converted(bool, (value) => (value ? (true as const) : null), Boolean))],
    /** Omitted if the node has helpers or does not need them. */
    meeting: ['r', optional(TURN_RENDEZVOUS)],
    /** The custom record types that this agent publishes. */
    customTypes: ['c', orElse(list(uint(), MAX_DATAGRAM_RECORD_BYTES), [])],
    boundService: ['s', NAME],
  },
  OPEN,
);

/** The agent starts when it is called, usually within this time in seconds. Omitted if it always runs. */
const WAKES = optional(uint());

const SERVICE = new CborMap(
  {
    service: ['s', TEXT],
    name: ['n', NAME],
    protocols: ['p', TEXTS],
    tags: ['t', TEXTS],
    brief: ['b', NAME],
    /** JSON text of the free-form `meta` object; empty if there is none. */
    meta: ['m', NAME],
    wakesWithinS: ['w', WAKES],
  },
  OPEN,
);

export type HelperNode = ValueOf<typeof HELPER>;
export type TurnRendezvous = ValueOf<typeof TURN_RENDEZVOUS>;
/** Payload of an endpoint record: the current endpoint of an agent. */
export interface EndpointsPayload extends Omit<ValueOf<typeof ENDPOINTS>, 'mappedBits' | 'boundService'> {
  /** The endpoints that are port mappings of the node's router; omitted if there are none. */
  readonly mapped?: readonly string[];
  /** The address of the bound service as the owner wrote it; omitted if there is none. */
  readonly service?: string;
}
/** Payload of a service record: the offer of an agent under one service name. */
export type ServicePayload = ValueOf<typeof SERVICE>;

function checkWakes(seconds: number | undefined): void {
  if (seconds !== undefined && (seconds === 0 || !isUint(seconds, MAX_WAKES_WITHIN_S)))
    throw invalidField('wakes_within_s', `is not 1 to ${MAX_WAKES_WITHIN_S}`);
}

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
  const mappedBits = p.endpoints.reduce((bits, e, i) => (p.mapped?.includes(e) === true ? bits + 2 ** i : bits), 0);
  return toBytes(ENDPOINTS, { ...p, mappedBits, boundService: p.service ?? '' });
}

/** Null if the payload is invalid. */
export function decodeEndpointsPayload(payload: Uint8Array): EndpointsPayload | null {
  const decoded = fromBytes(ENDPOINTS, payload, MAX_DATAGRAM_RECORD_BYTES);
  if (decoded === null) return null;
  const { mappedBits, boundService: service, ...rest } = decoded;
  const mapped = rest.endpoints.filter((_, i) => Math.floor(mappedBits / 2 ** i) % 2 === 1);
  const behind = mapped.length === 0 ? {} : { mapped };
  return checked({ ...rest, ...behind, ...(service === '' ? {} : { service }) }, checkEndpoints);
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
  return toBytes(SERVICE, p);
}

/** Null if the payload is invalid. */
export function decodeServicePayload(payload: Uint8Array): ServicePayload | null {
  const decoded = fromBytes(SERVICE, payload, MAX_DATAGRAM_RECORD_BYTES);
  return decoded === null ? null : checked(decoded, checkService);
}

// The profile: custom record 0x02, the public description of an agent. All members are optional.

const PROFILE = new CborMap(
  {
    name: ['n', NAME],
    brief: ['b', NAME],
    protocols: ['p', TEXTS],
    /** At most 3. */
    skills: ['s', TEXTS],
    modalities: ['o', TEXTS],
    /** Hash of a more detailed card elsewhere, in the form of its format. */
    cardHash: ['h', NAME],
    /** JSON text of the free-form `meta` object; empty if there is none. */
    meta: ['m', NAME],
    wakesWithinS: ['w', WAKES],
  },
  OPEN,
);

export type ProfilePayload = ValueOf<typeof PROFILE>;

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
  return toBytes(PROFILE, p);
}

/** Null if the payload is not a profile: applications can put anything into custom records. */
export function decodeProfilePayload(payload: Uint8Array): ProfilePayload | null {
  const decoded = fromBytes(PROFILE, payload, MAX_CUSTOM_PAYLOAD_BYTES);
  return decoded === null ? null : checked(decoded, checkProfile);
}

// Encryption keys for notes (record 0x11): the X25519 keys that an agent can open notes with.

export const KEY_ID_BYTES = 8;
export const X25519_PUBLIC_KEY_BYTES = 32;
/** Maximum number of keys per agent: the newest, and older ones for notes in transit. */
const MAX_ENCRYPTION_KEYS = 4;
const PUBLIC_KEYS = new CborMap(
  {
    keys: [
      'k',
      list(
        tuple({
          /** 32-byte X25519 public key. */
          publicKey: bytes(X25519_PUBLIC_KEY_BYTES),
          /** Unix seconds. */
          createdAt: uint(),
        }),
        MAX_ENCRYPTION_KEYS,
      ),
    ],
  },
  OPEN,
);
type PublicKey = ValueOf<typeof PUBLIC_KEYS>['keys'][number];
interface EncryptionKey extends PublicKey {
  /** 8 bytes that identify the key in a note. They are derived from the key and not transmitted. */
  readonly keyId: Uint8Array;
}
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
export function encodeEncryptionKeysPayload(keys: readonly PublicKey[]): Uint8Array {
  checkKeys(keys.map(withId));
  return toBytes(PUBLIC_KEYS, { keys });
}

function withId({ publicKey, createdAt }: PublicKey): EncryptionKey {
  return { keyId: encryptionKeyId(publicKey), publicKey, createdAt };
}

/** Null if the payload is invalid. */
export function decodeEncryptionKeysPayload(payload: Uint8Array): readonly EncryptionKey[] | null {
  const decoded = fromBytes(PUBLIC_KEYS, payload, MAX_DATAGRAM_RECORD_BYTES);
  return decoded === null ? null : checked(decoded.keys.map(withId), checkKeys);
}

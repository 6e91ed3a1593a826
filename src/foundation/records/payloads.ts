/**
 * The payloads of endpoint and service records, in deterministic CBOR. Encoders reject invalid values; decoders return
 * null for them. Decoders ignore unknown members, so that later versions can add some. The signature covers all bytes.
 */
import { parseAddress } from '../address.ts';
import { type CborValue, encodeCbor, isBytes, isUint } from '../cbor.ts';
import { MAX_NAT_TYPE } from '../domain/directory.ts';
import { isServiceName } from '../domain/service-name.ts';
import { PUBLIC_KEY_BYTES } from '../identity/ed25519.ts';
import { X25519_PUBLIC_KEY_BYTES } from './encryption-keys.ts';
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
import { isCustomType, MAX_BRIEF_BYTES, MAX_DATAGRAM_RECORD_BYTES, MAX_NAME_BYTES, RECORD } from './types.ts';

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
  });
}

/** Null if the payload is invalid. */
export function decodeServicePayload(bytes: Uint8Array): ServicePayload | null {
  const map = decodeMap(bytes, MAX_DATAGRAM_RECORD_BYTES);
  const service = map?.['s'];
  const [name, brief, meta] = [readText(map?.['n']), readText(map?.['b']), readText(map?.['m'])];
  const [protocols, tags] = [readTexts(map?.['p']), readTexts(map?.['t'])];
  if (typeof service !== 'string' || name === null || brief === null || meta === null) return null;
  if (protocols === null || tags === null) return null;
  return checked({ service, name, protocols, tags, brief, meta }, checkService);
}

/**
 * Messages between nodes in datagrams and over QUIC, in deterministic CBOR. Input is untrusted: decoders return null
 * for everything that does not match the format and its limits exactly.
 */
import type { Address } from '../../foundation/address.ts';
import { asMap, decodeCbor, encodeCbor, isBytes, isUint } from '../../foundation/cbor.ts';
import { MAX_UNIX_S } from '../../foundation/domain/time.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { KEY_BYTES } from '../../foundation/records/keys.ts';
import { MAX_RECORD_BYTES } from '../../foundation/records/record.ts';
import {
  isRecordType,
  MAX_DATAGRAM_RECORD_BYTES,
  RECORD_DIGEST_BYTES,
  REMOVAL_TOKEN_BYTES,
  type RecordType,
} from '../../foundation/records/types.ts';
import { NETWORK_TAG_BYTES } from '../transport/udp-socket.ts';
import { PACKED_ADDRESS_BYTES, packAddresses, unpackAddresses } from './node-address.ts';
import type { NoteRemoval } from './types.ts';

/** Numbers of the commands. */
export const COMMAND = { find: 1, store: 2, probe: 3, remove: 4 } as const;

/** Largest datagram that we read, in bytes. */
export const MAX_DATAGRAM_BYTES = 1232;
/** Largest datagram that we send, in bytes. It fits paths for IP packets of 1,200 bytes. */
export const MAX_SENT_DATAGRAM_BYTES = 1172;
/** Size of the datagrams of a QUIC handshake, in bytes … */
const QUIC_DATAGRAM_BYTES = 1200;
/** … and the bytes to subtract for the length of its value: 54 around it, and 2 for a longer CBOR length. */
const LONG_REQUEST_OVERHEAD_BYTES = 56;
/** Bytes around the value of a datagram: network tag, header, routing id, token, target, length. */
export const DATAGRAM_OVERHEAD_BYTES = 120;
/** Bytes around the value in the smallest request. */
export const REQUEST_OVERHEAD_BYTES = 50;
/** An answer to an unverified address is at most this many times as long as the request. */
export const MAX_REFLECTION_FACTOR = 3;
/** Length of the value of a FIND for records, in bytes, so that the largest answer stays within the factor … */
const PADDED_FIND_BYTES = Math.ceil(MAX_SENT_DATAGRAM_BYTES / MAX_REFLECTION_FACTOR) - REQUEST_OVERHEAD_BYTES;
/** … and of a FIND for nodes only. */
const PADDED_SURVEY_BYTES = 64;
/** Maximum number of nodes in an answer. */
export const MAX_NODES_PER_REPLY = 20;
/** Maximum number of records that an answer describes without containing them. */
export const MAX_SUMMARIES = 16;
/** Maximum number of types in a request. */
const MAX_TYPES = 16;
/** Maximum number of parts that the records under a key are divided into. Part numbers have 32 bits. */
export const MAX_PARTS: number = 2 ** 30;

/** Maximum number of notes that one request removes. */
export const MAX_REMOVALS = 32;

/** One of `of` parts of the records under a key, by the hash of their publishers. */
export interface Part {
  readonly index: number;
  readonly of: number;
}

export interface FindRequest {
  /** Empty for all types. */
  readonly types: readonly RecordType[];
  /** Whether records are wanted, or only closer nodes. */
  readonly wantsRecords: boolean;
  readonly part?: Part;
}

/** Requests closer nodes only. */
export const SURVEY: FindRequest = { types: [], wantsRecords: false };

/** A record that the node has and did not send because it did not fit. */
export interface Summary {
  readonly type: RecordType;
  readonly issuedAt: number;
  readonly seq: number;
  readonly timestamp: number;
  readonly digest: Uint8Array;
}

export interface FindReply {
  /** The node's key and QUIC port; 0 without QUIC. */
  readonly nodeKey: Uint8Array;
  readonly quicPort: number;
  /** The nodes closest to the key that it knows, closest first. */
  readonly nodes: readonly Address[];
  /** How many records of these types (and this part) it has; 0 if none are wanted. */
  readonly count: number;
  /** The XOR of all their digests. Nodes with the same value have the same records. */
  readonly digest: Uint8Array;
  readonly records: readonly Uint8Array[];
  readonly summaries: readonly Summary[];
  /** The node's clock, Unix seconds. */
  readonly time: number;
}

/** The verdict of a node on a record. The last ones are refusals. */
export const STORE_CODES = [
  'kept',
  'newer',
  'bad',
  'misplaced',
  'full',
  'limited',
  'too_large',
  'removed',
  'not_now',
] as const;
export type StoreCode = (typeof STORE_CODES)[number];

export interface StoreReply {
  readonly code: StoreCode;
  /** The newer record that the node has, if it fits. */
  readonly record?: Uint8Array;
  /** The token that removed the note. */
  readonly token?: Uint8Array;
}

export interface ProbeRequest {
  /** The port that gets the answer. */
  readonly port: number;
  /** Whether to answer from the other socket. */
  readonly otherSocket: boolean;
}

type Members = Readonly<Record<string, unknown>>;

/** The members of an untrusted map, as `asMap`; null if it does not match. */
export function readMap(bytes: Uint8Array, maxBytes: number, required: string[], optional?: string[]): Members | null {
  try {
    return asMap(decodeCbor(bytes, maxBytes), required, optional);
  } catch {
    return null;
  }
}

/** The decoded items of a list; null if there are more than `max` or one is invalid. */
function decodeAll<T>(list: unknown, decode: (item: unknown) => T | null, max = Number.POSITIVE_INFINITY): T[] | null {
  if (!Array.isArray(list) || list.length > max) return null;
  const items = list.map(decode).filter((item) => item !== null);
  return items.length === list.length ? items : null;
}

/** A list of this length; empty for anything else. */
function asTuple(value: unknown, length: number): unknown[] {
  return Array.isArray(value) && value.length === length ? value : [];
}

/** Types as bytes; null if one is unknown or there are too many. */
export function decodeTypes(types: unknown): RecordType[] | null {
  return isBytes(types) && types.length <= MAX_TYPES && types.every((type) => isRecordType(type)) ? [...types] : null;
}

/** A FIND for nodes, in a datagram as long as those of a QUIC handshake. */
export function encodeLongFindRequest(): Uint8Array {
  return encodePadded({ types: [], wantsRecords: false }, QUIC_DATAGRAM_BYTES - LONG_REQUEST_OVERHEAD_BYTES);
}

export function encodeFindRequest(request: FindRequest): Uint8Array {
  return encodePadded(request, request.wantsRecords ? PADDED_FIND_BYTES : PADDED_SURVEY_BYTES);
}

function encodePadded(request: FindRequest, length: number): Uint8Array {
  const map = {
    i: request.wantsRecords,
    t: Uint8Array.from(request.types),
    p: request.part && [request.part.index, request.part.of],
  };
  const bare = encodeCbor({ ...map, z: new Uint8Array() });
  const missing = length - bare.length;
  return missing <= 0 ? bare : encodeCbor({ ...map, z: new Uint8Array(missing) });
}

function decodePart(value: unknown): Part | null {
  const [index, of] = asTuple(value, 2);
  return isUint(of, MAX_PARTS) && isUint(index, MAX_PARTS) && index < of ? { index, of } : null;
}

export function decodeFindRequest(bytes: Uint8Array): FindRequest | null {
  const { i: wantsRecords, t, z, p } = readMap(bytes, MAX_DATAGRAM_BYTES, ['i', 't', 'z'], ['p']) ?? {};
  const types = decodeTypes(t);
  if (types === null || typeof wantsRecords !== 'boolean' || !isBytes(z)) return null;
  const request = { types, wantsRecords };
  if (p === undefined) return request;
  const part = decodePart(p);
  return part === null ? null : { ...request, part };
}

function decodeSummary(value: unknown): Summary | null {
  const [type, issuedAt, seq, timestamp, digest] = asTuple(value, 5);
  if (!isUint(type, 255) || !isRecordType(type) || !isBytes(digest, RECORD_DIGEST_BYTES)) return null;
  if (!isUint(issuedAt) || !isUint(seq) || !isUint(timestamp)) return null;
  return { type, issuedAt, seq, timestamp, digest };
}

export function encodeFindReply(reply: FindReply): Uint8Array {
  return encodeCbor({
    c: reply.count,
    k: reply.nodeKey,
    n: packAddresses(reply.nodes),
    q: reply.quicPort,
    r: reply.records,
    s: reply.summaries.map((s) => [s.type, s.issuedAt, s.seq, s.timestamp, s.digest]),
    t: reply.time,
    x: reply.digest,
  });
}

function asRecordBytes(value: unknown): Uint8Array | null {
  return isBytes(value) && value.length <= MAX_DATAGRAM_RECORD_BYTES ? value : null;
}

export function decodeFindReply(bytes: Uint8Array): FindReply | null {
  const map = readMap(bytes, MAX_DATAGRAM_BYTES, ['c', 'k', 'n', 'q', 'r', 's', 't', 'x']);
  if (map === null) return null;
  const { c: count, k: nodeKey, q: quicPort, t: time, x: digest } = map;
  if (!isUint(count) || !isBytes(nodeKey, PUBLIC_KEY_BYTES) || !isUint(quicPort, 0xffff)) return null;
  if (!isUint(time, MAX_UNIX_S) || !isBytes(digest, RECORD_DIGEST_BYTES)) return null;
  const nodes = isBytes(map['n']) ? unpackAddresses(map['n'], MAX_NODES_PER_REPLY) : null;
  const records = decodeAll(map['r'], asRecordBytes);
  const summaries = decodeAll(map['s'], decodeSummary, MAX_SUMMARIES);
  if (nodes === null || records === null || summaries === null) return null;
  return { nodeKey, quicPort, nodes, count, digest, records, summaries, time };
}

/** Bytes for records and nodes in an answer of `valueBytes`. */
export function replyRoom(valueBytes: number): number {
  return valueBytes - FIND_REPLY_FRAME_BYTES;
}
/** Bytes of a FIND answer without records, nodes and summaries. */
const FIND_REPLY_FRAME_BYTES = 97;
/** Bytes that a list adds to each record. */
export const RECORD_FRAME_BYTES = 3;
/** Maximum length of a summary, in bytes. */
export const SUMMARY_BYTES = 48;
export const NODE_BYTES = PACKED_ADDRESS_BYTES;

export function encodeStoreReply(reply: StoreReply): Uint8Array {
  return encodeCbor({ c: STORE_CODES.indexOf(reply.code), r: reply.record, t: reply.token });
}

export function decodeStoreReply(bytes: Uint8Array, maxBytes = MAX_DATAGRAM_BYTES): StoreReply | null {
  const map = readMap(bytes, maxBytes, ['c'], ['r', 't']);
  if (map === null || !isUint(map['c'], STORE_CODES.length - 1)) return null;
  const code = STORE_CODES[map['c']];
  const { r: record, t: token } = map;
  if (code === undefined || (record !== undefined && !isBytes(record))) return null;
  if (token !== undefined && !isBytes(token, REMOVAL_TOKEN_BYTES)) return null;
  return { code, ...(record === undefined ? {} : { record }), ...(token === undefined ? {} : { token }) };
}

export function encodeProbeRequest(request: ProbeRequest): Uint8Array {
  return encodeCbor({ o: request.otherSocket, p: request.port });
}

export function decodeProbeRequest(bytes: Uint8Array): ProbeRequest | null {
  const { o: otherSocket, p: port } = readMap(bytes, MAX_DATAGRAM_BYTES, ['o', 'p']) ?? {};
  return typeof otherSocket === 'boolean' && isUint(port, 0xffff) && port > 0 ? { port, otherSocket } : null;
}

export function encodeRemoveRequest(removals: readonly NoteRemoval[]): Uint8Array {
  return encodeCbor({ r: removals.map(({ digest, token }) => [digest, token]) });
}

function decodeRemoval(value: unknown): NoteRemoval | null {
  const [digest, token] = asTuple(value, 2);
  return isBytes(digest, RECORD_DIGEST_BYTES) && isBytes(token, REMOVAL_TOKEN_BYTES) ? { digest, token } : null;
}

export function decodeRemoveRequest(bytes: Uint8Array): NoteRemoval[] | null {
  return decodeAll(readMap(bytes, MAX_DATAGRAM_BYTES, ['r'])?.['r'], decodeRemoval, MAX_REMOVALS);
}

/** @param count how many notes were removed */
export function encodeRemoveReply(count: number): Uint8Array {
  return encodeCbor({ c: count });
}

export function decodeRemoveReply(bytes: Uint8Array): number | null {
  const count = readMap(bytes, MAX_DATAGRAM_BYTES, ['c'])?.['c'];
  return isUint(count, MAX_REMOVALS) ? count : null;
}

/** Bytes of records in one page. A single record may be longer. */
export const PAGE_BYTES = 192 * 1024;
/** Maximum length of a request: one record and its frame, in bytes. */
export const MAX_NODE_REQUEST_BYTES = MAX_RECORD_BYTES + 256;
/** Maximum length of an answer: one page and its frame, in bytes. */
export const MAX_NODE_REPLY_BYTES = PAGE_BYTES + MAX_RECORD_BYTES + 4096;

export type NodeRequest =
  | { readonly kind: 'store'; readonly tag: Uint8Array; readonly key: Uint8Array; readonly record: Uint8Array }
  | {
      readonly kind: 'page';
      readonly tag: Uint8Array;
      readonly key: Uint8Array;
      readonly types: readonly RecordType[];
      /** The start of the page; 0 for the first. */
      readonly from: number;
      /** Concatenated digests of records that are not wanted, at most `MAX_KNOWN`. */
      readonly known?: Uint8Array;
    };

/** Maximum number of records that a reader may exclude. */
export const MAX_KNOWN = 4000;

export function encodeNodeRequest(request: NodeRequest): Uint8Array {
  const { tag: n, key: k } = request;
  return request.kind === 'store'
    ? encodeCbor({ k, n, r: request.record })
    : encodeCbor({ f: request.from, k, n, t: Uint8Array.from(request.types), x: request.known });
}

export function decodeNodeRequest(bytes: Uint8Array): NodeRequest | null {
  const map = readMap(bytes, MAX_NODE_REQUEST_BYTES, ['k', 'n'], ['r', 'f', 't', 'x']);
  if (map === null || !isBytes(map['k'], KEY_BYTES) || !isBytes(map['n'], NETWORK_TAG_BYTES)) return null;
  const { k: key, n: tag, r: record, f: from, t, x: known } = map;
  const isStore = from === undefined && t === undefined && known === undefined;
  if (isBytes(record)) return isStore ? { kind: 'store', tag, key, record } : null;
  const types = decodeTypes(t);
  if (record !== undefined || types === null || !isUint(from)) return null;
  if (known === undefined) return { kind: 'page', tag, key, types, from };
  const fits =
    isBytes(known) && known.length % RECORD_DIGEST_BYTES === 0 && known.length / RECORD_DIGEST_BYTES <= MAX_KNOWN;
  return fits ? { kind: 'page', tag, key, types, from, known } : null;
}

export interface Page {
  readonly records: readonly Uint8Array[];
  /** The start of the next page; 0 after the last. */
  readonly next: number;
}

export function encodePage(page: Page): Uint8Array {
  return encodeCbor({ m: page.next, r: page.records });
}

function isRecord(value: unknown): value is Uint8Array {
  return isBytes(value) && value.length <= MAX_RECORD_BYTES;
}

export function decodePage(bytes: Uint8Array): Page | null {
  const map = readMap(bytes, MAX_NODE_REPLY_BYTES, ['m', 'r']);
  if (map === null || !isUint(map['m']) || !Array.isArray(map['r']) || !map['r'].every(isRecord)) return null;
  return { records: map['r'], next: map['m'] };
}

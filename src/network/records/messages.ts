/**
 * What nodes say to each other in datagrams, in deterministic CBOR. Every decoder faces a stranger:
 * it returns null for anything that is not exactly the format, within its limits.
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
import { NETWORK_TAG_BYTES, PACKED_ADDRESS_BYTES, packAddresses, unpackAddresses } from './node-address.ts';
import type { NoteRemoval } from './types.ts';

/** Command numbers of our own requests. */
export const COMMAND = { find: 1, store: 2, probe: 3, remove: 4 } as const;

/** Largest datagram that we send, bytes: it crosses every usual path in one piece. */
export const MAX_DATAGRAM_BYTES = 1232;
/** What stands around a value in a datagram, bytes: network tag, header, routing id, token, target, length. */
export const DATAGRAM_OVERHEAD_BYTES = 120;
/** What stands around a value in the smallest request, bytes. */
export const REQUEST_OVERHEAD_BYTES = 50;
/** An answer to an address that has not proven itself is at most this many times its request. */
export const MAX_REFLECTION_FACTOR = 3;
/** Value of a FIND that wants records, bytes: so long that the largest answer stays within the factor … */
const PADDED_FIND_BYTES = Math.ceil(MAX_DATAGRAM_BYTES / MAX_REFLECTION_FACTOR) - REQUEST_OVERHEAD_BYTES;
/** … and of one that asks only who is near, whose answer is as long as a list of nodes. */
const PADDED_SURVEY_BYTES = 64;
/** Most nodes that one answer names. */
export const MAX_NODES_PER_REPLY = 20;
/** Most records that one answer describes without carrying them. */
export const MAX_SUMMARIES = 16;
/** Most types that one request asks for. */
const MAX_TYPES = 16;
/** Maximum number of parts that the records under a key are divided into. Part numbers have 32 bits. */
export const MAX_PARTS: number = 2 ** 30;

/** Most notes that one request removes. */
export const MAX_REMOVALS = 32;

/** One of `of` parts of the records under a key, by the hash of their publishers. */
export interface Part {
  readonly index: number;
  readonly of: number;
}

export interface FindRequest {
  /** Empty asks for every type. */
  readonly types: readonly RecordType[];
  /** Whether the records are wanted, or only what there is and who is near. */
  readonly wantsRecords: boolean;
  readonly part?: Part;
}

/** What a node holds and did not send: a record too large for the answer. */
export interface Summary {
  readonly type: RecordType;
  readonly issuedAt: number;
  readonly seq: number;
  readonly timestamp: number;
  readonly digest: Uint8Array;
}

export interface FindReply {
  /** The node's own key and QUIC port; port 0 where it has none. */
  readonly nodeKey: Uint8Array;
  readonly quicPort: number;
  /** The nodes closest to the key that it knows, closest first. */
  readonly nodes: readonly Address[];
  /** How many records of these types (and this part) it holds; 0 to who asks only who is near. */
  readonly count: number;
  /** The XOR of all their digests: nodes that agree on it hold the same. */
  readonly digest: Uint8Array;
  readonly records: readonly Uint8Array[];
  readonly summaries: readonly Summary[];
  /** What its clock shows, Unix seconds. */
  readonly time: number;
}

/** What a node did with a record. The last ones are refusals. */
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
  /** The newer record that it holds, where it fits. */
  readonly record?: Uint8Array;
  /** What the note was removed with. */
  readonly token?: Uint8Array;
}

export interface ProbeRequest {
  /** The port to answer to. */
  readonly port: number;
  /** Whether to answer from another socket than the one that was asked. */
  readonly otherSocket: boolean;
}

type Members = Readonly<Record<string, unknown>>;

/** The members of a map that a stranger wrote; null for anything else. As `asMap`. */
export function readMap(bytes: Uint8Array, maxBytes: number, required: string[], optional?: string[]): Members | null {
  try {
    return asMap(decodeCbor(bytes, maxBytes), required, optional);
  } catch {
    return null;
  }
}

/** What every item of a list says; null where there are more than `max`, or one is nothing that `decode` knows. */
function decodeAll<T>(list: unknown, decode: (item: unknown) => T | null, max = Number.POSITIVE_INFINITY): T[] | null {
  if (!Array.isArray(list) || list.length > max) return null;
  const items = list.map(decode).filter((item) => item !== null);
  return items.length === list.length ? items : null;
}

/** A list of so many items; empty for anything else. */
function asTuple(value: unknown, length: number): unknown[] {
  return Array.isArray(value) && value.length === length ? value : [];
}

/** Types as bytes; null where one is unknown or there are too many. */
export function decodeTypes(types: unknown): RecordType[] | null {
  return isBytes(types) && types.length <= MAX_TYPES && types.every((type) => isRecordType(type)) ? [...types] : null;
}

export function encodeFindRequest(request: FindRequest): Uint8Array {
  const map = {
    i: request.wantsRecords,
    t: Uint8Array.from(request.types),
    p: request.part && [request.part.index, request.part.of],
  };
  const bare = encodeCbor({ ...map, z: new Uint8Array() });
  const missing = (request.wantsRecords ? PADDED_FIND_BYTES : PADDED_SURVEY_BYTES) - bare.length;
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

/** How many bytes of records, and after them of nodes, an answer of `valueBytes` has room for. */
export function replyRoom(valueBytes: number): number {
  return valueBytes - FIND_REPLY_FRAME_BYTES;
}
/** A FIND answer without records, nodes and summaries, bytes: its keys, lengths, counters, the node's key and time. */
const FIND_REPLY_FRAME_BYTES = 97;
/** What a list adds to each record, bytes. */
export const RECORD_FRAME_BYTES = 3;
/** The most that a summary takes, bytes. */
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

/** What nodes say to each other over QUIC: records that no datagram holds, and whole pages of a key's records. */

/** Records in one page, bytes; one record alone may be longer. */
export const PAGE_BYTES = 192 * 1024;
/** Largest request: one record and what stands around it, bytes. */
export const MAX_NODE_REQUEST_BYTES = MAX_RECORD_BYTES + 256;
/** Largest answer: one page and what stands around it, bytes. */
export const MAX_NODE_REPLY_BYTES = PAGE_BYTES + MAX_RECORD_BYTES + 4096;

export type NodeRequest =
  | { readonly kind: 'store'; readonly tag: Uint8Array; readonly key: Uint8Array; readonly record: Uint8Array }
  | {
      readonly kind: 'page';
      readonly tag: Uint8Array;
      readonly key: Uint8Array;
      readonly types: readonly RecordType[];
      /** Where the page begins; 0 for the first. */
      readonly from: number;
      /** Digests of records that are not wanted, one behind the other; at most `MAX_KNOWN`. */
      readonly known?: Uint8Array;
    };

/** Most records that a reader of pages may say that it has. */
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
  /** Where the next page begins; 0 where this is the last. */
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

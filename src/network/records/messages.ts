/**
 * Messages between nodes in datagrams and over QUIC, in deterministic CBOR. Input is untrusted: decoders return null
 * for everything that does not match the format and its limits exactly.
 */
import type { Address } from '../../foundation/address.ts';
import {
  bool,
  bytes,
  bytesUpTo,
  CborMap,
  converted,
  fromBytes,
  type Kind,
  list,
  optional,
  toBytes,
  tuple,
  uint,
  type ValueOf,
  where,
  word,
} from '../../foundation/cbor-map.ts';
import { MAX_UNIX_S } from '../../foundation/domain/time.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { memberOf } from '../../foundation/json.ts';
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

const TYPES: Kind<readonly RecordType[]> = converted(
  where(bytesUpTo(MAX_TYPES), (types) => types.every((type) => isRecordType(type))),
  (types) => [...types],
  (types) => Uint8Array.from(types),
);

/** One of `of` parts of the records under a key, by the hash of their publishers. */
const PART = tuple({ index: uint(MAX_PARTS), of: uint(MAX_PARTS) });
const FIND_REQUEST = new CborMap({
  /** Empty for all types. */
  types: ['t', TYPES],
  /** Whether records are wanted, or only closer nodes. */
  wantsRecords: ['i', bool],
  part: ['p', optional(where(PART, ({ index, of }) => index < of))],
  padding: ['z', bytesUpTo(MAX_DATAGRAM_BYTES)],
});
const SUMMARY = tuple({
  type: where(uint(255), isRecordType),
  issuedAt: uint(),
  seq: uint(),
  timestamp: uint(),
  digest: bytes(RECORD_DIGEST_BYTES),
});
const NODES: Kind<readonly Address[]> = converted(
  bytesUpTo(MAX_DATAGRAM_BYTES),
  (packed) => unpackAddresses(packed, MAX_NODES_PER_REPLY),
  packAddresses,
);
const FIND_REPLY = new CborMap({
  /** The node's key and QUIC port; 0 without QUIC. */
  nodeKey: ['k', bytes(PUBLIC_KEY_BYTES)],
  quicPort: ['q', uint(0xffff)],
  /** The nodes closest to the key that it knows, closest first. */
  nodes: ['n', NODES],
  /** How many records of these types (and this part) it has; 0 if none are wanted. */
  count: ['c', uint()],
  /** The XOR of all their digests. Nodes with the same value have the same records. */
  digest: ['x', bytes(RECORD_DIGEST_BYTES)],
  records: ['r', list(bytesUpTo(MAX_DATAGRAM_RECORD_BYTES), MAX_DATAGRAM_BYTES)],
  summaries: ['s', list(SUMMARY, MAX_SUMMARIES)],
  /** The node's clock, Unix seconds. */
  time: ['t', uint(MAX_UNIX_S)],
});

export type Part = ValueOf<typeof PART>;
export type FindRequest = Omit<ValueOf<typeof FIND_REQUEST>, 'padding'>;
/** A record that the node has and did not send because it did not fit. */
export type Summary = ValueOf<typeof SUMMARY>;
export type FindReply = ValueOf<typeof FIND_REPLY>;

/** Requests closer nodes only. */
export const SURVEY: FindRequest = { types: [], wantsRecords: false };

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

const STORE_REPLY = new CborMap({
  code: ['c', word(STORE_CODES)],
  /** The newer record that the node has, if it fits. */
  record: ['r', optional(bytesUpTo(MAX_RECORD_BYTES))],
  /** The token that removed the note. */
  token: ['t', optional(bytes(REMOVAL_TOKEN_BYTES))],
});
const PROBE_REQUEST = new CborMap({
  /** The port that gets the answer. */
  port: ['p', where(uint(0xffff), (port) => port > 0)],
  /** Whether to answer from the other socket. */
  otherSocket: ['o', bool],
});
const REMOVALS = new CborMap({
  removals: ['r', list(tuple({ digest: bytes(RECORD_DIGEST_BYTES), token: bytes(REMOVAL_TOKEN_BYTES) }), MAX_REMOVALS)],
});
const REMOVED = new CborMap({ count: ['c', uint(MAX_REMOVALS)] });

export type StoreReply = ValueOf<typeof STORE_REPLY>;
export type ProbeRequest = ValueOf<typeof PROBE_REQUEST>;

/** A FIND for nodes, in a datagram as long as those of a QUIC handshake. */
export function encodeLongFindRequest(): Uint8Array {
  return encodePadded({ types: [], wantsRecords: false }, QUIC_DATAGRAM_BYTES - LONG_REQUEST_OVERHEAD_BYTES);
}

export function encodeFindRequest(request: FindRequest): Uint8Array {
  return encodePadded(request, request.wantsRecords ? PADDED_FIND_BYTES : PADDED_SURVEY_BYTES);
}

function encodePadded(request: FindRequest, length: number): Uint8Array {
  const bare = toBytes(FIND_REQUEST, { ...request, padding: new Uint8Array() });
  const missing = length - bare.length;
  return missing <= 0 ? bare : toBytes(FIND_REQUEST, { ...request, padding: new Uint8Array(missing) });
}

export function decodeFindRequest(datagram: Uint8Array): FindRequest | null {
  const decoded = fromBytes(FIND_REQUEST, datagram, MAX_DATAGRAM_BYTES);
  if (decoded === null) return null;
  const { padding: _padding, ...request } = decoded;
  return request;
}

export function encodeFindReply(reply: FindReply): Uint8Array {
  return toBytes(FIND_REPLY, reply);
}

export function decodeFindReply(datagram: Uint8Array): FindReply | null {
  return fromBytes(FIND_REPLY, datagram, MAX_DATAGRAM_BYTES);
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
  return toBytes(STORE_REPLY, reply);
}

export function decodeStoreReply(reply: Uint8Array, maxBytes = MAX_DATAGRAM_BYTES): StoreReply | null {
  return fromBytes(STORE_REPLY, reply, maxBytes);
}

export function encodeProbeRequest(request: ProbeRequest): Uint8Array {
  return toBytes(PROBE_REQUEST, request);
}

export function decodeProbeRequest(request: Uint8Array): ProbeRequest | null {
  return fromBytes(PROBE_REQUEST, request, MAX_DATAGRAM_BYTES);
}

export function encodeRemoveRequest(removals: readonly NoteRemoval[]): Uint8Array {
  return toBytes(REMOVALS, { removals });
}

export function decodeRemoveRequest(request: Uint8Array): readonly NoteRemoval[] | null {
  return fromBytes(REMOVALS, request, MAX_DATAGRAM_BYTES)?.removals ?? null;
}

/** @param count how many notes were removed */
export function encodeRemoveReply(count: number): Uint8Array {
  return toBytes(REMOVED, { count });
}

export function decodeRemoveReply(reply: Uint8Array): number | null {
  return fromBytes(REMOVED, reply, MAX_DATAGRAM_BYTES)?.count ?? null;
}

/** Bytes of records in one page. A single record may be longer. */
export const PAGE_BYTES = 192 * 1024;
/** Maximum length of a request: one record and its frame, in bytes. */
export const MAX_NODE_REQUEST_BYTES = MAX_RECORD_BYTES + 256;
/** Maximum length of an answer: one page and its frame, in bytes. */
export const MAX_NODE_REPLY_BYTES = PAGE_BYTES + MAX_RECORD_BYTES + 4096;
/** Maximum number of records that a reader may exclude. */
export const MAX_KNOWN = 4000;

const PLACE = { tag: ['n', bytes(NETWORK_TAG_BYTES)], key: ['k', bytes(KEY_BYTES)] } as const;
const STORE_REQUEST = new CborMap({ ...PLACE, record: ['r', bytesUpTo(MAX_NODE_REQUEST_BYTES)] });
const PAGE_REQUEST = new CborMap({
  ...PLACE,
  types: ['t', TYPES],
  /** The start of the page; 0 for the first. */
  from: ['f', uint()],
  /** Concatenated digests of records that are not wanted. */
  known: [
    'x',
    optional(where(bytesUpTo(MAX_KNOWN * RECORD_DIGEST_BYTES), ({ length }) => length % RECORD_DIGEST_BYTES === 0)),
  ],
});
const PAGE = new CborMap({
  records: ['r', list(bytesUpTo(MAX_RECORD_BYTES), MAX_NODE_REPLY_BYTES)],
  /** The start of the next page; 0 after the last. */
  next: ['m', uint()],
});

export type NodeRequest =
  | ({ readonly kind: 'store' } & ValueOf<typeof STORE_REQUEST>)
  | ({ readonly kind: 'page' } & ValueOf<typeof PAGE_REQUEST>);
export type Page = ValueOf<typeof PAGE>;

/** Only store requests have a record. */
const NODE_REQUEST: Kind<NodeRequest> = {
  encode: (request) => (request.kind === 'store' ? STORE_REQUEST.encode(request) : PAGE_REQUEST.encode(request)),
  decode: (value) =>
    memberOf(value, 'r') === undefined
      ? { kind: 'page', ...PAGE_REQUEST.decode(value) }
      : { kind: 'store', ...STORE_REQUEST.decode(value) },
};

export function encodeNodeRequest(request: NodeRequest): Uint8Array {
  return toBytes(NODE_REQUEST, request);
}

export function decodeNodeRequest(request: Uint8Array): NodeRequest | null {
  return fromBytes(NODE_REQUEST, request, MAX_NODE_REQUEST_BYTES);
}

export function encodePage(page: Page): Uint8Array {
  return toBytes(PAGE, page);
}

export function decodePage(page: Uint8Array): Page | null {
  return fromBytes(PAGE, page, MAX_NODE_REPLY_BYTES);
}

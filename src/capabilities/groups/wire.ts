/** The messages of a link of purpose `room`. Format: docs/protocol-groups.md, "Links". */
import { toHex } from '../../foundation/bytes.ts';
import { asMap, type CborValue, decodeCbor, encodeCbor, isBytes, isUint } from '../../foundation/cbor.ts';
import { EPOCH_BYTES, HASH_BYTES } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import { SIGNATURE_BYTES } from '../../foundation/identity/ed25519.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { BinaryReader, readExactly, u32 } from '../../network/peers/wire.ts';
import { hashBytes, MAX_ENTRY_BYTES } from './entry.ts';

/** Limit of the entries in one message, bytes. A response holds at least one entry, even if it is larger. */
export const BATCH_BYTES: number = 256 * 1024;
/** Largest message, bytes. */
export const MAX_MESSAGE_BYTES: number = BATCH_BYTES + 2 * MAX_ENTRY_BYTES;
/** Limit of entries in one message. */
export const MAX_BATCH_ENTRIES = 512;
/** Limits of IDs in one list, of IDs in one request, and of heads. */
export const MAX_IDS = 2048;
export const MAX_WANTED = 256;
export const MAX_HEADS = 256;
const MAX_SEQ = 1_000_000;

/** The heads, the size and the epoch of a replica. */
export interface Have {
  readonly heads: readonly string[];
  readonly maxSeq: number;
  readonly epoch: Uint8Array;
}

export type Message =
  | { readonly type: 'hello'; readonly groupId: string; readonly have: Have; readonly proof?: Uint8Array | undefined }
  | { readonly type: 'push'; readonly groupId: string; readonly entries: readonly Uint8Array[] }
  | { readonly type: 'have'; readonly have: Have }
  | { readonly type: 'refuse'; readonly entry?: Uint8Array | undefined }
  | { readonly type: 'taken'; readonly complete: boolean }
  | { readonly type: 'list'; readonly after: number }
  | { readonly type: 'ids'; readonly upTo: number; readonly ids: readonly string[] }
  | { readonly type: 'get'; readonly ids: readonly string[] }
  | { readonly type: 'pull'; readonly after: number }
  | { readonly type: 'entries'; readonly upTo: number; readonly entries: readonly Uint8Array[] }
  | { readonly type: 'done' };

function joined(ids: readonly string[]): Uint8Array {
  return hashBytes(ids.join(''));
}

function haveMap(have: Have) {
  return { h: joined(have.heads), n: have.maxSeq, e: have.epoch };
}

function bodyOf(message: Message): { readonly [key: string]: CborValue | undefined } {
  switch (message.type) {
    case 'hello':
      return { g: hashBytes(message.groupId), ...haveMap(message.have), x: message.proof };
    case 'push':
      return { g: hashBytes(message.groupId), l: message.entries };
    case 'have':
      return haveMap(message.have);
    case 'refuse':
      return { w: message.entry };
    case 'taken':
      return { c: message.complete };
    case 'list':
    case 'pull':
      return { a: message.after };
    case 'ids':
      return { s: message.upTo, i: joined(message.ids) };
    case 'get':
      return { i: joined(message.ids) };
    case 'entries':
      return { s: message.upTo, l: message.entries };
    case 'done':
      return {};
  }
}

/** A message as bytes: its length in four bytes, then its CBOR. */
export function encode(message: Message): Uint8Array {
  const body = encodeCbor({ m: message.type, ...bodyOf(message) });
  return Buffer.concat([u32(body.length), body]);
}

export function send(link: LinkStream, message: Message): void {
  link.write(encode(message));
}

function malformed(): SvcError {
  return new SvcError('protocol_error', { message: 'The peer sent a malformed group message.' });
}

type Fields = Readonly<Record<string, unknown>>;

function bytesField(map: Fields, key: string, max: number): Uint8Array {
  const value = map[key];
  if (!isBytes(value) || value.length > max) throw malformed();
  return value;
}

function idsField(map: Fields, key: string, max: number): string[] {
  const bytes = bytesField(map, key, max * HASH_BYTES);
  if (bytes.length % HASH_BYTES !== 0) throw malformed();
  return Array.from({ length: bytes.length / HASH_BYTES }, (_, i) =>
    toHex(bytes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)),
  );
}

function groupField(map: Fields): string {
  const [groupId, ...more] = idsField(map, 'g', 1);
  if (groupId === undefined || more.length > 0) throw malformed();
  return groupId;
}

function seqField(map: Fields, key: string): number {
  const value = map[key];
  if (!isUint(value, MAX_SEQ)) throw malformed();
  return value;
}

function entriesField(map: Fields): Uint8Array[] {
  const { l: list } = map;
  if (!Array.isArray(list) || list.length > MAX_BATCH_ENTRIES) throw malformed();
  return list.map((item: unknown) => {
    if (!isBytes(item) || item.length > MAX_ENTRY_BYTES) throw malformed();
    return item;
  });
}

function haveField(map: Fields): Have {
  return { heads: idsField(map, 'h', MAX_HEADS), maxSeq: seqField(map, 'n'), epoch: bytesField(map, 'e', EPOCH_BYTES) };
}

const READERS: { readonly [T in Message['type']]: (map: Fields) => Extract<Message, { type: T }> } = {
  hello: (map) => ({
    type: 'hello',
    groupId: groupField(map),
    have: haveField(map),
    proof: map['x'] === undefined ? undefined : bytesField(map, 'x', SIGNATURE_BYTES),
  }),
  push: (map) => ({ type: 'push', groupId: groupField(map), entries: entriesField(map) }),
  have: (map) => ({ type: 'have', have: haveField(map) }),
  refuse: (map) => ({
    type: 'refuse',
    entry: map['w'] === undefined ? undefined : bytesField(map, 'w', MAX_ENTRY_BYTES),
  }),
  taken: (map) => ({ type: 'taken', complete: map['c'] === true }),
  list: (map) => ({ type: 'list', after: seqField(map, 'a') }),
  ids: (map) => ({ type: 'ids', upTo: seqField(map, 's'), ids: idsField(map, 'i', MAX_IDS) }),
  get: (map) => ({ type: 'get', ids: idsField(map, 'i', MAX_WANTED) }),
  pull: (map) => ({ type: 'pull', after: seqField(map, 'a') }),
  entries: (map) => ({ type: 'entries', upTo: seqField(map, 's'), entries: entriesField(map) }),
  done: () => ({ type: 'done' }),
};

function isType(value: unknown): value is Message['type'] {
  return typeof value === 'string' && Object.hasOwn(READERS, value);
}

/**
 * Reads a message.
 * @throws SvcError `protocol_error` if the message is too long or malformed, and as `readExactly`
 */
export async function receive(link: LinkStream, signal: AbortSignal): Promise<Message> {
  const length = new BinaryReader(await readExactly(link, 4, signal)).u32();
  if (length > MAX_MESSAGE_BYTES) throw malformed();
  const body = await readExactly(link, length, signal);
  let decoded: unknown;
  try {
    decoded = decodeCbor(body, MAX_MESSAGE_BYTES);
  } catch {
    throw malformed();
  }
  const map = asMap(decoded, ['m'], 'any');
  const type = map?.['m'];
  if (map === null || !isType(type)) throw malformed();
  return READERS[type](map);
}

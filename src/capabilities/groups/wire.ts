/** The messages of a link of purpose `group`. Format: docs/protocol-groups.md, "Links". */
import { toHex } from '../../foundation/bytes.ts';
import {
  bool,
  bytesUpTo,
  CborMap,
  converted,
  fromBytes,
  hex,
  type Kind,
  list,
  optional,
  toBytes,
  uint,
  union,
  type ValueOf,
} from '../../foundation/cbor-map.ts';
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

/** Concatenated IDs. */
function hashes(max: number): Kind<readonly string[]> {
  return converted(bytesUpTo(max * HASH_BYTES), splitHashes, (ids) => hashBytes(ids.join('')));
}

function splitHashes(bytes: Uint8Array): string[] | null {
  if (bytes.length % HASH_BYTES !== 0) return null;
  return Array.from({ length: bytes.length / HASH_BYTES }, (_, i) =>
    toHex(bytes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)),
  );
}

const SEQ = uint(MAX_SEQ);
const GROUP = hex(HASH_BYTES);
const ENTRY = bytesUpTo(MAX_ENTRY_BYTES);
const ENTRIES = list(ENTRY, MAX_BATCH_ENTRIES);
/** The heads, the size and the epoch of a replica. */
const HAVE = new CborMap(
  { heads: ['h', hashes(MAX_HEADS)], maxSeq: ['n', SEQ], epoch: ['e', bytesUpTo(EPOCH_BYTES)] },
  { isOpen: true },
);
const MESSAGE = union('type', 'm', {
  hello: ['hello', { groupId: ['g', GROUP], have: [null, HAVE], proof: ['x', optional(bytesUpTo(SIGNATURE_BYTES))] }],
  push: ['push', { groupId: ['g', GROUP], entries: ['l', ENTRIES] }],
  have: ['have', { have: [null, HAVE] }],
  refuse: ['refuse', { entry: ['w', optional(ENTRY)] }],
  taken: ['taken', { complete: ['c', bool] }],
  list: ['list', { after: ['a', SEQ] }],
  ids: ['ids', { upTo: ['s', SEQ], ids: ['i', hashes(MAX_IDS)] }],
  get: ['get', { ids: ['i', hashes(MAX_WANTED)] }],
  pull: ['pull', { after: ['a', SEQ] }],
  entries: ['entries', { upTo: ['s', SEQ], entries: ['l', ENTRIES] }],
  done: ['done', {}],
});

export type Have = ValueOf<typeof HAVE>;
export type Message = ValueOf<typeof MESSAGE>;

/** A message as bytes: its length in four bytes, then its CBOR. */
export function encode(message: Message): Uint8Array {
  const body = toBytes(MESSAGE, message);
  return Buffer.concat([u32(body.length), body]);
}

export function send(link: LinkStream, message: Message): void {
  link.write(encode(message));
}

function malformed(): SvcError {
  return new SvcError('protocol_error', { message: 'The peer sent a malformed group message.' });
}

/**
 * Reads a message.
 * @throws SvcError `protocol_error` if the message is too long or malformed, and as `readExactly`
 */
export async function receive(link: LinkStream, signal: AbortSignal): Promise<Message> {
  const length = new BinaryReader(await readExactly(link, 4, signal)).u32();
  if (length > MAX_MESSAGE_BYTES) throw malformed();
  const body = await readExactly(link, length, signal);
  const message = fromBytes(MESSAGE, body, MAX_MESSAGE_BYTES);
  if (message === null) throw malformed();
  return message;
}

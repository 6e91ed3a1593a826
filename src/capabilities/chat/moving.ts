/**
 * Exports and imports the conversations of an agent that moves to another node: relationships, queued entries, and as
 * much of the logs as fits. Streams and their counters are included, so that both sides continue without duplicates.
 */
import { toHex } from '../../foundation/bytes.ts';
import { MAX_TEXT_BYTES, type PairState } from '../../foundation/domain/chat.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { type ChatPart, MAX_MOVED_CHAT_BYTES, MAX_MOVED_CHAT_ENTRIES } from '../../foundation/moving/agent-document.ts';
import { aidAt, badDocument, checkDistinct, hexBytes } from '../../foundation/moving/document-fields.ts';
import type { PairRow, Relationship } from '../../foundation/store/chat.ts';
import type { ChatEntry } from '../../foundation/store/chat-log.ts';
import { MAX_CONTACTS, MAX_QUEUED } from './chat.ts';
import { MAX_INVITES } from './exchange.ts';
import type { ChatDependencies } from './types.ts';
import { isFileName, isNote } from './wire.ts';

/** Limit of queued entries of all conversations, bytes. */
const MAX_WAITING_BYTES: number = 16 * 1024 * 1024;

type ChatMovingDependencies = Pick<ChatDependencies, 'store' | 'entries'>;
type PairPart = ChatPart[number];
type EntryPart = PairPart['entries'][number];

/**
 * Exports the conversations. `leftOut` counts the log entries that do not fit.
 * @throws SvcError `too_large` if the queued entries do not fit into a document
 */
export function exportChat({ store, entries }: ChatMovingDependencies, aid: Aid): { part: ChatPart; leftOut: number } {
  const pairs = store.all(aid).filter((pair) => pair.state !== 'none' || pair.control !== null || pair.lastSeq > 0);
  const queues = pairs.map(({ id, queued }) => (queued === 0 ? [] : entries.queued(id, 0, MAX_QUEUED, Infinity)));
  const waiting = queues.flat().reduce((sum, entry) => sum + bytesOf(entry), 0);
  if (waiting > MAX_WAITING_BYTES)
    throw new SvcError('too_large', {
      message: `${waiting} bytes of chat are queued, but the limit is ${MAX_WAITING_BYTES}. Move the whole node with "svc backup", or wait until the peers are reachable.`,
    });
  let room = MAX_MOVED_CHAT_BYTES;
  let leftOut = 0;
  const part = pairs.map((pair, i): PairPart => {
    const shown: ChatEntry[] = [];
    for (const entry of entries.newest(pair.id, MAX_MOVED_CHAT_ENTRIES)) {
      if (entry.status === 'queued') continue;
      room -= bytesOf(entry);
      if (room < 0) break;
      shown.push(entry);
    }
    const all = [...shown, ...(queues[i] ?? [])].sort((a, b) => a.seq - b.seq);
    leftOut += pair.lastSeq - all.length;
    return pairPart(pair, all);
  });
  return { part, leftOut };
}

/** The size of an entry in a document. */
function bytesOf(entry: ChatEntry): number {
  return Buffer.byteLength(JSON.stringify(entryPart(entry)));
}

function hexOrNull(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : toHex(bytes);
}

function pairPart(pair: PairRow, entries: readonly ChatEntry[]): PairPart {
  const { peer, state, since, note, acked, control } = pair;
  return {
    peer,
    state,
    since,
    note,
    expires_at: pair.expiresAt,
    out_stream: hexOrNull(pair.outStream),
    acked,
    acked_id: hexOrNull(pair.ackedId),
    in_stream: hexOrNull(pair.inStream),
    received_id: hexOrNull(pair.receivedId),
    control,
    control_until: pair.controlUntil,
    gone_out: hexOrNull(pair.goneOut),
    gone_in: hexOrNull(pair.goneIn),
    last_seq: pair.lastSeq,
    last_at: pair.lastAt,
    read_cursor: pair.readCursor,
    entries: entries.map(entryPart),
  };
}

function entryPart({ seq, id, incoming, status, at, text, file }: ChatEntry): EntryPart {
  return {
    seq,
    id: toHex(id),
    dir: incoming ? 'in' : 'out',
    status,
    at,
    ...(text === null ? {} : { text }),
    ...(file === null ? {} : { file: { object_id: file.objectId, name: file.name, size: file.size } }),
  };
}

/**
 * Checks conversations of a document.
 * @returns a function that stores them
 * @throws SvcError `bad_file`
 */
export function importChat(deps: ChatMovingDependencies, aid: Aid, part: ChatPart): () => void {
  const pairs = part.map((one, i) => readPair(`/chat/${i}`, aid, one));
  const peers = pairs.map(({ peer }) => peer);
  checkDistinct('/chat', peers);
  const count = (state: PairState): number => part.filter((one) => one.state === state).length;
  if (count('friends') + count('out_pending') > MAX_CONTACTS || count('blocked') > MAX_CONTACTS)
    throw badDocument('/chat', `has more than ${MAX_CONTACTS} contacts`);
  if (count('in_pending') > MAX_INVITES) throw badDocument('/chat', `has more than ${MAX_INVITES} open requests`);
  return () => {
    for (const { peer, relationship, entries, marks } of pairs) {
      const pair = deps.store.open(aid, peer, relationship.since);
      if (pair === null) continue;
      deps.store.setRelationship(pair.id, relationship);
      deps.entries.restore(pair.id, entries, marks);
      deps.entries.markRead(pair.id, marks.readCursor);
    }
  };
}

function bytesOrNull(text: string | null): Uint8Array | null {
  return text === null ? null : hexBytes(text);
}

function readPair(path: string, aid: Aid, one: PairPart) {
  const peer = aidAt(`${path}/peer`, one.peer);
  if (peer === aid) throw badDocument(`${path}/peer`, 'is the agent itself');
  if (!isNote(one.note) || !one.note.isWellFormed()) throw badDocument(`${path}/note`, 'is too long');
  const relationship: Relationship = {
    state: one.state,
    since: one.since,
    note: one.note,
    expiresAt: one.expires_at,
    // The source of a request has no meaning on this node.
    origin: null,
    outStream: bytesOrNull(one.out_stream),
    acked: one.acked,
    ackedId: bytesOrNull(one.acked_id),
    inStream: bytesOrNull(one.in_stream),
    control: one.control,
    controlUntil: one.control_until,
    goneOut: bytesOrNull(one.gone_out),
    goneIn: bytesOrNull(one.gone_in),
  };
  checkStreams(path, relationship);
  for (const name of ['seq', 'id'] as const) {
    const names = one.entries.map((entry) => entry[name]);
    checkDistinct(`${path}/entries`, names);
  }
  const entries = one.entries.map((entry, i) => readEntry(`${path}/entries/${i}`, entry, one));
  return {
    peer,
    relationship,
    entries,
    marks: {
      lastSeq: one.last_seq,
      lastAt: one.last_at,
      readCursor: one.read_cursor,
      receivedId: bytesOrNull(one.received_id),
    },
  };
}

/** A relationship without its streams would send its control message forever. */
function checkStreams(path: string, { state, outStream, inStream, control }: Relationship): void {
  const needsOut = state === 'friends' || state === 'out_pending' || control === 'request' || control === 'accept';
  const needsIn = state === 'friends' || state === 'in_pending' || control === 'accept';
  if ((needsOut && outStream === null) || (needsIn && inStream === null)) throw badDocument(path, 'has no stream ID');
}

function readEntry(path: string, entry: EntryPart, pair: PairPart): ChatEntry {
  const { seq, id, dir, status, at, text = null, file } = entry;
  if (seq > pair.last_seq) throw badDocument(`${path}/seq`, 'is greater than last_seq');
  if ((dir === 'in') !== (status === 'received')) throw badDocument(`${path}/status`, 'does not match its direction');
  if (status === 'queued' && pair.state !== 'friends' && pair.state !== 'out_pending')
    throw badDocument(`${path}/status`, 'is queued for an agent that is not a friend');
  if (text === null && file === undefined) throw badDocument(path, 'is empty');
  if (text !== null && (Buffer.byteLength(text) > MAX_TEXT_BYTES || !text.isWellFormed()))
    throw badDocument(`${path}/text`, 'is too long or not well-formed Unicode');
  if (file !== undefined && (!isFileName(file.name) || !file.name.isWellFormed()))
    throw badDocument(`${path}/file/name`, 'is not a valid file name');
  return {
    seq,
    id: hexBytes(id),
    incoming: dir === 'in',
    status,
    at,
    text,
    file: file === undefined ? null : { objectId: file.object_id, name: file.name, size: file.size },
  };
}

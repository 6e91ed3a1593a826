/** The mailbox of an agent, for its move to another node: its notes, and what opens those to come. */
import { toBase64 } from '../../foundation/base64.ts';
import { toHex } from '../../foundation/bytes.ts';
import { MAX_NOTE_BODY_BYTES, MAX_QUEUED_NOTES } from '../../foundation/domain/notes.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { MAX_MOVED_SEEN, type NotesPart } from '../../foundation/moving/agent-document.ts';
import { aidAt, base64At, checkDistinct, hexBytes } from '../../foundation/moving/document-fields.ts';
import type { NewQueuedNote, NoteOutboxStore } from '../../foundation/store/note-outbox.ts';
import type { NewNote, NoteStore } from '../../foundation/store/notes.ts';
import { SEEN_MS } from './inbox.ts';
import { messageId } from './letter.ts';
import { QUEUED_LIFE_MS } from './note-outbox.ts';
import type { Notes } from './notes.ts';

interface NotesMovingDependencies extends Pick<Notes, 'exportSecrets' | 'importSecrets'> {
  readonly store: NoteStore;
  readonly outbox: NoteOutboxStore;
}

export function exportNotes(deps: NotesMovingDependencies, aid: Aid): NotesPart {
  const { store, outbox } = deps;
  const queued = outbox.page(aid, 0, MAX_QUEUED_NOTES).map((note) => ({
    recipient: note.recipient,
    msg_type: note.msgType,
    body_base64: toBase64(note.body),
    nonce_hex: toHex(note.nonce),
    sent_at: note.sentAt,
  }));
  return {
    ...(queued.length === 0 ? {} : { queued }),
    keys: deps.exportSecrets(aid).map((key) => ({ private_key_hex: key.privateKeyHex, created_at: key.createdAt })),
    waiting: store.all(aid).map((note) => ({
      message_id: toHex(note.messageId),
      sender: note.sender,
      msg_type: note.msgType,
      body_base64: toBase64(note.body),
      sent_at: note.sentAt,
      received_at: note.receivedAt,
      digest_hex: toHex(note.digest),
      token_hex: toHex(note.token),
    })),
    seen: store.seenOf(aid, MAX_MOVED_SEEN).map(({ messageId, until }) => ({ id: toHex(messageId), until })),
  };
}

/**
 * Checks a mailbox from elsewhere.
 * @param now Unix milliseconds
 * @returns what keeps it
 * @throws SvcError `bad_file`
 */
export function importNotes(deps: NotesMovingDependencies, aid: Aid, part: NotesPart, now: number): () => void {
  const notes = part.waiting.map((one, i): NewNote => {
    const path = `/notes/waiting/${i}`;
    return {
      aid,
      messageId: hexBytes(one.message_id),
      sender: aidAt(`${path}/sender`, one.sender),
      msgType: one.msg_type,
      body: base64At(`${path}/body_base64`, one.body_base64, MAX_NOTE_BODY_BYTES),
      sentAt: one.sent_at,
      receivedAt: one.received_at,
      digest: hexBytes(one.digest_hex),
      token: hexBytes(one.token_hex),
    };
  });
  const queued = (part.queued ?? []).map((one, i): NewQueuedNote => {
    const path = `/notes/queued/${i}`;
    const recipient = aidAt(`${path}/recipient`, one.recipient);
    const body = base64At(`${path}/body_base64`, one.body_base64, MAX_NOTE_BODY_BYTES);
    const sentAt = Math.min(one.sent_at, now);
    const letter = { recipient, msgType: one.msg_type, body, nonce: hexBytes(one.nonce_hex), sentAt };
    const id = messageId({ ...letter, sender: aid });
    return { ...letter, aid, messageId: id, until: sentAt + QUEUED_LIFE_MS, dueAt: now, attempts: 0 };
  });
  const ids = part.waiting.map((one) => one.message_id);
  checkDistinct('/notes/waiting', ids);
  const latest = now + SEEN_MS;
  const seen = new Map(part.seen.map(({ id, until }) => [id, Math.min(until, latest)]));
  const keys = part.keys.map((key) => ({ privateKeyHex: key.private_key_hex, createdAt: key.created_at }));
  return () => {
    deps.importSecrets(aid, keys);
    for (const note of notes) deps.store.add(note, seen.get(toHex(note.messageId)) ?? latest);
    for (const note of queued) deps.outbox.add(note);
    for (const [id, until] of seen) deps.store.markSeen(aid, hexBytes(id), until);
  };
}

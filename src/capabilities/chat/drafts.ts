/** Checks the content of a new message and registers its file. */
import { basename } from 'node:path';
import { MAX_TEXT_BYTES } from '../../foundation/domain/chat.ts';
import { isSha256 } from '../../foundation/domain/hashes.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { ChatContent, ChatFile } from '../../foundation/store/chat-log.ts';
import type { ChatObjects, MessageDraft } from './types.ts';
import { isFileName } from './wire.ts';

type DraftContent = Pick<ChatContent, 'text' | 'file'>;

function invalid(message: string, path: string): SvcError {
  return new SvcError('invalid_request', { message, details: { in: 'body', path } });
}

/**
 * Converts a draft to the content of an entry.
 * @throws SvcError `invalid_request`, `too_large`, `not_found` if the agent has no such object, and the errors of
 *   registering a file
 */
export async function draftContent(objects: ChatObjects, aid: Aid, draft: MessageDraft): Promise<DraftContent> {
  const { path, objectId } = draft;
  if (path !== undefined && objectId !== undefined) throw invalid('Give path or object_id, not both.', '/object_id');
  checkText(draft.text ?? '');
  const text = draft.text === '' ? null : (draft.text ?? null);
  if (path !== undefined) return { text, file: named(await objects.put(aid, path), path) };
  if (objectId === undefined) {
    if (text === null) throw invalid('The message is empty. Give text, path or object_id.', '/text');
    return { text, file: null };
  }
  if (!isSha256(objectId)) throw invalid('object_id must be a SHA-256 in lower-case hex.', '/object_id');
  const known = await objects.has(aid, objectId);
  if (known === null) throw new SvcError('not_found', { thing: 'object', message: 'This agent has no such object.' });
  return { text, file: named({ objectId, ...known }, objectId) };
}

function checkText(text: string): void {
  const size = Buffer.byteLength(text);
  if (size > MAX_TEXT_BYTES)
    throw new SvcError('too_large', {
      message: `The text has ${size} bytes. The limit is ${MAX_TEXT_BYTES}.`,
      details: { size, limit: MAX_TEXT_BYTES },
    });
  if (!text.isWellFormed()) throw invalid('The text is not well-formed Unicode.', '/text');
}

/** Returns the file with a name that the peer accepts. Invalid characters are replaced. */
function named(file: ChatFile, otherwise: string): ChatFile {
  const name = file.name.toWellFormed();
  if (name !== '' && isFileName(name)) return { ...file, name };
  const plain = basename(otherwise)
    .toWellFormed()
    .replaceAll(/[/\\\p{Cc}]/gu, '_');
  return { ...file, name: isFileName(plain) && plain !== '' ? plain : file.objectId };
}

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  decodeNotePayload,
  encodeNotePayload,
  noteHeader,
  removalHash,
} from '../../../src/foundation/records/notes.ts';

const PARTS = {
  mailbox: new Uint8Array(32).fill(1),
  removalHash: new Uint8Array(16).fill(2),
  keyId: new Uint8Array(8).fill(3),
  encapsulated: new Uint8Array(32).fill(4),
  // A tag of 16 bytes after at least one byte.
  ciphertext: new Uint8Array(17).fill(5),
};

test('a note shows its mailbox, version, commitment and key, then its sealed part', () => {
  const bytes = encodeNotePayload(PARTS);
  const hex = (byte: string, count: number) => byte.repeat(count);
  const header = `${hex('01', 32)}01${hex('02', 16)}${hex('03', 8)}`;
  assert.equal(Buffer.from(noteHeader(PARTS)).toString('hex'), header);
  assert.equal(Buffer.from(bytes).toString('hex'), `${header}${hex('04', 32)}${hex('05', 17)}`);
  assert.deepEqual(decodeNotePayload(Uint8Array.from(bytes)), PARTS);
});

test('a note that is too short, or of another version, is none', () => {
  const bytes = Uint8Array.from(encodeNotePayload(PARTS));
  assert.equal(decodeNotePayload(bytes.subarray(0, -1)), null);
  assert.equal(decodeNotePayload(new Uint8Array()), null);
  assert.equal(decodeNotePayload(bytes.with(32, 2)), null);
});

test('the commitment to a token is the first half of its digest under a prefix', () => {
  const digest = createHash('sha256')
    .update('svcd/note-removal/v1\0')
    .update(new Uint8Array([7]))
    .digest('hex');
  assert.equal(Buffer.from(removalHash(new Uint8Array([7]))).toString('hex'), digest.slice(0, 32));
});

/**
 * Seals letters to a recipient's encryption key with HPKE (RFC 9180, base mode): what a storing
 * node sees is the mailbox key and noise. Format: docs/protocol-notes.md, step 4.
 */
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, aidToBytes } from '../../foundation/identity/aid.ts';
import { type BoxKey, BoxOpener, type SealingKey, sealTo } from '../../foundation/keys/sealed-box.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { encodeNotePayload, type NotePayload, noteHeader, removalHash } from '../../foundation/records/notes.ts';
import { encryptionKeyId } from '../../foundation/records/payloads.ts';
import { LENGTH_BYTES } from '../../network/links/wire.ts';

const INFO_DOMAIN = new TextEncoder().encode('svcd/note-seal/v1\0');
/** A letter is padded to a multiple of this, so that its length says little. */
const PADDING_BYTES = 256;
function infoOf(recipient: Aid): Uint8Array {
  return Buffer.concat([INFO_DOMAIN, aidToBytes(recipient)]);
}

/** The letter with its length before it and zeros behind it. */
function pad(letter: Uint8Array): Uint8Array {
  const whole = Math.ceil((LENGTH_BYTES + letter.length) / PADDING_BYTES) * PADDING_BYTES;
  const padded = Buffer.alloc(whole);
  padded.writeUInt32BE(letter.length);
  padded.set(letter, LENGTH_BYTES);
  return padded;
}

function unpad(padded: Uint8Array): Uint8Array {
  const view = Buffer.from(padded.buffer, padded.byteOffset, padded.byteLength);
  const length = view.length < LENGTH_BYTES ? view.length : view.readUInt32BE(0);
  if (length > view.length - LENGTH_BYTES) throw malformed();
  return Uint8Array.from(view.subarray(LENGTH_BYTES, LENGTH_BYTES + length));
}

function malformed(cause?: unknown): SvcError {
  return new SvcError('bad_record', { message: 'The sealed note is malformed.', cause });
}

/**
 * Seals a letter; returns the payload of a note record.
 * @param once a key that no other box has; left out: a new one
 * @throws SvcError `bad_record` where the recipient's key is no usable one
 */
export function sealLetter(
  letter: Uint8Array,
  nonce: Uint8Array,
  recipient: Aid,
  sealedTo: Uint8Array,
  once?: BoxKey,
): Uint8Array {
  const shown = {
    mailbox: mailboxKey(recipient),
    removalHash: removalHash(nonce),
    keyId: encryptionKeyId(sealedTo),
  };
  try {
    const context = { info: infoOf(recipient), aad: noteHeader(shown) };
    return encodeNotePayload({ ...shown, ...sealTo(sealedTo, pad(letter), context, once) });
  } catch (error) {
    throw new SvcError('bad_record', { message: "The recipient's encryption key cannot be used.", cause: error });
  }
}

/** Opens notes with one key. */
export class NoteOpener {
  readonly #box: BoxOpener;

  constructor(key: SealingKey) {
    this.#box = new BoxOpener(key);
  }

  get publicKey(): Uint8Array {
    return this.#box.publicKey;
  }

  /**
   * The letter in a note.
   * @throws SvcError `bad_record` where it was not sealed to this key for this recipient, or was changed
   */
  open(note: NotePayload, recipient: Aid): Uint8Array {
    let padded: Uint8Array;
    try {
      padded = this.#box.open(note, { info: infoOf(recipient), aad: noteHeader(note) });
    } catch (error) {
      throw malformed(error);
    }
    return unpad(padded);
  }
}

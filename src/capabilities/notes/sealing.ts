/**
 * Seals letters to a recipient's encryption key with HPKE (RFC 9180, base mode): what a storing
 * node sees is the mailbox key and noise. Format: docs/protocol-messages.md, "Sealed notes".
 */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256, type KeyPair } from 'hpke';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, aidToBytes } from '../../foundation/identity/aid.ts';
import { encryptionKeyId } from '../../foundation/records/encryption-keys.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { encodeNotePayload, type NotePayload, noteHeader, removalHash } from '../../foundation/records/notes.ts';
import { LENGTH_BYTES } from '../../network/links/wire.ts';

const INFO_DOMAIN = new TextEncoder().encode('svcd/note-seal/v1\0');
/** A letter is padded to a multiple of this, so that its length says little. */
const PADDING_BYTES = 256;
/** DER headers of RFC 8410, as in identity/keys.ts. */
const PKCS8_HEADER = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI_HEADER_BYTES = 12;

const suite = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM);

/** A key pair that opens notes. */
export interface NoteKey {
  readonly privateKey: Uint8Array;
  readonly publicKey: Uint8Array;
}

/** The key pair of an X25519 private key. */
export function noteKeyOf(privateKey: Uint8Array): NoteKey {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEADER, privateKey]), format: 'der', type: 'pkcs8' });
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return { privateKey, publicKey: new Uint8Array(spki.subarray(SPKI_HEADER_BYTES)) };
}

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
 * @throws SvcError `bad_record` where the recipient's key is no usable one
 */
export async function sealLetter(
  letter: Uint8Array,
  nonce: Uint8Array,
  recipient: Aid,
  sealedTo: Uint8Array,
): Promise<Uint8Array> {
  const shown = {
    mailbox: mailboxKey(recipient),
    removalHash: removalHash(nonce),
    keyId: encryptionKeyId(sealedTo),
  };
  try {
    const key = await suite.DeserializePublicKey(sealedTo);
    const options = { info: infoOf(recipient), aad: noteHeader(shown) };
    const { encapsulatedSecret: encapsulated, ciphertext } = await suite.Seal(key, pad(letter), options);
    return encodeNotePayload({ ...shown, encapsulated, ciphertext });
  } catch (error) {
    throw new SvcError('bad_record', { message: "The recipient's encryption key cannot be used.", cause: error });
  }
}

/** Opens notes with one key, which is read once. */
export class NoteOpener {
  readonly publicKey: Uint8Array;
  readonly #key: NoteKey;
  #pair: Promise<KeyPair<CryptoKey>> | null = null;

  constructor(key: NoteKey) {
    this.publicKey = key.publicKey;
    this.#key = key;
  }

  /**
   * The letter in a note.
   * @throws SvcError `bad_record` where it was not sealed to this key for this recipient, or was changed
   */
  async open(note: NotePayload, recipient: Aid): Promise<Uint8Array> {
    let padded: Uint8Array;
    try {
      const pair = await (this.#pair ??= importPair(this.#key));
      const options = { info: infoOf(recipient), aad: noteHeader(note) };
      padded = await suite.Open(pair, note.encapsulated, note.ciphertext, options);
    } catch (error) {
      throw malformed(error);
    }
    return unpad(padded);
  }
}

async function importPair({ privateKey, publicKey }: NoteKey): Promise<KeyPair<CryptoKey>> {
  const [secret, open] = await Promise.all([
    suite.DeserializePrivateKey(privateKey),
    suite.DeserializePublicKey(publicKey),
  ]);
  return { privateKey: secret, publicKey: open };
}

/**
 * Letters: the content of a note, signed by its sender for one recipient and one key, so that the recipient cannot
 * forward it as a note to others. A letter is sealed to the recipient's key with HPKE (RFC 9180, base mode): a storage
 * node sees only the mailbox key. Format: docs/protocol-notes.md, steps 3 and 4.
 */
import { createHash } from 'node:crypto';
import { asMap, decodeCbor, encodeCbor, isBytes, isUint } from '../../foundation/cbor.ts';
import { TurnBudget } from '../../foundation/concurrency.ts';
import { MAX_NOTE_BODY_BYTES, MAX_NOTE_TYPE } from '../../foundation/domain/notes.ts';
import { MAX_UNIX_MS } from '../../foundation/domain/time.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, aidToBytes } from '../../foundation/identity/aid.ts';
import { type Delegation, decodeDelegation, encodeDelegation } from '../../foundation/identity/delegation.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import { SIGNATURE_BYTES } from '../../foundation/identity/ed25519.ts';
import { MAX_VERIFICATIONS_PER_TURN, VerifierKeys } from '../../foundation/identity/keys.ts';
import { type BoxKey, BoxOpener, type SealingKey, sealTo } from '../../foundation/keys/sealed-box.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { encodeNotePayload, type NotePayload, noteHeader, removalHash } from '../../foundation/records/notes.ts';
import { encryptionKeyId } from '../../foundation/records/payloads.ts';
import { MAX_NOTE_PAYLOAD_BYTES, REMOVAL_TOKEN_BYTES } from '../../foundation/records/types.ts';
import { LENGTH_BYTES } from '../../network/peers/wire.ts';

const VERSION = 1;
const DOMAIN = new TextEncoder().encode('svcd/note/v1\0');
const ID_DOMAIN = 'svcd/note-id/v1\0';

/** The content of a letter. */
export interface LetterContent {
  readonly sender: Aid;
  readonly recipient: Aid;
  /** Unix milliseconds. */
  readonly sentAt: number;
  readonly msgType: number;
  readonly body: Uint8Array;
  /** Random bytes. They make the ID unique, and they are the token that removes the note. */
  readonly nonce: Uint8Array;
}

/** A decoded letter. Its signature is not verified yet. */
export interface Letter extends LetterContent {
  readonly delegation: Delegation;
  readonly signature: Uint8Array;
}

/** The signer of a letter. */
export interface LetterWriter {
  readonly delegation: Delegation;
  sign(message: Uint8Array): Uint8Array;
}

/** 32 bytes, the same for every copy of a letter, also if it is sealed to another key. */
export function messageId(letter: LetterContent): Uint8Array {
  const { sender, recipient, sentAt, msgType, body, nonce } = letter;
  const content = { f: aidToBytes(sender), r: aidToBytes(recipient), t: sentAt, y: msgType, b: body, n: nonce };
  return new Uint8Array(createHash('sha256').update(ID_DOMAIN).update(encodeCbor(content)).digest());
}

/** The encoded members, without the signature. */
function bodyOf(letter: LetterContent, delegation: Delegation) {
  const { sentAt, msgType, body, nonce } = letter;
  return { v: VERSION, d: encodeDelegation(delegation), t: sentAt, y: msgType, b: body, n: nonce };
}

/** @param sealedTo the recipient's X25519 key */
function signingInput(letter: LetterContent, delegation: Delegation, sealedTo: Uint8Array): Uint8Array {
  const bound = { ...bodyOf(letter, delegation), r: aidToBytes(letter.recipient), k: sealedTo };
  return Buffer.concat([DOMAIN, encodeCbor(bound)]);
}

/**
 * Signs a letter. Its sender is the writer's agent.
 * @param sealedTo the recipient's X25519 key that it will be sealed to
 */
export function encodeLetter(letter: LetterContent, writer: LetterWriter, sealedTo: Uint8Array): Uint8Array {
  const signature = writer.sign(signingInput(letter, writer.delegation, sealedTo));
  return encodeCbor({ ...bodyOf(letter, writer.delegation), g: signature });
}

function refused(reason: string): SvcError {
  return new SvcError('bad_record', { message: `The note is invalid: ${reason}.`, details: { reason } });
}

/**
 * Reads a letter that was sealed to `recipient`.
 * @throws SvcError `bad_record`, `bad_delegation`
 */
export function decodeLetter(bytes: Uint8Array, recipient: Aid): Letter {
  let decoded: unknown;
  try {
    decoded = decodeCbor(bytes, MAX_NOTE_PAYLOAD_BYTES);
  } catch (error) {
    throw new SvcError('bad_record', { message: 'The note is malformed.', cause: error });
  }
  const map = asMap(decoded, ['v', 'd', 't', 'y', 'b', 'n', 'g']);
  if (map === null || map['v'] !== VERSION) throw refused('its format is unknown');
  const { d: proof, t: sentAt, y: msgType, b: body, n: nonce, g: signature } = map;
  if (!isBytes(proof) || !isBytes(body) || !isBytes(nonce, REMOVAL_TOKEN_BYTES) || !isBytes(signature, SIGNATURE_BYTES))
    throw refused('a member is malformed');
  if (!isUint(sentAt, MAX_UNIX_MS) || !isUint(msgType, MAX_NOTE_TYPE)) throw refused('a member is malformed');
  if (body.length > MAX_NOTE_BODY_BYTES) throw refused('its body is too long');
  const delegation = decodeDelegation(proof);
  return { sender: delegation.agent, recipient, sentAt, msgType, body, nonce, delegation, signature };
}

/** Verifies the senders of letters. */
export class LetterVerifier {
  readonly #delegations: DelegationVerifier;
  readonly #keys = new VerifierKeys();
  readonly #here = new TurnBudget(MAX_VERIFICATIONS_PER_TURN);

  constructor({ delegations }: { readonly delegations: DelegationVerifier }) {
    this.#delegations = delegations;
  }

  /**
   * Verifies that the proof in a letter was in force when it was sent or when it was signed, which is later if the
   * sender's key was replaced while the letter was queued, and that its signature is for this recipient and this key.
   * Uses other threads if many letters arrive at the same time.
   * @throws SvcError `bad_record`, `bad_delegation`
   */
  async verify(letter: Letter, sealedTo: Uint8Array): Promise<void> {
    const { delegation, signature } = letter;
    const inForceAt = Math.max(Math.floor(letter.sentAt / 1000), delegation.issuedAt);
    const isHere = this.#delegations.isFastToVerify(delegation) && this.#here.take();
    if (isHere) this.#delegations.verify(delegation, inForceAt);
    else await this.#delegations.verifyAsync(delegation, inForceAt);
    const signed = signingInput(letter, delegation, sealedTo);
    const verify = isHere ? this.#keys.verifySync.bind(this.#keys) : this.#keys.verify.bind(this.#keys);
    if (!(await verify(delegation.operationalKey, signed, signature)))
      throw refused('the signature is not valid for its sender and this recipient');
  }
}

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
 * @param once the ephemeral key; a new one by default
 * @throws SvcError `bad_record` if the recipient's key is invalid
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
   * @throws SvcError `bad_record` if it was not sealed to this key for this recipient, or was changed
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

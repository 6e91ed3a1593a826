/**
 * What stands inside a sealed note: the sender with its proof, the body, and the sender's signature
 * over all of it, the recipient and the key that it is sealed to included, so that nobody can hand
 * it on as if it had been written to another one. Format: docs/protocol-notes.md, step 3.
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
import { MAX_NOTE_PAYLOAD_BYTES, REMOVAL_TOKEN_BYTES } from '../../foundation/records/types.ts';

const VERSION = 1;
const DOMAIN = new TextEncoder().encode('svcd/note/v1\0');
const ID_DOMAIN = 'svcd/note-id/v1\0';

/** What a letter says. */
export interface LetterContent {
  readonly sender: Aid;
  readonly recipient: Aid;
  /** Unix milliseconds. */
  readonly sentAt: number;
  readonly msgType: number;
  readonly body: Uint8Array;
  /** Bytes that no other letter has: they make its id unique, and remove its note. */
  readonly nonce: Uint8Array;
}

/** A letter as it is read: who signed it is still to be verified. */
export interface Letter extends LetterContent {
  readonly delegation: Delegation;
  readonly signature: Uint8Array;
}

/** Who signs a letter. */
export interface LetterWriter {
  readonly delegation: Delegation;
  sign(message: Uint8Array): Uint8Array;
}

/** The same for every copy of a letter, whatever it is sealed to: 32 bytes. */
export function messageId(letter: LetterContent): Uint8Array {
  const { sender, recipient, sentAt, msgType, body, nonce } = letter;
  const content = { f: aidToBytes(sender), r: aidToBytes(recipient), t: sentAt, y: msgType, b: body, n: nonce };
  return new Uint8Array(createHash('sha256').update(ID_DOMAIN).update(encodeCbor(content)).digest());
}

/** What travels, without the signature. */
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
  return new SvcError('bad_record', { message: `The note is refused: ${reason}.`, details: { reason } });
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

/** Verifies who wrote letters. */
export class LetterVerifier {
  readonly #delegations: DelegationVerifier;
  /** Who writes once mostly writes again. */
  readonly #keys = new VerifierKeys();
  readonly #here = new TurnBudget(MAX_VERIFICATIONS_PER_TURN);

  constructor({ delegations }: { readonly delegations: DelegationVerifier }) {
    this.#delegations = delegations;
  }

  /**
   * Verifies that the proof in a letter was in force when it was sent, and that its signature is for this recipient and
   * this key: on other threads where more than a few letters come together.
   * @throws SvcError `bad_record`, `bad_delegation`
   */
  async verify(letter: Letter, sealedTo: Uint8Array): Promise<void> {
    const { delegation, signature } = letter;
    const sentAt = Math.floor(letter.sentAt / 1000);
    const isHere = this.#delegations.isFastToVerify(delegation) && this.#here.take();
    if (isHere) this.#delegations.verify(delegation, sentAt);
    else await this.#delegations.verifyAsync(delegation, sentAt);
    const signed = signingInput(letter, delegation, sealedTo);
    const verify = isHere ? this.#keys.verifySync.bind(this.#keys) : this.#keys.verify.bind(this.#keys);
    if (!(await verify(delegation.operationalKey, signed, signature)))
      throw refused("the signature is not its sender's for this recipient");
  }
}

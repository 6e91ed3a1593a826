/**
 * What two nodes tell each other over the record network where no helper introduces them: the one that calls knocks, and
 * the other one says where it comes to. Each message is a note record, sealed to a key that was made for it, and signed
 * by an identity that was made for it: who keeps it learns nothing but the meeting place.
 */
import { randomBytes } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { type Address, formatAddress, parseAddress } from '../../foundation/address.ts';
import { asMap, type CborValue, decodeCbor, encodeCbor, isBytes } from '../../foundation/cbor.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { CLOCK_SKEW_S } from '../../foundation/domain/time.ts';
import { selfDelegation } from '../../foundation/identity/delegation.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { KeyPair } from '../../foundation/identity/keys.ts';
import { type BoxOpener, sealTo } from '../../foundation/keys/sealed-box.ts';
import { encryptionKeyId, X25519_PUBLIC_KEY_BYTES } from '../../foundation/records/encryption-keys.ts';
import { turnRendezvousKey } from '../../foundation/records/keys.ts';
import { decodeNotePayload, encodeNotePayload, noteHeader, removalHash } from '../../foundation/records/notes.ts';
import { type SignedRecord, signRecord } from '../../foundation/records/record.ts';
import { RECORD, REMOVAL_TOKEN_BYTES } from '../../foundation/records/types.ts';
import { ATTEMPT_BYTES } from './signals.ts';

/** Life of a message, seconds: longer than any attempt, by whatever clock. */
export const KNOCK_TTL_S: number = CLOCK_SKEW_S + 60;
/** Largest message before it is sealed, bytes. */
export const MAX_KNOCK_BYTES = 256;
/** The version of these messages. */
const KNOCK_VERSION = 1;
const INFO = new TextEncoder().encode('svcd/knock/v1\0');

/** What the caller says. */
export interface Knock {
  /** Its node's public key: nobody else is let in at the place of meeting. */
  readonly caller: Uint8Array;
  readonly attempt: Uint8Array;
  /** The X25519 key that the answer is sealed to, and found by. */
  readonly answerTo: Uint8Array;
  /** The IPv4 address that its packets come from. */
  readonly host: string;
  /** Its address at a TURN server; null where it has none. */
  readonly listensAt: Address | null;
}

/** What the called node says: its own address at a TURN server. */
export interface KnockAnswer {
  readonly attempt: Uint8Array;
  readonly listensAt: Address;
}

function text(address: Address | null): string | undefined {
  return address === null ? undefined : formatAddress(address);
}

/** An IPv4 address in its one spelling and a port above 0; undefined for anything else. */
function addressOf(value: unknown): Address | undefined {
  const address = typeof value === 'string' ? parseAddress(value) : null;
  if (address === null || address.port === 0 || !isIPv4(address.host)) return undefined;
  return formatAddress(address) === value ? address : undefined;
}

function decode(bytes: Uint8Array, required: readonly string[], optional: readonly string[] = []) {
  try {
    const map = asMap(decodeCbor(bytes, MAX_KNOCK_BYTES), ['v', ...required], optional);
    return map?.['v'] === KNOCK_VERSION ? map : null;
  } catch {
    return null;
  }
}

function encode(fields: Readonly<Record<string, CborValue | undefined>>): Uint8Array {
  return encodeCbor({ ...fields, v: KNOCK_VERSION });
}

export function encodeKnock({ caller, attempt, answerTo, host, listensAt }: Knock): Uint8Array {
  return encode({ c: caller, h: host, k: answerTo, l: text(listensAt), s: attempt });
}

/** Null where the bytes are none. */
export function decodeKnock(bytes: Uint8Array): Knock | null {
  const map = decode(bytes, ['c', 'h', 'k', 's'], ['l']);
  const { c: caller, h: host, k: answerTo, l: at, s: attempt } = map ?? {};
  const listensAt = at === undefined ? null : addressOf(at);
  if (!isBytes(caller, PUBLIC_KEY_BYTES) || !isBytes(answerTo, X25519_PUBLIC_KEY_BYTES)) return null;
  if (!isBytes(attempt, ATTEMPT_BYTES) || typeof host !== 'string' || !isIPv4(host)) return null;
  return listensAt === undefined ? null : { caller, attempt, answerTo, host, listensAt };
}

export function encodeKnockAnswer({ attempt, listensAt }: KnockAnswer): Uint8Array {
  return encode({ l: text(listensAt), s: attempt });
}

/** Null where the bytes are none. */
export function decodeKnockAnswer(bytes: Uint8Array): KnockAnswer | null {
  const map = decode(bytes, ['l', 's']);
  const listensAt = addressOf(map?.['l']);
  const attempt = map?.['s'];
  return listensAt === undefined || !isBytes(attempt, ATTEMPT_BYTES) ? null : { attempt, listensAt };
}

/** The record of a message; it belongs under `turnRendezvousKey(to)`. Throws where the key is no usable one. */
export function sealKnock(message: Uint8Array, to: Uint8Array, clock: Clock): SignedRecord {
  const shown = {
    mailbox: turnRendezvousKey(to),
    // It goes by itself, soon.
    removalHash: removalHash(randomBytes(REMOVAL_TOKEN_BYTES)),
    keyId: encryptionKeyId(to),
  };
  const box = sealTo(to, message, { info: INFO, aad: noteHeader(shown) });
  const payload = encodeNotePayload({ ...shown, ...box });
  const once = KeyPair.generate();
  const delegation = selfDelegation(once);
  const timestamp = unixSeconds(clock);
  const content = {
    aid: delegation.agent,
    type: RECORD.note,
    seq: 1,
    timestamp,
    ttl: KNOCK_TTL_S,
    payload,
    delegation,
  };
  return signRecord(content, once);
}

/** The message in a record; null where it holds none for this key. */
export function openKnock({ payload }: SignedRecord, opener: BoxOpener): Uint8Array | null {
  const note = decodeNotePayload(payload);
  if (note === null) return null;
  try {
    return opener.open(note, { info: INFO, aad: noteHeader(note) });
  } catch {
    return null;
  }
}

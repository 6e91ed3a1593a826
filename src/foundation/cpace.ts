/**
 * CPace, a password-authenticated key exchange, with ristretto255 and SHA-512 (draft-irtf-cfrg-cpace). Two parties that
 * know the same password get the same keys. A party that does not know it learns nothing, except whether its one guess
 * was right: neither it nor a listener can try passwords offline.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { ristretto255, ristretto255_hasher } from '@noble/curves/ed25519.js';

const { Point } = ristretto255;

/** Length of a session ID, bytes. */
export const SESSION_BYTES = 16;
/** Length of a share, an encoded element of the group, bytes. */
export const SHARE_BYTES = 32;
/** Length of the input of a scalar, bytes. */
const SCALAR_BYTES = 64;
/** Block size of SHA-512, bytes. */
const HASH_BLOCK_BYTES = 128;
/** Longest value that `prepended` encodes, bytes: its length is one byte. */
const MAX_PREPENDED_BYTES = 127;

const GROUP = Buffer.from('CPaceRistretto255');
const KEY_LABEL = Buffer.from('CPaceRistretto255_ISK');
const MAC_LABEL = Buffer.from('CPaceMac');

/** What both parties know before the exchange. */
export interface Exchange {
  /** The password, at most 127 bytes. */
  readonly password: Uint8Array;
  /** Names the protocol and the roles of the parties, at most 127 bytes. */
  readonly channel: Uint8Array;
  /** A random number for this exchange, chosen by the initiator. */
  readonly session: Uint8Array;
}

/** A share and its secret scalar. */
export interface Share {
  readonly share: Uint8Array;
  readonly scalar: bigint;
}

/** The confirmations that each party sends after it knows both shares. */
export interface Confirmations {
  readonly ofInitiator: Uint8Array;
  readonly ofResponder: Uint8Array;
}

function sha512(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('sha512');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** A value after its length (`prepend_len` of the draft). @throws RangeError if it is too long */
function prepended(value: Uint8Array): Buffer {
  if (value.length > MAX_PREPENDED_BYTES) throw new RangeError('the value is too long');
  return Buffer.concat([Buffer.of(value.length), value]);
}

/** Values after their lengths (`lv_cat` of the draft). */
function joined(...values: readonly Uint8Array[]): Buffer {
  return Buffer.concat(values.map(prepended));
}

/** The generator that the password determines (`calculate_generator`). */
function generator({ password, channel, session }: Exchange): InstanceType<typeof Point> {
  const padding = Math.max(0, HASH_BLOCK_BYTES - 1 - prepended(password).length - prepended(GROUP).length);
  const point = ristretto255_hasher.deriveToCurve?.(
    sha512(joined(GROUP, password, Buffer.alloc(padding), channel, session)),
  );
  if (point === undefined) throw new TypeError('the library has no map to ristretto255');
  return point;
}

/**
 * The share of a party.
 * @param random 64 random bytes; the same bytes give the same share
 */
export function shareOf(exchange: Exchange, random: Uint8Array = randomBytes(SCALAR_BYTES)): Share {
  const scalar = Point.Fn.create(BigInt(`0x${sha512(random).toString('hex')}`));
  return withScalar(exchange, scalar);
}

/** The share of a known scalar. */
export function withScalar(exchange: Exchange, scalar: bigint): Share {
  return { share: generator(exchange).multiply(scalar).toBytes(), scalar };
}

/**
 * The key that both parties derive from the shares.
 * @param own the share of this party
 * @param shares of the initiator and of the responder, each with the data that this party authenticates
 * @param other the share of the other party
 * @returns null if the other share is invalid
 */
export function sharedKey(
  { session }: Exchange,
  { scalar }: Share,
  other: Uint8Array,
  [initiator, responder]: readonly [Uint8Array, Uint8Array],
  [initiatorData, responderData]: readonly [Uint8Array, Uint8Array] = [Buffer.alloc(0), Buffer.alloc(0)],
): Uint8Array | null {
  const point = pointOf(other);
  if (point === null) return null;
  const secret = point.multiply(scalar).toBytes();
  const transcript = Buffer.concat([joined(initiator, initiatorData), joined(responder, responderData)]);
  return sha512(joined(KEY_LABEL, session, secret), transcript);
}

/** The confirmations of a key: only a party that knows the password can compute them. */
export function confirmations(
  { session }: Exchange,
  key: Uint8Array,
  [initiator, responder]: readonly [Uint8Array, Uint8Array],
): Confirmations {
  const macKey = sha512(MAC_LABEL, session, key);
  const mac = (share: Uint8Array): Buffer =>
    createHmac('sha512', macKey)
      .update(joined(share, Buffer.alloc(0)))
      .digest();
  return { ofInitiator: mac(initiator), ofResponder: mac(responder) };
}

function pointOf(bytes: Uint8Array): InstanceType<typeof Point> | null {
  try {
    const point = Point.fromBytes(bytes);
    return point.is0() ? null : point;
  } catch {
    return null;
  }
}

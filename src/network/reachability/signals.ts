/**
 * Messages between nodes and their helpers that connect two nodes. They are requests over existing QUIC connections, in
 * deterministic CBOR. Decoders process untrusted input and return null for invalid messages.
 */

import { type Address, formatAddress, parseAddress } from '../../foundation/address.ts';
import {
  bytes,
  CborMap,
  converted,
  flag,
  fromBytes,
  type Kind,
  list,
  nullable,
  orElse,
  text,
  toBytes,
  uint,
  type ValueOf,
  where,
  word,
} from '../../foundation/cbor-map.ts';
import { NAT_MAPPINGS } from '../../foundation/domain/directory.ts';
import { MAX_PORT } from '../../foundation/domain/tunnels.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import { isPublicIpv6 } from './interface-addresses.ts';
import { RELAY_TOKEN_BYTES } from './relay.ts';

/** Largest message, bytes. */
export const MAX_SIGNAL_BYTES = 512;
/** TCP ports in a hello answer. */
export const MAX_TLS_PORTS = 4;
/** The version of these messages. */
const SIGNAL_VERSION = 1;
/** Size of the ID that all messages of one attempt share, bytes. */
export const ATTEMPT_BYTES = 16;

/**
 * The means that the caller requests:
 * - `witness`: tell the called node where the helper sees the caller
 * - `punch`: a port of the called node that the caller can dial
 * - `listening`: dial a port of the caller
 * - `relay`: a relayed session at this helper
 * - `turn`: meet at an address of a TURN server, either the caller's or the called node's
 * - `ipv6`: as `punch`, over IPv6, for the public address that the caller dials from
 */
export const MEANS = ['witness', 'punch', 'listening', 'relay', 'turn', 'ipv6'] as const;
export type Means = (typeof MEANS)[number];

/**
 * Actions of the called node:
 * - `noted`: nothing yet
 * - `ready`: it listens at an address, or at the relay
 * - `dialling`: it dials the caller
 * - `listen`: its external port varies, so the caller must listen
 * - `relay`: only a relay can connect the nodes
 * - `refused`: it declines, or the rate is exceeded
 */
export const OUTCOMES = ['noted', 'ready', 'dialling', 'listen', 'relay', 'refused'] as const;
export type CalledOutcome = (typeof OUTCOMES)[number];

/** An IP address in canonical form with a port above 0. */
export const ADDRESS: Kind<Address> = converted(
  text(() => true),
  (value) => {
    const address = parseAddress(value);
    if (address === null || address.port === 0 || ipScope(address.host) === IP_SCOPE.none) return null;
    return formatAddress(address) === value ? address : null;
  },
  formatAddress,
);
const PORT = where(uint(MAX_PORT), (port) => port > 0);
/** Without duplicates, and omitted if empty. */
const PORTS = where(list(PORT, MAX_TLS_PORTS), (ports) => ports.length > 0 && new Set(ports).size === ports.length);
const VERSION = { version: SIGNAL_VERSION } as const;

/** `listening` and `ipv6` require an address, `turn` allows one, and the other means allow none. */
function hasValidAddress({ means, listensAt }: { readonly means: Means; readonly listensAt: Address | null }): boolean {
  if (means === 'ipv6') return listensAt !== null && isPublicIpv6(listensAt);
  return means === 'turn' || (means === 'listening') === (listensAt !== null);
}

/** The members of a request for an introduction, and of the introduction. */
const ATTEMPT = {
  attempt: ['s', bytes(ATTEMPT_BYTES)],
  means: ['m', word(MEANS)],
  /** The NAT mapping of the caller. */
  mapping: ['n', word(NAT_MAPPINGS)],
  /** The address that the caller listens on, or dials from over IPv6; null for neither. */
  listensAt: ['l', nullable(ADDRESS)],
  /** True if an earlier attempt with a low hop limit failed. */
  needsFullHops: ['f', flag],
} as const;
/** Asks the helper to introduce the requester to the node `to`. */
const INTRODUCE = new CborMap(
  { to: ['t', bytes(PUBLIC_KEY_BYTES)], ...ATTEMPT },
  { ...VERSION, isValid: hasValidAddress },
);
/** Asks the helper to dial a port of the requester, at the host where the helper sees it. */
const REACH = new CborMap({ port: ['q', PORT] }, VERSION);
const HELLO = new CborMap({}, VERSION);

/** A message from a helper to the called node. */
const INTRODUCED = {
  caller: ['c', bytes(PUBLIC_KEY_BYTES)],
  /** The caller's address as the helper sees it. */
  seenAt: ['a', ADDRESS],
  ...ATTEMPT,
} as const;
const DIRECT = new CborMap(INTRODUCED, {
  ...VERSION,
  isValid: (one) => one.means !== 'relay' && hasValidAddress(one),
});
/** The port of the helper where the called node meets the caller, and the token to send there. */
const RELAY = new CborMap({ port: ['p', PORT], token: ['k', bytes(RELAY_TOKEN_BYTES)] });
const RELAYED = new CborMap(
  { ...INTRODUCED, relay: [null, RELAY] },
  { ...VERSION, isValid: (one) => one.means === 'relay' && hasValidAddress(one) },
);

/** The answer of the called node. */
const ANSWER = {
  outcome: ['o', word(OUTCOMES)],
  mapping: ['n', word(NAT_MAPPINGS)],
  listensAt: ['l', nullable(ADDRESS)],
  /**
   * True if the called node opened random ports towards the caller's host, so that the caller must dial from all its
   * sockets.
   */
  isSprayed: ['r', flag],
} as const;
const INTRODUCTION_ANSWER = new CborMap(ANSWER, VERSION);

/** The answer of a helper. */
const REPLY = {
  /** The requester's address as the helper sees it. */
  seenAt: ['a', ADDRESS],
  /** Whether it relays now. */
  relays: ['b', flag],
  /** Whether the helper reached the requester at the requested port. */
  reached: ['d', flag],
  /** The port of this helper where the caller meets the called node; null for none. */
  relayPort: ['p', nullable(PORT)],
  /** TCP ports at which the helper lends UDP ports over TLS. Empty in answers to other requests. */
  tlsPorts: ['t', orElse(PORTS, [])],
} as const;
const PLAIN_REPLY = new CborMap(REPLY, VERSION);
/** With the answer of the called node, and its address as the helper sees it. */
const CALLED_REPLY = new CborMap(
  { ...REPLY, called: [null, new CborMap({ ...ANSWER, seenAt: ['c', ADDRESS] })] },
  VERSION,
);

/** A request to a helper. */
export type HelperRequest =
  | { readonly kind: 'hello' }
  | ({ readonly kind: 'reach' } & ValueOf<typeof REACH>)
  | ({ readonly kind: 'introduce' } & ValueOf<typeof INTRODUCE>);
export type Introduction = ValueOf<typeof DIRECT> & { readonly relay: ValueOf<typeof RELAY> | null };
export type IntroductionAnswer = ValueOf<typeof INTRODUCTION_ANSWER>;
/** `called` is null if the helper has no connection to the called node. */
export type HelperReply = ValueOf<typeof PLAIN_REPLY> & {
  readonly called: ValueOf<typeof CALLED_REPLY>['called'] | null;
};

function decode<T>(kind: Kind<T>, message: Uint8Array): T | null {
  return fromBytes(kind, message, MAX_SIGNAL_BYTES);
}

export function encodeHelperRequest(request: HelperRequest): Uint8Array {
  if (request.kind === 'hello') return toBytes(HELLO, {});
  return request.kind === 'reach' ? toBytes(REACH, request) : toBytes(INTRODUCE, request);
}

export function decodeHelperRequest(message: Uint8Array): HelperRequest | null {
  const introduce = decode(INTRODUCE, message);
  if (introduce !== null) return { kind: 'introduce', ...introduce };
  const reach = decode(REACH, message);
  if (reach !== null) return { kind: 'reach', ...reach };
  return decode(HELLO, message) === null ? null : { kind: 'hello' };
}

export function encodeIntroduction({ relay, ...introduction }: Introduction): Uint8Array {
  return relay === null ? toBytes(DIRECT, introduction) : toBytes(RELAYED, { ...introduction, relay });
}

export function decodeIntroduction(message: Uint8Array): Introduction | null {
  const direct = decode(DIRECT, message);
  return direct === null ? decode(RELAYED, message) : { ...direct, relay: null };
}

export function encodeIntroductionAnswer(answer: IntroductionAnswer): Uint8Array {
  return toBytes(INTRODUCTION_ANSWER, answer);
}

export function decodeIntroductionAnswer(message: Uint8Array): IntroductionAnswer | null {
  return decode(INTRODUCTION_ANSWER, message);
}

export function encodeHelperReply({ called, ...reply }: HelperReply): Uint8Array {
  return called === null ? toBytes(PLAIN_REPLY, reply) : toBytes(CALLED_REPLY, { ...reply, called });
}

export function decodeHelperReply(message: Uint8Array): HelperReply | null {
  const plain = decode(PLAIN_REPLY, message);
  return plain === null ? decode(CALLED_REPLY, message) : { ...plain, called: null };
}

/**
 * Messages between nodes and their helpers that connect two nodes. They are requests over existing QUIC connections, in
 * deterministic CBOR. Decoders process untrusted input and return null for invalid messages.
 */

import { type Address, formatAddress, parseAddress } from '../../foundation/address.ts';
import { asMap, type CborValue, decodeCbor, encodeCbor, isBytes, isUint } from '../../foundation/cbor.ts';
import { NAT_MAPPINGS, type NatMapping } from '../../foundation/domain/directory.ts';
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

/** A request to a helper. */
export type HelperRequest =
  | { readonly kind: 'hello' }
  /** Dial a port of the requester, at the host where the helper sees it. */
  | { readonly kind: 'reach'; readonly port: number }
  | {
      readonly kind: 'introduce';
      /** The called node. */
      readonly to: Uint8Array;
      readonly attempt: Uint8Array;
      readonly means: Means;
      /** The NAT mapping of the caller. */
      readonly mapping: NatMapping;
      /** The address that the caller listens on, or dials from over IPv6; null for neither. */
      readonly listensAt: Address | null;
      /** True if an earlier attempt with a low hop limit failed. */
      readonly needsFullHops: boolean;
    };

/** A message from a helper to the called node. */
export interface Introduction {
  readonly caller: Uint8Array;
  readonly attempt: Uint8Array;
  readonly means: Means;
  readonly mapping: NatMapping;
  /** The caller's address as the helper sees it. */
  readonly seenAt: Address;
  readonly listensAt: Address | null;
  readonly needsFullHops: boolean;
  /** The port of this helper where the called node meets the caller, and the token to send there. */
  readonly relay: { readonly port: number; readonly token: Uint8Array } | null;
}

/** The answer of the called node. */
export interface IntroductionAnswer {
  readonly outcome: CalledOutcome;
  readonly mapping: NatMapping;
  readonly listensAt: Address | null;
  /**
   * True if the called node opened random ports towards the caller's host, so that the caller must dial from all its
   * sockets.
   */
  readonly isSprayed: boolean;
}

/** The answer of a helper. */
export interface HelperReply {
  /** The requester's address as the helper sees it. */
  readonly seenAt: Address;
  /** Whether it relays now. */
  readonly relays: boolean;
  /** Whether the helper reached the requester at the requested port. */
  readonly reached: boolean;
  /** The answer of the called node, and its address as the helper sees it; null if the helper has no connection to it. */
  readonly called: (IntroductionAnswer & { readonly seenAt: Address }) | null;
  /** The port of this helper where the caller meets the called node; null for none. */
  readonly relayPort: number | null;
  /** TCP ports at which the helper lends UDP ports over TLS, up to `MAX_TLS_PORTS`. Empty in answers to other requests. */
  readonly tlsPorts: readonly number[];
}

type Fields = { readonly [key: string]: CborValue | undefined };
type Decoded = Readonly<Record<string, unknown>>;

function encode(fields: Fields): Uint8Array {
  return encodeCbor({ ...fields, v: SIGNAL_VERSION });
}

function decode(bytes: Uint8Array, required: readonly string[], optional: readonly string[]): Decoded | null {
  try {
    const map = asMap(decodeCbor(bytes, MAX_SIGNAL_BYTES), ['v', ...required], optional);
    return map?.['v'] === SIGNAL_VERSION ? map : null;
  } catch {
    return null;
  }
}

function encodeAddress(address: Address | null): string | undefined {
  return address === null ? undefined : formatAddress(address);
}

/** An IP address in canonical form with a port above 0; undefined for anything else. */
function decodeAddress(value: unknown): Address | undefined {
  const address = typeof value === 'string' ? parseAddress(value) : null;
  if (address === null || address.port === 0 || ipScope(address.host) === IP_SCOPE.none) return undefined;
  return formatAddress(address) === value ? address : undefined;
}

/** As `decodeAddress`; null if the field is missing. */
function decodeOptionalAddress(value: unknown): Address | null | undefined {
  return value === undefined ? null : decodeAddress(value);
}

function decodeEnum<T extends string>(names: readonly T[], value: unknown): T | undefined {
  return isUint(value) ? names[value] : undefined;
}

/** A boolean field: `true`, or missing. */
function encodeFlag(isSet: boolean): true | undefined {
  return isSet ? true : undefined;
}

function decodeFlag(value: unknown): boolean | undefined {
  return value === undefined || value === true ? value === true : undefined;
}

function decodePort(value: unknown): number | undefined {
  return isUint(value, MAX_PORT) && value > 0 ? value : undefined;
}

/** Up to `MAX_TLS_PORTS` ports without duplicates; undefined for anything else. */
function decodePorts(value: unknown): readonly number[] | undefined {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_TLS_PORTS) return undefined;
  const ports = value.map(decodePort).filter((port) => port !== undefined);
  return new Set(ports).size === value.length ? ports : undefined;
}

/** `listening` and `ipv6` require an address, `turn` allows one, and the other means allow none. */
function hasValidAddress(means: Means, listensAt: Address | null): boolean {
  if (means === 'ipv6') return listensAt !== null && isPublicIpv6(listensAt);
  return means === 'turn' || (means === 'listening') === (listensAt !== null);
}

export function encodeHelperRequest(request: HelperRequest): Uint8Array {
  if (request.kind === 'hello') return encode({});
  if (request.kind === 'reach') return encode({ q: request.port });
  const { to, attempt, means, mapping, listensAt, needsFullHops } = request;
  return encode({
    f: encodeFlag(needsFullHops),
    l: encodeAddress(listensAt),
    m: MEANS.indexOf(means),
    n: NAT_MAPPINGS.indexOf(mapping),
    s: attempt,
    t: to,
  });
}

export function decodeHelperRequest(bytes: Uint8Array): HelperRequest | null {
  if (decode(bytes, [], []) !== null) return { kind: 'hello' };
  const dialBackPort = decodePort(decode(bytes, ['q'], [])?.['q']);
  if (dialBackPort !== undefined) return { kind: 'reach', port: dialBackPort };
  const map = decode(bytes, ['m', 'n', 's', 't'], ['f', 'l']);
  if (map === null || !isBytes(map['s'], ATTEMPT_BYTES) || !isBytes(map['t'], PUBLIC_KEY_BYTES)) return null;
  const [means, mapping] = [decodeEnum(MEANS, map['m']), decodeEnum(NAT_MAPPINGS, map['n'])];
  const [listensAt, needsFullHops] = [decodeOptionalAddress(map['l']), decodeFlag(map['f'])];
  if (means === undefined || mapping === undefined || listensAt === undefined || needsFullHops === undefined)
    return null;
  if (!hasValidAddress(means, listensAt)) return null;
  return { kind: 'introduce', to: map['t'], attempt: map['s'], means, mapping, listensAt, needsFullHops };
}

export function encodeIntroduction(introduction: Introduction): Uint8Array {
  const { caller, attempt, means, mapping, seenAt, listensAt, needsFullHops, relay } = introduction;
  return encode({
    a: encodeAddress(seenAt),
    c: caller,
    f: encodeFlag(needsFullHops),
    k: relay?.token,
    l: encodeAddress(listensAt),
    m: MEANS.indexOf(means),
    n: NAT_MAPPINGS.indexOf(mapping),
    p: relay?.port,
    s: attempt,
  });
}

/** A port and a token, or neither; undefined if one is missing. */
function decodeRelay(port: unknown, token: unknown): Introduction['relay'] | undefined {
  if (port === undefined && token === undefined) return null;
  const real = decodePort(port);
  return real !== undefined && isBytes(token, RELAY_TOKEN_BYTES) ? { port: real, token } : undefined;
}

export function decodeIntroduction(bytes: Uint8Array): Introduction | null {
  const map = decode(bytes, ['a', 'c', 'm', 'n', 's'], ['f', 'k', 'l', 'p']);
  if (map === null || !isBytes(map['s'], ATTEMPT_BYTES) || !isBytes(map['c'], PUBLIC_KEY_BYTES)) return null;
  const [means, mapping, seenAt] = [
    decodeEnum(MEANS, map['m']),
    decodeEnum(NAT_MAPPINGS, map['n']),
    decodeAddress(map['a']),
  ];
  const [listensAt, needsFullHops, relay] = [
    decodeOptionalAddress(map['l']),
    decodeFlag(map['f']),
    decodeRelay(map['p'], map['k']),
  ];
  if (means === undefined || mapping === undefined || seenAt === undefined) return null;
  if (listensAt === undefined || needsFullHops === undefined || relay === undefined) return null;
  if (!hasValidAddress(means, listensAt) || (means === 'relay') !== (relay !== null)) return null;
  return { caller: map['c'], attempt: map['s'], means, mapping, seenAt, listensAt, needsFullHops, relay };
}

export function encodeIntroductionAnswer({ outcome, mapping, listensAt, isSprayed }: IntroductionAnswer): Uint8Array {
  return encode({
    l: encodeAddress(listensAt),
    n: NAT_MAPPINGS.indexOf(mapping),
    o: OUTCOMES.indexOf(outcome),
    r: encodeFlag(isSprayed),
  });
}

function decodeAnswer(map: Decoded): IntroductionAnswer | null {
  const [outcome, mapping] = [decodeEnum(OUTCOMES, map['o']), decodeEnum(NAT_MAPPINGS, map['n'])];
  const [listensAt, isSprayed] = [decodeOptionalAddress(map['l']), decodeFlag(map['r'])];
  if (outcome === undefined || mapping === undefined || listensAt === undefined || isSprayed === undefined) return null;
  return { outcome, mapping, listensAt, isSprayed };
}

export function decodeIntroductionAnswer(bytes: Uint8Array): IntroductionAnswer | null {
  const map = decode(bytes, ['n', 'o'], ['l', 'r']);
  return map === null ? null : decodeAnswer(map);
}

export function encodeHelperReply({ seenAt, relays, reached, called, relayPort, tlsPorts }: HelperReply): Uint8Array {
  return encode({
    a: encodeAddress(seenAt),
    b: encodeFlag(relays),
    c: encodeAddress(called?.seenAt ?? null),
    d: encodeFlag(reached),
    l: encodeAddress(called?.listensAt ?? null),
    n: called === null ? undefined : NAT_MAPPINGS.indexOf(called.mapping),
    o: called === null ? undefined : OUTCOMES.indexOf(called.outcome),
    p: relayPort ?? undefined,
    r: encodeFlag(called?.isSprayed === true),
    t: tlsPorts.length === 0 ? undefined : [...tlsPorts],
  });
}

export function decodeHelperReply(bytes: Uint8Array): HelperReply | null {
  const map = decode(bytes, ['a'], ['b', 'c', 'd', 'l', 'n', 'o', 'p', 'r', 't']);
  if (map === null) return null;
  const [seenAt, relays, reached] = [decodeAddress(map['a']), decodeFlag(map['b']), decodeFlag(map['d'])];
  const relayPort = map['p'] === undefined ? null : decodePort(map['p']);
  const tlsPorts = decodePorts(map['t']);
  if (seenAt === undefined || relays === undefined || reached === undefined) return null;
  if (relayPort === undefined || tlsPorts === undefined) return null;
  if (!['c', 'l', 'n', 'o', 'r'].some((key) => Object.hasOwn(map, key)))
    return { seenAt, relays, reached, called: null, relayPort, tlsPorts };
  const [calledAt, answer] = [decodeAddress(map['c']), decodeAnswer(map)];
  return calledAt === undefined || answer === null
    ? null
    : { seenAt, relays, reached, called: { ...answer, seenAt: calledAt }, relayPort, tlsPorts };
}

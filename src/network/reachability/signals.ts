/**
 * What nodes and their helpers say to each other to bring two nodes together: requests over the QUIC connections that
 * stand anyway. Deterministic CBOR; every decoder faces a stranger, and returns null for anything else.
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
/** The version of these messages. */
const SIGNAL_VERSION = 1;
/** Bytes of the number that ties the messages of one attempt together. */
export const ATTEMPT_BYTES = 16;

/**
 * What the caller wants. `witness`: the helper's word to the other node of where the caller is. `punch`: a port that it
 * can dial. `listening`: that the other node dials a port of the caller's. `relay`: a relayed session at this helper.
 * `turn`: to meet at an address of a TURN server: the caller's, or without one the called node's. `ipv6`: as `punch`, over
 * IPv6, for the public address from which the caller says that it dials.
 */
export const MEANS = ['witness', 'punch', 'listening', 'relay', 'turn', 'ipv6'] as const;
export type Means = (typeof MEANS)[number];

/**
 * What the called node does. `noted`: nothing yet. `ready`: it listens at an address, or at the relay. `dialling`: it
 * dials the caller. `listen`: its own outer port changes, so the caller has to listen. `relay`: nothing but a relay is
 * left. `refused`: it does not want to, or not so often.
 */
export const OUTCOMES = ['noted', 'ready', 'dialling', 'listen', 'relay', 'refused'] as const;
export type CalledOutcome = (typeof OUTCOMES)[number];

/** What a node asks of a helper. */
export type HelperRequest =
  | { readonly kind: 'hello' }
  /** To dial a port of the asker's own, at the host where the helper sees it. */
  | { readonly kind: 'reach'; readonly port: number }
  | {
      readonly kind: 'introduce';
      /** The node that is called. */
      readonly to: Uint8Array;
      readonly attempt: Uint8Array;
      readonly means: Means;
      /** What is before the caller. */
      readonly mapping: NatMapping;
      /** Where the caller listens, or what it dials from over IPv6; null for neither. */
      readonly listensAt: Address | null;
      /** True where an earlier try with few hops did not help. */
      readonly isFar: boolean;
    };

/** What a helper tells the called node. */
export interface Introduction {
  readonly caller: Uint8Array;
  readonly attempt: Uint8Array;
  readonly means: Means;
  readonly mapping: NatMapping;
  /** Where the helper sees the caller. */
  readonly seenAt: Address;
  readonly listensAt: Address | null;
  readonly isFar: boolean;
  /** The port of this helper at which the called node meets the caller, and what to send there. */
  readonly relay: { readonly port: number; readonly token: Uint8Array } | null;
}

/** What the called node answers. */
export interface IntroductionAnswer {
  readonly outcome: CalledOutcome;
  readonly mapping: NatMapping;
  readonly listensAt: Address | null;
  /** True where it has opened random ports of the caller's host, so that all sockets have to dial. */
  readonly isSprayed: boolean;
}

/** What a helper answers. */
export interface HelperReply {
  /** Where the helper sees the asker. */
  readonly seenAt: Address;
  /** Whether it relays now. */
  readonly relays: boolean;
  /** Whether it has reached the asker at the port that it was to dial. */
  readonly reached: boolean;
  /** What the called node answered, and where the helper sees it; null where it has no connection to that node. */
  readonly called: (IntroductionAnswer & { readonly seenAt: Address }) | null;
  /** The port of this helper at which the caller meets the called node; null for none. */
  readonly relayPort: number | null;
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

function text(address: Address | null): string | undefined {
  return address === null ? undefined : formatAddress(address);
}

/** An IP address in its one spelling and a port above 0; undefined for anything else. */
function addressOf(value: unknown): Address | undefined {
  const address = typeof value === 'string' ? parseAddress(value) : null;
  if (address === null || address.port === 0 || ipScope(address.host) === IP_SCOPE.none) return undefined;
  return formatAddress(address) === value ? address : undefined;
}

/** As `addressOf`; null for what is not there. */
function addressOrNull(value: unknown): Address | null | undefined {
  return value === undefined ? null : addressOf(value);
}

function nameOf<T extends string>(names: readonly T[], value: unknown): T | undefined {
  return isUint(value) ? names[value] : undefined;
}

/** A member that says yes by being there: with `true`. */
function flag(isSet: boolean): true | undefined {
  return isSet ? true : undefined;
}

function flagOf(value: unknown): boolean | undefined {
  return value === undefined || value === true ? value === true : undefined;
}

function portOf(value: unknown): number | undefined {
  return isUint(value, MAX_PORT) && value > 0 ? value : undefined;
}

/** Who listens says where, and who dials over IPv6 from where; at a TURN server either side may have an address. */
function fits(means: Means, listensAt: Address | null): boolean {
  if (means === 'ipv6') return listensAt !== null && isPublicIpv6(listensAt);
  return means === 'turn' || (means === 'listening') === (listensAt !== null);
}

export function encodeHelperRequest(request: HelperRequest): Uint8Array {
  if (request.kind === 'hello') return encode({});
  if (request.kind === 'reach') return encode({ q: request.port });
  const { to, attempt, means, mapping, listensAt, isFar } = request;
  return encode({
    f: flag(isFar),
    l: text(listensAt),
    m: MEANS.indexOf(means),
    n: NAT_MAPPINGS.indexOf(mapping),
    s: attempt,
    t: to,
  });
}

export function decodeHelperRequest(bytes: Uint8Array): HelperRequest | null {
  if (decode(bytes, [], []) !== null) return { kind: 'hello' };
  const asked = portOf(decode(bytes, ['q'], [])?.['q']);
  if (asked !== undefined) return { kind: 'reach', port: asked };
  const map = decode(bytes, ['m', 'n', 's', 't'], ['f', 'l']);
  if (map === null || !isBytes(map['s'], ATTEMPT_BYTES) || !isBytes(map['t'], PUBLIC_KEY_BYTES)) return null;
  const [means, mapping] = [nameOf(MEANS, map['m']), nameOf(NAT_MAPPINGS, map['n'])];
  const [listensAt, isFar] = [addressOrNull(map['l']), flagOf(map['f'])];
  if (means === undefined || mapping === undefined || listensAt === undefined || isFar === undefined) return null;
  if (!fits(means, listensAt)) return null;
  return { kind: 'introduce', to: map['t'], attempt: map['s'], means, mapping, listensAt, isFar };
}

export function encodeIntroduction(introduction: Introduction): Uint8Array {
  const { caller, attempt, means, mapping, seenAt, listensAt, isFar, relay } = introduction;
  return encode({
    a: text(seenAt),
    c: caller,
    f: flag(isFar),
    k: relay?.token,
    l: text(listensAt),
    m: MEANS.indexOf(means),
    n: NAT_MAPPINGS.indexOf(mapping),
    p: relay?.port,
    s: attempt,
  });
}

/** A port and a token: both or none; undefined for one of them. */
function relayOf(port: unknown, token: unknown): Introduction['relay'] | undefined {
  if (port === undefined && token === undefined) return null;
  const real = portOf(port);
  return real !== undefined && isBytes(token, RELAY_TOKEN_BYTES) ? { port: real, token } : undefined;
}

export function decodeIntroduction(bytes: Uint8Array): Introduction | null {
  const map = decode(bytes, ['a', 'c', 'm', 'n', 's'], ['f', 'k', 'l', 'p']);
  if (map === null || !isBytes(map['s'], ATTEMPT_BYTES) || !isBytes(map['c'], PUBLIC_KEY_BYTES)) return null;
  const [means, mapping, seenAt] = [nameOf(MEANS, map['m']), nameOf(NAT_MAPPINGS, map['n']), addressOf(map['a'])];
  const [listensAt, isFar, relay] = [addressOrNull(map['l']), flagOf(map['f']), relayOf(map['p'], map['k'])];
  if (means === undefined || mapping === undefined || seenAt === undefined) return null;
  if (listensAt === undefined || isFar === undefined || relay === undefined) return null;
  if (!fits(means, listensAt) || (means === 'relay') !== (relay !== null)) return null;
  return { caller: map['c'], attempt: map['s'], means, mapping, seenAt, listensAt, isFar, relay };
}

export function encodeIntroductionAnswer({ outcome, mapping, listensAt, isSprayed }: IntroductionAnswer): Uint8Array {
  return encode({
    l: text(listensAt),
    n: NAT_MAPPINGS.indexOf(mapping),
    o: OUTCOMES.indexOf(outcome),
    r: flag(isSprayed),
  });
}

function answerOf(map: Decoded): IntroductionAnswer | null {
  const [outcome, mapping] = [nameOf(OUTCOMES, map['o']), nameOf(NAT_MAPPINGS, map['n'])];
  const [listensAt, isSprayed] = [addressOrNull(map['l']), flagOf(map['r'])];
  if (outcome === undefined || mapping === undefined || listensAt === undefined || isSprayed === undefined) return null;
  return { outcome, mapping, listensAt, isSprayed };
}

export function decodeIntroductionAnswer(bytes: Uint8Array): IntroductionAnswer | null {
  const map = decode(bytes, ['n', 'o'], ['l', 'r']);
  return map === null ? null : answerOf(map);
}

export function encodeHelperReply({ seenAt, relays, reached, called, relayPort }: HelperReply): Uint8Array {
  return encode({
    a: text(seenAt),
    b: flag(relays),
    c: text(called?.seenAt ?? null),
    d: flag(reached),
    l: text(called?.listensAt ?? null),
    n: called === null ? undefined : NAT_MAPPINGS.indexOf(called.mapping),
    o: called === null ? undefined : OUTCOMES.indexOf(called.outcome),
    p: relayPort ?? undefined,
    r: flag(called?.isSprayed === true),
  });
}

export function decodeHelperReply(bytes: Uint8Array): HelperReply | null {
  const map = decode(bytes, ['a'], ['b', 'c', 'd', 'l', 'n', 'o', 'p', 'r']);
  if (map === null) return null;
  const [seenAt, relays, reached] = [addressOf(map['a']), flagOf(map['b']), flagOf(map['d'])];
  const relayPort = map['p'] === undefined ? null : portOf(map['p']);
  if (seenAt === undefined || relays === undefined || reached === undefined || relayPort === undefined) return null;
  if (!['c', 'l', 'n', 'o', 'r'].some((key) => Object.hasOwn(map, key)))
    return { seenAt, relays, reached, called: null, relayPort };
  const [calledAt, answer] = [addressOf(map['c']), answerOf(map)];
  return calledAt === undefined || answer === null
    ? null
    : { seenAt, relays, reached, called: { ...answer, seenAt: calledAt }, relayPort };
}

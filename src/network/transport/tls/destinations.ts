/**
 * Decides which datagrams pass a lent port (docs/protocol-tls.md, step 8). A helper must not be an open UDP proxy, and
 * clients must not act as nodes at its address: requests of the record network pass outwards, and answers inwards. Other
 * payloads are encrypted, so only their form shows what they are.
 */
import { type Address, formatAddress } from '../../../foundation/address.ts';
import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { IP_SCOPE, type IpScope, ipScope } from '../../../foundation/ip.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';
import { ANSWER_BYTE, NETWORK_TAG_BYTES, QUIC_INITIAL_BYTES, REQUEST_BYTE } from '../udp-socket.ts';

/** Packets to a destination that does not answer … */
export const MAX_UNANSWERED_PACKETS = 3;
/** … within this time, milliseconds. An answer is also valid for this time. */
export const ANSWER_VALID_MS = 30_000;
/** Destinations of one client to remember. */
const MAX_DESTINATIONS = 512;
/** Senders of unsolicited datagrams to remember. They cannot evict the destinations of the client. */
const MAX_CALLERS = 64;
/** Lent ports of one client with QUIC connections to one destination. A node uses one or two. */
export const MAX_PORTS_PER_DESTINATION = 6;
/**
 * Connection IDs in first packets of one client to one destination within `ANSWER_VALID_MS`. One handshake uses up to
 * two.
 */
export const MAX_CONNECTION_IDS_PER_DESTINATION = 16;

/** Smallest QUIC packet that a node accepts (RFC 9000, 10.3), bytes. */
const MIN_QUIC_BYTES = 21;
const LONG_FORM = 0x80;
/** Size of the token that joins a relayed session, bytes. */
const TOKEN_BYTES = 16;
/** Offset of the connection IDs of a QUIC packet with a long header, each after its length (RFC 9000, 17.2) … */
const CONNECTION_IDS_AT = 5;
/** … and their longest form, bytes. */
const MAX_CONNECTION_IDS_BYTES = 2 * 21;
/** QUIC versions: negotiation, 1, 2, and drafts (without their last byte). */
const VERSIONS: ReadonlySet<number> = new Set([0, 1, 0x6b3343cf]);
const DRAFTS = 0xff0000;

/**
 * - `request`, `answer`: a datagram of the record network
 * - `initial`: the first packet of a QUIC handshake
 * - `long`: another packet of a handshake
 * - `short`: anything that can be a QUIC packet after the handshake
 * - `small`: opens a NAT (one byte 0), or joins a relayed session (16 bytes)
 * - `other`: nothing that a node sends
 */
type DatagramKind = 'request' | 'answer' | 'initial' | 'long' | 'short' | 'small' | 'other';

function isQuicVersion(datagram: Uint8Array): boolean {
  const version = new DataView(datagram.buffer, datagram.byteOffset, datagram.length).getUint32(1);
  return VERSIONS.has(version) || version >>> 8 === DRAFTS;
}

function kindOf(datagram: Uint8Array, tag: Uint8Array): DatagramKind {
  const { length } = datagram;
  const first = datagram[0] ?? 0;
  if (length === TOKEN_BYTES || (length === 1 && first === 0)) return 'small';
  if (equalBytes(datagram.subarray(0, NETWORK_TAG_BYTES), tag)) {
    const type = datagram[NETWORK_TAG_BYTES];
    return type === REQUEST_BYTE ? 'request' : type === ANSWER_BYTE ? 'answer' : 'other';
  }
  if (length < MIN_QUIC_BYTES) return 'other';
  if ((first & LONG_FORM) === 0 || !isQuicVersion(datagram)) return 'short';
  return length >= QUIC_INITIAL_BYTES ? 'initial' : 'long';
}

/** Both connection IDs of a packet of the kind `initial`, as text. */
function connectionIdsOf(datagram: Uint8Array): string {
  const first = CONNECTION_IDS_AT + 1 + (datagram[CONNECTION_IDS_AT] ?? 0);
  const end = Math.min(first + 1 + (datagram[first] ?? 0), CONNECTION_IDS_AT + MAX_CONNECTION_IDS_BYTES);
  return Buffer.from(datagram.subarray(CONNECTION_IDS_AT, end)).toString('latin1');
}

interface Destination {
  /** Unanswered packets since `since`. */
  unanswered: number;
  since: number;
  /** The last datagram of the record network or packet of a QUIC handshake that it sent. */
  heardAt: number;
  /** The last datagram that it sent after a packet of a QUIC handshake. */
  quicAt: number;
  /** Lent ports with QUIC connections to it, and when each last sent a QUIC packet. */
  readonly ports: Map<number, number>;
  /** Connection IDs in first packets to it, and when each was first sent. */
  readonly connections: Map<string, number>;
}

interface DestinationsDependencies {
  readonly clock: Clock;
  readonly tag: Uint8Array;
  /** The scope of the client's address: with a private or loopback one, it reaches such addresses too. */
  readonly scope: IpScope;
  /** As `DialGuard.mayDial`. */
  readonly mayDial: (address: Address) => boolean;
  /** True for sockets of this node, and for ports that it lends. */
  readonly isOwn: (address: Address) => boolean;
  /** Takes one new destination of the client's rate; false if there is none. */
  readonly takeNew: () => boolean;
}

const NEVER = Number.NEGATIVE_INFINITY;

function newDestination(): Destination {
  return { unanswered: 0, since: NEVER, heardAt: NEVER, quicAt: NEVER, ports: new Map(), connections: new Map() };
}

/** True if a key may be used in addition to the keys of the last `ANSWER_VALID_MS`. Forgets older keys. */
function hasRoom<K>(used: Map<K, number>, key: K, max: number, now: number): boolean {
  for (const [other, at] of used) if (now - at > ANSWER_VALID_MS) used.delete(other);
  return used.has(key) || used.size < max;
}

/** Whether a first packet of a QUIC connection may leave, as one of few. Counts it if so. */
function mayConnect({ ports, connections }: Destination, number: number, datagram: Uint8Array, now: number): boolean {
  const ids = connectionIdsOf(datagram);
  if (!hasRoom(ports, number, MAX_PORTS_PER_DESTINATION, now)) return false;
  if (!hasRoom(connections, ids, MAX_CONNECTION_IDS_PER_DESTINATION, now)) return false;
  ports.set(number, now);
  if (!connections.has(ids)) connections.set(ids, now);
  return true;
}

export class Destinations {
  readonly #deps: DestinationsDependencies;
  readonly #scope: IpScope;
  readonly #known: LruCache<string, Destination>;
  readonly #callers: LruCache<string, Destination>;

  constructor(dependencies: DestinationsDependencies) {
    this.#deps = dependencies;
    this.#scope = dependencies.scope;
    this.#known = new LruCache({ maxEntries: MAX_DESTINATIONS });
    this.#callers = new LruCache({ maxEntries: MAX_CALLERS });
  }

  /**
   * Whether to forward a datagram of the client. Counts it as sent if so.
   * @param number of the lent port
   */
  maySend(number: number, remote: Address, datagram: Uint8Array): boolean {
    const kind = kindOf(datagram, this.#deps.tag);
    // A client that answers requests would be a storage node at an address that is not its own.
    if (kind === 'other' || kind === 'answer') return false;
    const name = formatAddress(remote);
    const known = this.#known.get(name) ?? this.#callers.get(name);
    const now = this.#deps.clock.monotonic();
    if (kind === 'short' || kind === 'long') {
      if (known?.ports.has(number) === true) known.ports.set(number, now);
      return known !== undefined && now - known.quicAt <= ANSWER_VALID_MS;
    }
    const destination = known ?? this.#add(remote, name);
    if (destination === null) return false;
    if (kind === 'initial' && !mayConnect(destination, number, datagram, now)) return false;
    if (kind !== 'small' && now - destination.heardAt <= ANSWER_VALID_MS) return true;
    if (now - destination.since > ANSWER_VALID_MS) {
      destination.since = now;
      destination.unanswered = 0;
    }
    return ++destination.unanswered <= MAX_UNANSWERED_PACKETS;
  }

  /** Whether to forward a datagram to the client. Counts it as an answer of the remote node if so. */
  mayReceive(remote: Address, datagram: Uint8Array): boolean {
    const kind = kindOf(datagram, this.#deps.tag);
    if (kind === 'other' || kind === 'request') return false;
    const name = formatAddress(remote);
    const now = this.#deps.clock.monotonic();
    const known = this.#known.get(name) ?? this.#callers.get(name);
    if (known === undefined && (kind === 'short' || !this.#mayReach(remote))) return false;
    const sender = known ?? newDestination();
    if (known === undefined) this.#callers.set(name, sender);
    if (kind === 'answer' || kind === 'initial' || kind === 'long') {
      sender.heardAt = now;
      sender.unanswered = 0;
    }
    if (kind === 'initial' || kind === 'long') sender.quicAt = now;
    else if (kind === 'short') {
      if (now - sender.quicAt > ANSWER_VALID_MS) return false;
      sender.quicAt = now;
      sender.heardAt = now;
    }
    return true;
  }

  /** Null if the destination is not permitted, or the rate of new ones is exceeded. */
  #add(remote: Address, name: string): Destination | null {
    if (!this.#mayReach(remote) || !this.#deps.takeNew()) return null;
    const destination = newDestination();
    this.#known.set(name, destination);
    return destination;
  }

  /**
   * Clients of other networks reach public addresses only. Private and loopback addresses are for clients that come
   * from there themselves.
   */
  #mayReach(remote: Address): boolean {
    const { isOwn, mayDial } = this.#deps;
    const scope = ipScope(remote.host);
    return isOwn(remote) || ((scope === IP_SCOPE.public || scope === this.#scope) && mayDial(remote));
  }
}

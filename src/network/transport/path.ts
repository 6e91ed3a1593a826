/** The path of a connection to another node, and the source that limits count it for. */
import type { Address } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import { isRelayed, type PathKind } from '../../foundation/domain/tunnels.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';

export interface Path {
  readonly kind: PathKind;
  /** Destination of our packets: the peer, or its relay on a relayed path. */
  readonly remote: Address;
  /**
   * The source that limits count: the IP address of the peer, a name from `lentSource` for a port that a helper lends,
   * or a name with its key if no address is known.
   * Only a connection between programs of this machine has a loopback address here.
   */
  readonly source: string;
  /** True if another node owns its port and may withdraw it. A connection must then move to another path. */
  readonly mayBeWithdrawn?: boolean;
  /** True if much data should move to a bulk stream, also without packet loss. */
  readonly isSlowForBulk?: boolean;
}

/** Known facts about an indirect path to a node. */
export interface Way {
  readonly kind: PathKind;
  /** The peer's address, if the socket shows another one. */
  readonly remote?: Address;
  /** The peer's IP address as seen by a helper of this node. */
  readonly source?: string;
}

/** The peer of a connection: the address of the socket, and the proven key of its node. */
interface End {
  readonly address: Address;
  readonly key: Uint8Array;
}

const STRAIGHT: ReadonlySet<PathKind> = new Set<PathKind>(['direct', 'lan', 'mapped', 'tls']);

/** True if the remote address is the peer's socket for ordinary connections. */
export function isStraight({ kind }: Path): boolean {
  return STRAIGHT.has(kind);
}

/** The path of a connection between our socket and the peer's. */
export function plainPath(kind: PathKind, remote: Address): Path {
  return { kind, remote, source: remote.host };
}

/**
 * The path of an indirect connection. Its socket may show an address of this machine, which does not make the peer a
 * local one: without a known address, limits count it by its proven key.
 */
export function wayPath({ kind, remote, source }: Way, { address, key }: End): Path {
  const known = source ?? (isRelayed(kind) ? undefined : (remote ?? address).host);
  const isOthers = known !== undefined && ipScope(known) > IP_SCOPE.loopback;
  return { kind, remote: remote ?? address, source: isOthers ? known : `node ${toHex(key)}` };
}

/**
 * The path of a connection over a borrowed port: through a helper, but with the peer's address. A relay or a TURN server
 * after the helper stays named.
 */
export function borrowedPath(way: Way | undefined, { address, key }: End): Path {
  if (way !== undefined && (way.kind === 'relay' || way.kind === 'turn'))
    return { ...wayPath(way, { address, key }), mayBeWithdrawn: true };
  const path = wayPath({ ...way, kind: 'tls', source: way?.source ?? address.host }, { address, key });
  return { ...path, mayBeWithdrawn: true, isSlowForBulk: true };
}

/** The kind of a path between our socket and an address, by the address alone. */
export function kindByScope({ host }: Address): PathKind {
  return ipScope(host) < IP_SCOPE.public ? 'lan' : 'direct';
}

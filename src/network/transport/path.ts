/** How a connection reaches the other node, and whom it counts for where each has a share. */
import type { Address } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import { isRelayed, type PathKind } from '../../foundation/domain/tunnels.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';

export interface Path {
  readonly kind: PathKind;
  /** Where our packets go: on a relayed path, the relay. */
  readonly remote: Address;
  /**
   * Whom limits hold the connection against: the IP address of the other node, or a name that is no address where
   * none of his is known. Only what a program of this machine dialled or accepted itself has a loopback address here.
   */
  readonly source: string;
}

/** What is known of a path to a node that does not just lead from our socket to its address. */
export interface Way {
  readonly kind: PathKind;
  /** Where it leads, if that is not the address which the socket shows. */
  readonly remote?: Address;
  /** The other node's IP address as a helper of ours sees it. */
  readonly source?: string;
}

/** The other end of a connection: the address that its socket shows, and the proven key of its node. */
interface End {
  readonly address: Address;
  readonly key: Uint8Array;
}

const STRAIGHT: ReadonlySet<PathKind> = new Set<PathKind>(['direct', 'lan', 'mapped']);

/** True where the address at the other end is that of the socket by which the other node makes ordinary connections. */
export function isStraight({ kind }: Path): boolean {
  return STRAIGHT.has(kind);
}

/** The path of a connection between our socket and that of the other node. */
export function plainPath(kind: PathKind, remote: Address): Path {
  return { kind, remote, source: remote.host };
}

/**
 * The path of a connection that came another way. Its socket may show an address of this machine, which then is no
 * reason to take the other node for a neighbour: he counts by his proven key where no address of his is known.
 */
export function wayPath({ kind, remote, source }: Way, { address, key }: End): Path {
  const known = source ?? (isRelayed(kind) ? undefined : (remote ?? address).host);
  const isOthers = known !== undefined && ipScope(known) > IP_SCOPE.loopback;
  return { kind, remote: remote ?? address, source: isOthers ? known : `node ${toHex(key)}` };
}

/** The kind of a path from our socket to an address or back, by the address alone. */
export function kindByScope({ host }: Address): PathKind {
  return ipScope(host) < IP_SCOPE.public ? 'lan' : 'direct';
}

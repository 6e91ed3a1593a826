/**
 * The quota for every bounded resource: connections, streams, calls, bytes. It counts per key, per node, per source and
 * per network, because each level costs a stranger more than the last: AIDs and node keys are free, addresses
 * cost a little, networks cost more.
 *
 * - Named holders (the owner allowed them by name, or this node uses them) count against their key, their node and the
 *   total. Strangers also count against their source and their network, and never use the reserved part of the total.
 * - A full level evicts shares. For a named holder it evicts a stranger, also one on the same node; for a stranger only
 *   one that holds more. The victim is found from the top: the network that holds most, then its largest source, then
 *   its largest node, and there the share that has been idle longest.
 */
import { IP_SCOPE, ipScope, networkOf, subscriberOf } from './ip.ts';
import { LruCache } from './lru-cache.ts';

/** The levels of a quota, from the cheapest identity to the total. */
export type QuotaLevel = 'key' | 'node' | 'source' | 'network' | 'total';

/** Limits in units of the resource (connections, calls, bytes). A missing level has no limit. */
export interface QuotaLimits {
  readonly perKey?: number;
  readonly perNode?: number;
  /** For strangers at one IPv4 address or IPv6 /64. */
  readonly perSource?: number;
  /** For strangers in one IPv4 /24 or IPv6 /48. */
  readonly perNetwork?: number;
  /** For strangers at the lent ports of one helper, and of all helpers. Default: as for another source and network. */
  readonly perLentSource?: number;
  readonly perLentNetwork?: number;
  readonly total: number;
  /** Part of `total` that strangers never use. */
  readonly reserved?: number;
}

/** The holder of a share. */
export interface QuotaHolder {
  /** The smallest holder, such as a pair of agents. Default: the node. */
  readonly key?: string;
  /** Public key of the remote node, as text. */
  readonly node: string;
  /** IP address of the remote node, or another name if the address is unknown; null for programs on this machine. */
  readonly source: string | null;
  /** True if the owner allowed it by name, if this node uses it, and for programs on this machine. */
  readonly named: boolean;
}

export interface TakeOptions {
  /** Units to take. Default: 1. */
  readonly amount?: number;
  /**
   * Called on eviction, to free the resource. The units are already released. A share without it cannot be
   * evicted.
   */
  readonly onEvict?: () => void;
}

/** Units that one holder has taken. */
export interface QuotaShare {
  readonly amount: number;
  /** Takes more units. Returns false, and takes none, if there is no room. */
  grow(amount: number): boolean;
  /** Releases units, at most `amount`. */
  shrink(amount: number): void;
  /** Marks the share as used, so that idle shares are evicted before it. */
  touch(): void;
  /** Releases all units. A second call has no effect. */
  release(): void;
  /**
   * Sets the amount. Returns false, and changes nothing, if there is no room for more. A share of 0 is not in the quota,
   * so it is never evicted, and later it takes units as a new share would.
   */
  set(amount: number): boolean;
}

/** Maximum number of cached source groups. Parsing an IPv6 address is expensive. */
const MAX_REMEMBERED_SOURCES = 1024;
/** The network of all sources with an unknown address, because such names are free. */
const UNKNOWN = 'unknown';
/**
 * Source and network of all nodes on this machine. They have no source or network limit, because all its programs
 * belong to one person.
 */
export const THIS_MACHINE = 'here';

/** The network of all lent ports. */
const LENT_NETWORK = 'lent ports';
const LENT_PREFIX = 'lent ';

/**
 * The source for strangers at the address of a helper that lends UDP ports. The helpers together are one network,
 * because one machine can borrow ports of many.
 */
export function lentSource(host: string): string {
  return `${LENT_PREFIX}${subscriberOf(host)}`;
}

/** The source and the network that a stranger counts against. */
export interface SourceGroup {
  readonly source: string;
  readonly network: string;
}

const sourceGroups = new LruCache<string, SourceGroup>({ maxEntries: MAX_REMEMBERED_SOURCES });

/**
 * The source and the network of an address, of a name from `lentSource`, or of a source that was returned before; both are
 * `THIS_MACHINE` for loopback addresses.
 */
export function sourceGroupOf(source: string): SourceGroup {
  const known = sourceGroups.get(source);
  if (known !== undefined) return known;
  const place = groupOf(source);
  sourceGroups.set(source, place);
  return place;
}

function groupOf(source: string): SourceGroup {
  if (source.startsWith(LENT_PREFIX)) return { source, network: LENT_NETWORK };
  if (source === THIS_MACHINE || ipScope(source) === IP_SCOPE.loopback)
    return { source: THIS_MACHINE, network: THIS_MACHINE };
  return { source: subscriberOf(source), network: networkOf(source) ?? UNKNOWN };
}

/** A holder at one level, with the units of its strangers. */
class Group {
  amount = 0;
  readonly children = new Map<string, Group>();
  /** Only at the lowest level. The share that has been idle longest comes first. */
  readonly shares = new Set<Share>();
  readonly #parent: Group | null;
  readonly #name: string;

  constructor(parent: Group | null = null, name = '') {
    this.#parent = parent;
    this.#name = name;
  }

  child(name: string): Group {
    const known = this.children.get(name);
    if (known !== undefined) return known;
    const made = new Group(this, name);
    this.children.set(name, made);
    return made;
  }

  /** Removes a share, and this group from its parent if it is empty then. */
  drop(share: Share): void {
    this.shares.delete(share);
    if (this.shares.size === 0 && this.children.size === 0) this.#parent?.children.delete(this.#name);
  }
}

/** The path of a stranger's share in the tree of groups. */
type Position = readonly [network: string, source: string, node: string];

class Share implements QuotaShare {
  readonly #quota: Quota;
  readonly holder: QuotaHolder;
  /** Null for named holders, which are never evicted. */
  readonly position: Position | null;
  readonly onEvict: (() => void) | undefined;
  amount = 0;
  released = false;
  /** The groups that count it: of its key, its node, and from all strangers down to the strangers of its node. */
  groups: readonly Group[] = [];

  constructor(quota: Quota, holder: QuotaHolder, position: Position | null, onEvict: (() => void) | undefined) {
    this.#quota = quota;
    this.holder = holder;
    this.position = position;
    this.onEvict = onEvict;
  }

  grow(amount: number): boolean {
    return !this.released && this.#quota.grow(this, amount);
  }

  shrink(amount: number): void {
    if (!this.released) this.#quota.change(this, -Math.min(amount, this.amount));
  }

  touch(): void {
    for (const group of this.groups) if (group.shares.delete(this)) group.shares.add(this);
  }

  release(): void {
    if (this.released) return;
    this.#quota.change(this, -this.amount);
    this.released = true;
    for (const group of this.groups.toReversed()) group.drop(this);
  }

  set(amount: number): boolean {
    if (amount === 0) this.release();
    else if (this.released) {
      if (!this.#quota.add(this, amount)) return false;
      this.released = false;
    } else if (amount > this.amount) return this.grow(amount - this.amount);
    else this.shrink(this.amount - amount);
    return true;
  }
}

export class Quota {
  readonly #limits: () => QuotaLimits;
  readonly #ownYields: boolean;
  readonly #countLoopback: boolean;
  readonly #keys = new Group();
  readonly #nodes = new Group();
  /** Strangers by network, source and node. */
  readonly #strangers = new Group();
  /** Units in use. */
  used = 0;

  /**
   * @param limits fixed, or a function that is called each time
   * @param ownYields if a holder reaches the limit of its key or node, evict its own idlest share instead of rejecting
   *   the new one; useful if old shares are probably dead
   * @param countLoopback apply the source and network limits to nodes on this machine too
   */
  constructor(limits: QuotaLimits | (() => QuotaLimits), { ownYields = false, countLoopback = false } = {}) {
    this.#limits = typeof limits === 'function' ? limits : () => limits;
    this.#ownYields = ownYields;
    this.#countLoopback = countLoopback;
  }

  /** Units that a node uses. */
  usedBy(node: string): number {
    return this.#nodes.children.get(node)?.amount ?? 0;
  }

  /** The first level without room for a holder, before any eviction; null if there is room. */
  fullLevel(holder: QuotaHolder, amount = 1): QuotaLevel | null {
    return this.#fullLevel(holder, positionOf(holder), amount);
  }

  /** Takes units, evicting shares if necessary; null if there is no room. */
  take(holder: QuotaHolder, { amount = 1, onEvict }: TakeOptions = {}): QuotaShare | null {
    const share = new Share(this, holder, positionOf(holder), onEvict);
    return this.add(share, amount) ? share : null;
  }

  /** A share of 0. @param onEvict called if it is evicted; its amount is 0 then */
  share(holder: QuotaHolder, onEvict: () => void): QuotaShare {
    const share = new Share(this, holder, positionOf(holder), onEvict);
    share.released = true;
    return share;
  }

  /** For `QuotaShare.set`. */
  add(share: Share, amount: number): boolean {
    if (!this.#makeRoom(share, amount)) return false;
    const { holder, position } = share;
    const key = this.#keys.child(keyOf(holder));
    const node = this.#nodes.child(holder.node);
    for (const group of [key, node]) group.shares.add(share);
    share.groups = [key, node];
    if (position !== null) {
      const network = this.#strangers.child(position[0]);
      const source = network.child(position[1]);
      const leaf = source.child(position[2]);
      leaf.shares.add(share);
      share.groups = [key, node, this.#strangers, network, source, leaf];
    }
    this.change(share, amount);
    return true;
  }

  /** For `QuotaShare.grow`. */
  grow(share: Share, amount: number): boolean {
    if (!this.#makeRoom(share, amount) || share.released) return false;
    this.change(share, amount);
    return true;
  }

  /** For `QuotaShare`: adds units, or removes them if `amount` is negative. */
  change(share: Share, amount: number): void {
    share.amount += amount;
    this.used += amount;
    for (const group of share.groups) group.amount += amount;
  }

  #fullLevel(holder: QuotaHolder, position: Position | null, amount: number): QuotaLevel | null {
    const { perKey, perNode, total, reserved = 0, ...limits } = this.#limits();
    if (isFull(this.#keys.children.get(keyOf(holder)), perKey, amount)) return 'key';
    if (isFull(this.#nodes.children.get(holder.node), perNode, amount)) return 'node';
    if (position !== null) {
      const network = this.#strangers.children.get(position[0]);
      if (position[0] !== THIS_MACHINE || this.#countLoopback) {
        const { perSource, perNetwork, perLentSource = perSource, perLentNetwork = perNetwork } = limits;
        const isLent = position[0] === LENT_NETWORK;
        if (isFull(network?.children.get(position[1]), isLent ? perLentSource : perSource, amount)) return 'source';
        if (isFull(network, isLent ? perLentNetwork : perNetwork, amount)) return 'network';
      }
      if (isFull(this.#strangers, total - reserved, amount)) return 'total';
    }
    return this.used + amount <= total ? null : 'total';
  }

  #makeRoom(share: Share, amount: number): boolean {
    for (;;) {
      const level = this.#fullLevel(share.holder, share.position, amount);
      if (level === null) return true;
      const victim = this.#victim(level, share, amount);
      if (victim === null) return false;
      victim.release();
      victim.onEvict?.();
    }
  }

  /** The share to evict at a full level; null if there is none. */
  #victim(level: QuotaLevel, share: Share, amount: number): Share | null {
    const { holder, position } = share;
    if (level === 'key') return this.#ownYields ? idlest(this.#keys.children.get(keyOf(holder)), share) : null;
    if (level === 'node') {
      const node = this.#nodes.children.get(holder.node);
      const stranger = position === null ? idlestStranger(node, keyOf(holder)) : null;
      return stranger ?? (this.#ownYields ? idlest(node, share) : null);
    }
    if (position === null) return largest(this.#strangers);
    const ofNetwork = this.#strangers.children.get(position[0]);
    if (level === 'total') return larger(this.#strangers, position, amount);
    if (level === 'network') return larger(ofNetwork, position.slice(1), amount);
    return larger(ofNetwork?.children.get(position[1]), position.slice(2), amount);
  }
}

function isFull(group: Group | undefined, limit: number | undefined, amount: number): boolean {
  return limit !== undefined && (group?.amount ?? 0) + amount > limit;
}

function keyOf({ key, node }: QuotaHolder): string {
  return key ?? node;
}

function positionOf({ node, source, named }: QuotaHolder): Position | null {
  if (named || source === null) return null;
  const place = sourceGroupOf(source);
  return [place.network, place.source, node];
}

/** The share of a group that has been idle longest and can be evicted, except one. */
function idlest(group: Group | undefined, except: Share | null = null): Share | null {
  for (const share of group?.shares ?? []) if (share !== except && share.onEvict !== undefined) return share;
  return null;
}

/** The share of a node's strangers, other than one key, that has been idle longest and can be evicted. */
function idlestStranger(node: Group | undefined, except: string): Share | null {
  for (const share of node?.shares ?? [])
    if (share.position !== null && share.onEvict !== undefined && keyOf(share.holder) !== except) return share;
  return null;
}

function largestChild(group: Group): readonly [name: string, group: Group] | null {
  let found: readonly [string, Group] | null = null;
  for (const entry of group.children) if (entry[1].amount > (found?.[1].amount ?? 0)) found = entry;
  return found;
}

/** The idlest share of the largest holder in a group. */
function largest(group: Group): Share | null {
  const child = largestChild(group);
  return child === null ? idlest(group) : largest(child[1]);
}

/**
 * A share of a holder that has more than the new holder would have, compared at each level below a group.
 * @param own names of the new holder's groups below it
 */
function larger(group: Group | undefined, own: readonly string[], amount: number): Share | null {
  const [name, ...below] = own;
  if (group === undefined || name === undefined) return null;
  const child = largestChild(group);
  if (child === null) return null;
  const mine = group.children.get(name);
  if (child[0] !== name && child[1].amount > (mine?.amount ?? 0) + amount) return largest(child[1]);
  return mine === undefined ? null : larger(mine, below, amount);
}

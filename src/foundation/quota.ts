/**
 * One quota for every bounded resource: connections, streams, calls, bytes. It counts per key, per node, per source and
 * per network, because each of these costs a stranger more than the one before: an AID and a node key are free, an
 * address costs a little, a network costs more.
 *
 * - Named holders (the owner let them in by name, or this node uses them) count against their key, their node and the
 *   total. Strangers also count against their source and their network, and never use the reserved part of the total.
 * - A full level makes room: for a named holder by evicting a stranger; for a stranger only by evicting one that holds
 *   more. The victim is found from the top: the network that holds most, in it the source that holds most, then the
 *   node, and there the share that was idle longest.
 */
import { IP_SCOPE, ipScope, networkOf, subscriberOf } from './ip.ts';
import { LruCache } from './lru-cache.ts';

/** A level at which a quota counts, from the cheapest identity to the whole. */
export type QuotaLevel = 'key' | 'node' | 'source' | 'network' | 'total';

/** Limits in units of the resource (connections, calls, bytes). A level that is left out has no limit of its own. */
export interface QuotaLimits {
  readonly perKey?: number;
  readonly perNode?: number;
  /** Of the strangers at one IPv4 address or IPv6 /64. */
  readonly perSource?: number;
  /** Of the strangers in one IPv4 /24 or IPv6 /48. */
  readonly perNetwork?: number;
  readonly total: number;
  /** Part of `total` that strangers never use. */
  readonly reserved?: number;
}

/** Who holds a share of a quota. */
export interface QuotaHolder {
  /** The smallest thing that has a share, such as a pair of agents; the node if left out. */
  readonly key?: string;
  /** Key of the other node, as text. */
  readonly node: string;
  /** IP address of the other node, or another name if its address is unknown; null for programs on this machine. */
  readonly source: string | null;
  /** The owner let it in by name, or this node uses it; so are programs on this machine. */
  readonly named: boolean;
}

export interface TakeOptions {
  /** Units to take; 1 if left out. */
  readonly amount?: number;
  /** Ends what holds the share, to make room for another. Its units are already given back. Without it, the share stays. */
  readonly onEvict?: () => void;
}

/** Units that one holder has taken. */
export interface QuotaShare {
  readonly amount: number;
  /** Takes more units; false, and nothing taken, if there is no room. */
  grow(amount: number): boolean;
  /** Gives units back, at most those that it has. */
  shrink(amount: number): void;
  /** It was used: others are evicted before it. */
  touch(): void;
  /** Gives all units back. A second call does nothing. */
  release(): void;
}

/** Sources whose network and subscriber are remembered: reading an IPv6 address is expensive. */
const MAX_REMEMBERED_SOURCES = 1024;
/** Network of every source whose address is unknown: such names are free. */
const UNKNOWN = 'unknown';
/** Source and network of the nodes on this machine. They have no limit there, since all its programs are one person's. */
export const THIS_MACHINE = 'here';

/** Where strangers are counted. */
export interface SourceGroup {
  readonly source: string;
  readonly network: string;
}

const sourceGroups = new LruCache<string, SourceGroup>({ maxEntries: MAX_REMEMBERED_SOURCES });

/** The subscriber and the network of a source; `HERE` for both on this machine. */
export function sourceGroupOf(source: string): SourceGroup {
  const known = sourceGroups.get(source);
  if (known !== undefined) return known;
  const place =
    ipScope(source) === IP_SCOPE.loopback
      ? { source: THIS_MACHINE, network: THIS_MACHINE }
      : { source: subscriberOf(source), network: networkOf(source) ?? UNKNOWN };
  sourceGroups.set(source, place);
  return place;
}

/** A level's holder, and what its strangers hold. */
class Group {
  amount = 0;
  readonly children = new Map<string, Group>();
  /** Only at the lowest level; the share that was idle longest comes first. */
  readonly shares = new Set<Share>();

  child(name: string): Group {
    const known = this.children.get(name);
    if (known !== undefined) return known;
    const made = new Group();
    this.children.set(name, made);
    return made;
  }
}

/** The groups that a stranger's share belongs to. */
type Position = readonly [network: string, source: string, node: string];

class Share implements QuotaShare {
  readonly #quota: Quota;
  readonly holder: QuotaHolder;
  /** Null for named holders, which are never evicted. */
  readonly position: Position | null;
  readonly onEvict: (() => void) | undefined;
  amount = 0;
  released = false;

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
    if (!this.released) this.#quota.touch(this);
  }

  release(): void {
    if (this.released) return;
    this.#quota.change(this, -this.amount);
    this.released = true;
    this.#quota.remove(this);
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
  #total = 0;

  /**
   * @param limits fixed, or asked each time
   * @param ownYields a holder that has used up its key's or node's limit loses its own idlest share instead of being
   *   refused: right where old shares are likely dead
   * @param countLoopback nodes on this machine have the limits of one source and one network too
   */
  constructor(limits: QuotaLimits | (() => QuotaLimits), { ownYields = false, countLoopback = false } = {}) {
    this.#limits = typeof limits === 'function' ? limits : () => limits;
    this.#ownYields = ownYields;
    this.#countLoopback = countLoopback;
  }

  /** Units that are taken. */
  get used(): number {
    return this.#total;
  }

  /** Units that a node has taken. */
  usedBy(node: string): number {
    return this.#nodes.children.get(node)?.amount ?? 0;
  }

  /** The level that leaves no room for a holder, before anything is evicted; null if there is room. */
  fullLevel(holder: QuotaHolder, amount = 1): QuotaLevel | null {
    return this.#fullLevel(holder, positionOf(holder), amount);
  }

  /** Takes units, after evicting what has to make room; null if there is no room. */
  take(holder: QuotaHolder, { amount = 1, onEvict }: TakeOptions = {}): QuotaShare | null {
    const share = new Share(this, holder, positionOf(holder), onEvict);
    if (!this.#makeRoom(share, amount)) return null;
    this.#add(share);
    this.change(share, amount);
    return share;
  }

  /** For `QuotaShare.grow`. */
  grow(share: Share, amount: number): boolean {
    if (!this.#makeRoom(share, amount) || share.released) return false;
    this.change(share, amount);
    return true;
  }

  /** For `QuotaShare`: counts units in or, below 0, out. */
  change(share: Share, amount: number): void {
    share.amount += amount;
    this.#total += amount;
    for (const group of this.#groupsOf(share)) group.amount += amount;
  }

  /** For `QuotaShare.touch`. */
  touch(share: Share): void {
    for (const group of [this.#keyGroup(share.holder), this.#nodes.child(share.holder.node), this.#leafOf(share)])
      if (group?.shares.delete(share)) group.shares.add(share);
  }

  /** For `QuotaShare.release`: forgets a share and the groups that it leaves empty. */
  remove(share: Share): void {
    const { holder, position } = share;
    const drop = (parent: Group, name: string): void => {
      const group = parent.children.get(name);
      if (group === undefined) return;
      group.shares.delete(share);
      if (group.shares.size === 0 && group.children.size === 0) parent.children.delete(name);
    };
    drop(this.#keys, keyOf(holder));
    drop(this.#nodes, holder.node);
    if (position === null) return;
    const [network, source, node] = position;
    const ofNetwork = this.#strangers.children.get(network);
    const ofSource = ofNetwork?.children.get(source);
    if (ofSource !== undefined) drop(ofSource, node);
    if (ofNetwork !== undefined) drop(ofNetwork, source);
    drop(this.#strangers, network);
  }

  #keyGroup(holder: QuotaHolder): Group {
    return this.#keys.child(keyOf(holder));
  }

  #leafOf({ position }: Share): Group | null {
    if (position === null) return null;
    const [network, source, node] = position;
    return this.#strangers.child(network).child(source).child(node);
  }

  #groupsOf({ holder, position }: Share): readonly Group[] {
    const flat = [this.#keyGroup(holder), this.#nodes.child(holder.node)];
    if (position === null) return flat;
    const network = this.#strangers.child(position[0]);
    const source = network.child(position[1]);
    return [...flat, this.#strangers, network, source, source.child(position[2])];
  }

  #add(share: Share): void {
    this.#keyGroup(share.holder).shares.add(share);
    this.#nodes.child(share.holder.node).shares.add(share);
    this.#leafOf(share)?.shares.add(share);
  }

  #fullLevel(holder: QuotaHolder, position: Position | null, amount: number): QuotaLevel | null {
    const { perKey, perNode, perSource, perNetwork, total, reserved = 0 } = this.#limits();
    const fits = (group: Group | undefined, limit: number | undefined): boolean =>
      limit === undefined || (group?.amount ?? 0) + amount <= limit;
    if (!fits(this.#keys.children.get(keyOf(holder)), perKey)) return 'key';
    if (!fits(this.#nodes.children.get(holder.node), perNode)) return 'node';
    if (position !== null) {
      const network = this.#strangers.children.get(position[0]);
      if (position[0] !== THIS_MACHINE || this.#countLoopback) {
        if (!fits(network?.children.get(position[1]), perSource)) return 'source';
        if (!fits(network, perNetwork)) return 'network';
      }
      if (!fits(this.#strangers, total - reserved)) return 'total';
    }
    return this.#total + amount <= total ? null : 'total';
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

  /** The share to evict so that a level has more room; null if none may be. */
  #victim(level: QuotaLevel, share: Share, amount: number): Share | null {
    const { holder, position } = share;
    if (level === 'key') return this.#ownYields ? idlest(this.#keys.children.get(keyOf(holder)), share) : null;
    if (level === 'node') return this.#ownYields ? idlest(this.#nodes.children.get(holder.node), share) : null;
    if (position === null) return largest(this.#strangers);
    const ofNetwork = this.#strangers.children.get(position[0]);
    if (level === 'total') return larger(this.#strangers, position, amount);
    if (level === 'network') return larger(ofNetwork, position.slice(1), amount);
    return larger(ofNetwork?.children.get(position[1]), position.slice(2), amount);
  }
}

function keyOf({ key, node }: QuotaHolder): string {
  return key ?? node;
}

function positionOf({ node, source, named }: QuotaHolder): Position | null {
  if (named || source === null) return null;
  const place = sourceGroupOf(source);
  return [place.network, place.source, node];
}

/** The evictable share of a group that was idle longest, other than one. */
function idlest(group: Group | undefined, except: Share | null = null): Share | null {
  for (const share of group?.shares ?? []) if (share !== except && share.onEvict !== undefined) return share;
  return null;
}

function largestChild(group: Group): readonly [name: string, group: Group] | null {
  let found: readonly [string, Group] | null = null;
  for (const entry of group.children) if (entry[1].amount > (found?.[1].amount ?? 0)) found = entry;
  return found;
}

/** The idlest share of whichever holds most in a group. */
function largest(group: Group): Share | null {
  const child = largestChild(group);
  return child === null ? idlest(group) : largest(child[1]);
}

/**
 * A share of a holder that has more than the newcomer would have, compared at each level below a group.
 * @param own names of the newcomer's groups below it
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

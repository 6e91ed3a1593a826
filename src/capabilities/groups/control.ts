/**
 * Computes who belongs to a group at any point of its history. The results depend only on the control entries among the
 * ancestors of an entry (its "view"), not on the order of arrival, so all replicas agree. Rules:
 * docs/protocol-groups.md, "Membership".
 */
import type { Role } from '../../foundation/domain/groups.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { Entry } from './entry.ts';
import { bodyText, type ControlKind, createFields, isControl, rekeyOf } from './kinds.ts';

/** The parts of a control entry that affect membership. */
export interface ControlFact {
  readonly kind: ControlKind;
  readonly author: Aid;
  /** The agent that the entry is about. For `create`, `join`, `leave`, `key` and `rekey` it is the author. */
  readonly subject: Aid;
  /** `role`: whether it appoints an admin. */
  readonly admin: boolean;
  /** `join`: by the join secret instead of an invitation. */
  readonly bySecret: boolean;
  /** `create` and `rekey`: the public key of the join secret. Null for other kinds. */
  readonly joinKey: Uint8Array | null;
  /** When the author's delegation was issued, Unix seconds. */
  readonly issuedAt: number;
}

interface Node extends ControlFact {
  /** Index in the control log. */
  readonly n: number;
  /** Its control ancestors. */
  readonly seen: BitSet;
}

/** The control entries among the ancestors of some entry. */
export interface View {
  readonly seen: Pick<BitSet, 'has'>;
  /** Cache of computed roles. Null means that the agent is not a member. */
  readonly roles: Map<Aid, Role | null>;
}

/** Cached views. Nearby entries share a view. */
const MAX_VIEWS = 256;
/**
 * Limit of control entries in the frontier of one entry. Without a limit, a member could write an entry whose position
 * takes minutes to compute.
 */
export const MAX_FRONTIER = 256;

export class ControlLog {
  readonly #nodes: Node[] = [];
  /** Entries by the agent that they are about and by kind, and removals by their author. */
  readonly #bySubject = new Map<Aid, Map<ControlKind, Node[]>>();
  readonly #removalsBy = new Map<Aid, Node[]>();
  readonly #rekeys: Node[] = [];
  /** All agents that have ever joined, the creator first. */
  readonly #joiners = new Set<Aid>();
  /** Shared by the control entries. Views are temporary and do not use it. */
  readonly #parts = new BlockPool();
  readonly #views = new LruCache<string, View>({ maxEntries: MAX_VIEWS });
  #everything: View | null = null;

  get size(): number {
    return this.#nodes.length;
  }

  /** Adds an admitted entry and returns its index. `frontier` holds its newest control ancestors. */
  add(fact: ControlFact, frontier: readonly number[]): number {
    const n = this.#nodes.length;
    const node: Node = { ...fact, n, seen: this.#closure(frontier, this.#parts) };
    this.#nodes.push(node);
    for (const list of this.#lists(node)) list.push(node);
    if (fact.kind === 'create' || fact.kind === 'join') this.#joiners.add(fact.author);
    this.#everything = null;
    return n;
  }

  /** Removes all entries from index `size` on, after a transaction was rolled back. */
  truncate(size: number): void {
    for (const node of this.#nodes.splice(size).reverse()) {
      for (const list of this.#lists(node)) list.pop();
      if (node.kind === 'join' && this.#list(node.author, 'join').length === 0 && !this.#isCreator(node.author))
        this.#joiners.delete(node.author);
    }
    this.#views.clear();
    this.#parts.clear();
    this.#everything = null;
  }

  /**
   * Filters out control entries that are ancestors of another given one. Ascending, or null if there
   * are more than `MAX_FRONTIER`.
   */
  newest(places: Iterable<number>): number[] | null {
    const newest: Node[] = [];
    // Ancestors have smaller indexes.
    for (const n of [...new Set(places)].sort((a, b) => b - a)) {
      const node = this.#nodes[n];
      if (node === undefined || newest.some((other) => other.seen.has(n))) continue;
      if (newest.push(node) > MAX_FRONTIER) return null;
    }
    return newest.map(({ n }) => n).reverse();
  }

  /** The view of an entry with this frontier. */
  view(frontier: readonly number[]): View {
    const key = frontier.join(',');
    const known = this.#views.get(key);
    if (known !== undefined) return known;
    const view: View = { seen: this.#closure(frontier), roles: new Map() };
    this.#views.set(key, view);
    return view;
  }

  /** The view that includes the whole group. */
  everything(): View {
    this.#everything ??= { seen: { has: () => true }, roles: new Map() };
    return this.#everything;
  }

  /** The role of an agent in a view, or null if it is not a member. */
  role(view: View, aid: Aid): Role | null {
    const known = view.roles.get(aid);
    if (known !== undefined) return known;
    const role = this.#roleOf(view, aid);
    view.roles.set(aid, role);
    return role;
  }

  members(view: View): { aid: Aid; role: Role }[] {
    return [...this.#joiners].flatMap((aid) => {
      const role = this.role(view, aid);
      return role === null ? [] : [{ aid, role }];
    });
  }

  /** Whether a view has `max` members or more. */
  isFull(view: View, max: number): boolean {
    return this.#joiners.size >= max && this.members(view).length >= max;
  }

  /** The valid public join keys: the keys of the newest effective `rekey` entries, or the first key. */
  joinKeys(view: View): Uint8Array[] {
    const newest = this.#newestRekeys(view);
    return (newest.length > 0 ? newest : this.#nodes.slice(0, 1)).flatMap(({ joinKey }) => joinKey ?? []);
  }

  /** The index of a `rekey` entry whose secret is valid, or null if the first secret is still valid. */
  rekeyIndex(view: View): number | null {
    return this.#newestRekeys(view)[0]?.n ?? null;
  }

  #newestRekeys(view: View): Node[] {
    const newest: Node[] = [];
    for (const rekey of this.#rekeys.toReversed())
      if (this.#isRekeyEffective(view, rekey) && !newest.some((other) => other.seen.has(rekey.n))) newest.push(rekey);
    return newest;
  }

  /** Whether the agent has a valid invitation: effective, and not followed by or concurrent with a removal. */
  isInvited(view: View, aid: Aid): boolean {
    const out = this.#exits(view, aid);
    return this.#of(view, aid, 'invite').some(
      (invite) => this.#isEffective(view, invite) && out.every((exit) => invite.seen.has(exit.n)),
    );
  }

  /** Whether the agent was removed. The join secret does not admit it again. */
  isBanned(view: View, aid: Aid): boolean {
    return this.#of(view, aid, 'remove').some((removal) => this.isRemovalEffective(view, removal.n));
  }

  /** When the author's newest delegation in its control entries of a view was issued, Unix seconds. */
  newestDelegation(view: View, aid: Aid): number {
    const own = OWN_KINDS.flatMap((kind) => this.#of(view, aid, kind));
    return own.reduce((newest, node) => Math.max(newest, node.issuedAt), 0);
  }

  /** Indexes of all removals of an agent, effective or not. */
  removalsOf(aid: Aid): number[] {
    return this.#list(aid, 'remove').map(({ n }) => n);
  }

  /** Indexes of all removals that an agent has written. */
  removalsBy(author: Aid): number[] {
    return (this.#removalsBy.get(author) ?? []).map(({ n }) => n);
  }

  /**
   * Whether a removal is effective in a view. Removals by the creator always are. A removal by an admin is not if the
   * creator concurrently removed or demoted that admin.
   */
  isRemovalEffective(view: View, index: number): boolean {
    const removal = this.#nodes[index];
    return removal !== undefined && !this.#wasDemotedConcurrently(view, removal);
  }

  #wasDemotedConcurrently(view: View, node: Node): boolean {
    if (this.#isCreator(node.author)) return false;
    const ends = [...this.#list(node.author, 'remove'), ...this.#list(node.author, 'role')];
    return ends.some(
      (end) => !end.admin && this.#isCreator(end.author) && view.seen.has(end.n) && areConcurrent(end, node),
    );
  }

  /** False if its author was concurrently removed or demoted. */
  #isRekeyEffective(view: View, rekey: Node): boolean {
    return view.seen.has(rekey.n) && !this.#wasDemotedConcurrently(view, rekey) && this.#isEffective(view, rekey);
  }

  #closure(frontier: readonly number[], shared?: BlockPool): BitSet {
    const nodes = frontier.map((n) => {
      const node = this.#nodes[n];
      if (node === undefined) throw new RangeError('no such control entry');
      return node.seen;
    });
    return BitSet.union(nodes, frontier, shared);
  }

  #list(aid: Aid, kind: ControlKind): Node[] {
    return this.#bySubject.get(aid)?.get(kind) ?? [];
  }

  /** The lists that contain an entry. */
  #lists({ kind, subject, author }: ControlFact): Node[][] {
    const about = this.#bySubject.get(subject) ?? new Map<ControlKind, Node[]>();
    this.#bySubject.set(subject, about);
    const lists = [about.get(kind) ?? []];
    about.set(kind, lists[0] ?? []);
    if (kind === 'rekey') lists.push(this.#rekeys);
    if (kind === 'remove') {
      const by = this.#removalsBy.get(author) ?? [];
      this.#removalsBy.set(author, by);
      lists.push(by);
    }
    return lists;
  }

  #isCreator(aid: Aid): boolean {
    return this.#nodes[0]?.author === aid;
  }

  /** Entries of a kind about an agent, newest first, because the newest decides most often. */
  #of(view: View, aid: Aid, kind: ControlKind): Node[] {
    return this.#list(aid, kind)
      .filter((node) => view.seen.has(node.n))
      .reverse();
  }

  /** The effective removals and the leaves of an agent. */
  #exits(view: View, aid: Aid): Node[] {
    const removals = this.#of(view, aid, 'remove').filter(({ n }) => this.isRemovalEffective(view, n));
    return [...removals, ...this.#of(view, aid, 'leave')];
  }

  /** False if the author was concurrently removed. */
  #isEffective(view: View, node: Node): boolean {
    return !this.#of(view, node.author, 'remove').some(
      (removal) => areConcurrent(removal, node) && this.isRemovalEffective(view, removal.n),
    );
  }

  /** Whether a join is by the join secret, or by an invitation that is effective in the view. */
  #isJoinValid(view: View, join: Node): boolean {
    if (join.bySecret) return true;
    const invites = this.#of(view, join.subject, 'invite').filter(({ n }) => join.seen.has(n));
    return invites.some((invite) => this.#isEffective(view, invite));
  }

  #roleOf(view: View, aid: Aid): Role | null {
    // protocol-groups.md, step 3
    if (this.#isCreator(aid)) return 'creator';
    const exits = this.#exits(view, aid);
    const isIn = this.#of(view, aid, 'join').some(
      (join) => exits.every((exit) => join.seen.has(exit.n)) && this.#isJoinValid(view, join),
    );
    if (!isIn) return null;
    const roles = this.#of(view, aid, 'role');
    const ends = [...exits, ...roles.filter(({ admin }) => !admin)];
    const isAdmin = roles.some((role) => role.admin && ends.every((end) => role.seen.has(end.n)));
    return isAdmin ? 'admin' : 'member';
  }
}

/** Kinds that are always about their author. */
const OWN_KINDS: readonly ControlKind[] = ['create', 'join', 'leave', 'key', 'rekey'];

function areConcurrent(a: Node, b: Node): boolean {
  return a !== b && !a.seen.has(b.n) && !b.seen.has(a.n);
}

/** The effect of an entry on membership, or null if it has none. */
export function controlFact(entry: Entry): ControlFact | null {
  const { kind, author } = entry;
  if (!isControl(kind)) return null;
  const isAboutOther = kind === 'invite' || kind === 'remove' || kind === 'role';
  return {
    kind,
    author,
    subject: isAboutOther ? (entry.to?.[0] ?? author) : author,
    admin: kind === 'role' && bodyText(entry) === 'admin',
    bySecret: kind === 'join' && entry.proof !== undefined,
    joinKey: kind === 'create' ? createFields(entry).joinKey : kind === 'rekey' ? rekeyOf(entry).publicKey : null,
    issuedAt: entry.delegation.issuedAt,
  };
}

// Sets of small integers, as bits: the control entries of a group that an entry has among its ancestors. Similar sets
// share their blocks, so a long chain of control entries, or some chains that are merged again and again, costs little
// more than the entries themselves. An attacker can defeat this by writing many chains in turn and merging a different
// selection each time. Such an entry costs up to an eighth of a byte for each control entry before it, and about as
// much again for the objects. 120,000 of them take about 650 MB; see docs/threat-model.md.

/** Integers in one block. */
const BLOCK_BITS = 2048;
const PART_SHIFT = 11;
const WORDS = BLOCK_BITS / 32;

export class BitSet {
  readonly #parts: readonly (Uint32Array | undefined)[];

  private constructor(parts: readonly (Uint32Array | undefined)[]) {
    this.#parts = parts;
  }

  /**
   * The union of some sets and some integers.
   * @param shared a pool of blocks to share, in addition to the blocks of `sets`
   */
  static union(sets: readonly BitSet[], numbers: readonly number[], shared?: BlockPool): BitSet {
    const parts: (Uint32Array | undefined)[] = [];
    const own = new Set<number>();
    const ownPart = (i: number): Uint32Array => {
      const known = parts[i];
      if (known !== undefined && own.has(i)) return known;
      const part = known === undefined ? new Uint32Array(WORDS) : Uint32Array.from(known);
      own.add(i);
      while (parts.length < i) parts.push(undefined);
      parts[i] = part;
      return part;
    };
    for (const set of sets)
      for (const [i, other] of set.#parts.entries()) {
        if (i === parts.length) parts.push(other);
        else if (other === undefined || other === parts[i]) continue;
        else if (parts[i] === undefined) parts[i] = other;
        else addAll(ownPart(i), other);
      }
    for (const n of numbers) {
      const part = ownPart(n >>> PART_SHIFT);
      const word = (n & (BLOCK_BITS - 1)) >>> 5;
      part[word] = (part[word] ?? 0) | (1 << (n & 31));
    }
    if (shared !== undefined)
      for (const i of own) {
        const part = parts[i];
        if (part !== undefined) parts[i] = shared.of(part);
      }
    return new BitSet(parts);
  }

  has(n: number): boolean {
    const word = this.#parts[n >>> PART_SHIFT]?.[(n & (BLOCK_BITS - 1)) >>> 5] ?? 0;
    return (word & (1 << (n & 31))) !== 0;
  }
}

function addAll(part: Uint32Array, other: Uint32Array): void {
  for (const [i, word] of other.entries()) part[i] = (part[i] ?? 0) | word;
}

/**
 * Returns one shared block for all blocks with equal content. Stores the blocks until `clear`, so use it only for sets
 * that are stored themselves.
 */
export class BlockPool {
  /** By hash. Of blocks with the same hash, the latest. */
  readonly #byHash = new Map<number, Uint32Array>();

  /** A shared block with the same content. */
  of(part: Uint32Array): Uint32Array {
    const hash = hashOf(part);
    const known = this.#byHash.get(hash);
    if (known?.every((word, i) => word === part[i]) === true) return known;
    this.#byHash.set(hash, part);
    return part;
  }

  clear(): void {
    this.#byHash.clear();
  }
}

/** FNV-1a over the words. */
function hashOf(part: Uint32Array): number {
  let hash = 0x811c9dc5;
  for (const word of part) hash = Math.imul(hash ^ word, 0x01000193);
  return hash;
}

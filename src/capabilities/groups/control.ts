/**
 * Who belongs to a group, at any point of its history. Everything here is a function of the control
 * entries that an entry has among its ancestors (its "view"), never of the order of arrival, so
 * that all replicas come to the same result. Rules: docs/protocol-groups.md, "Membership".
 */
import type { Role } from '../../foundation/domain/groups.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { Bits, SharedParts } from './bits.ts';
import type { Entry } from './entry.ts';
import { bodyText, type ControlKind, createFields, isControl, rekeyOf } from './kinds.ts';

/** What of a control entry matters for membership. */
export interface ControlFact {
  readonly kind: ControlKind;
  readonly author: Aid;
  /** Whom it is about: the author itself for `create`, `join`, `leave` and `key`. */
  readonly subject: Aid;
  /** `role`: whether it makes an admin. */
  readonly admin: boolean;
  /** `join`: by the join secret, not by an invitation. */
  readonly bySecret: boolean;
  /** `create` and `rekey`: the public key of the join secret; null for others. */
  readonly joinKey: Uint8Array | null;
  /** Unix seconds at which the author's delegation was issued. */
  readonly issuedAt: number;
}

interface Node extends ControlFact {
  /** Its place among the control entries. */
  readonly n: number;
  /** Its control ancestors. */
  readonly seen: Bits;
}

/** What can be seen from somewhere in the group. */
export interface View {
  readonly seen: Pick<Bits, 'has'>;
  /** Roles that were asked for: null for those outside. */
  readonly roles: Map<Aid, Role | null>;
}

/** Views that are remembered: neighbours in the log share theirs. */
const MAX_VIEWS = 256;
/**
 * Newest control ancestors of one entry. Whoever writes a control entry behind them makes one of
 * many; without a bound a member could make an entry that takes minutes to place.
 */
export const MAX_FRONTIER = 256;

export class ControlLog {
  readonly #nodes: Node[] = [];
  /** Entries about an agent, by kind; and whose removals an agent has written. */
  readonly #about = new Map<Aid, Map<ControlKind, Node[]>>();
  readonly #removalsBy = new Map<Aid, Node[]>();
  readonly #rekeys: Node[] = [];
  /** Whoever has ever joined, the creator first. */
  readonly #joiners = new Set<Aid>();
  /** Of what the entries have seen; views go again. */
  readonly #parts = new SharedParts();
  readonly #views = new LruCache<string, View>({ maxEntries: MAX_VIEWS });
  #everything: View | null = null;

  get size(): number {
    return this.#nodes.length;
  }

  /** Adds an entry that was admitted; returns its place. `frontier` are its newest control ancestors. */
  add(fact: ControlFact, frontier: readonly number[]): number {
    const n = this.#nodes.length;
    const node: Node = { ...fact, n, seen: this.#closure(frontier, this.#parts) };
    this.#nodes.push(node);
    for (const list of this.#lists(node)) list.push(node);
    if (fact.kind === 'create' || fact.kind === 'join') this.#joiners.add(fact.author);
    this.#everything = null;
    return n;
  }

  /** Takes back everything from place `size` on: after a transaction that was not kept. */
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
   * The newest of the given control entries: those that no other one has seen. Ascending; null where they are
   * more than `MAX_FRONTIER`.
   */
  newest(places: Iterable<number>): number[] | null {
    const newest: Node[] = [];
    // Whoever has seen an entry comes behind it.
    for (const n of [...new Set(places)].sort((a, b) => b - a)) {
      const node = this.#nodes[n];
      if (node === undefined || newest.some((other) => other.seen.has(n))) continue;
      if (newest.push(node) > MAX_FRONTIER) return null;
    }
    return newest.map(({ n }) => n).reverse();
  }

  /** The view of an entry with these newest control ancestors. */
  view(frontier: readonly number[]): View {
    const key = frontier.join(',');
    const known = this.#views.get(key);
    if (known !== undefined) return known;
    const view: View = { seen: this.#closure(frontier), roles: new Map() };
    this.#views.set(key, view);
    return view;
  }

  /** The view of somebody who has the whole group. */
  everything(): View {
    this.#everything ??= { seen: { has: () => true }, roles: new Map() };
    return this.#everything;
  }

  /** The role of an agent in a view; null where it is no member. */
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

  /** True where a view has as many members as a group takes. */
  isFull(view: View, max: number): boolean {
    return this.#joiners.size >= max && this.members(view).length >= max;
  }

  /** The public join keys that let in: those of the newest `rekey` entries that count, otherwise the first one. */
  joinKeys(view: View): Uint8Array[] {
    const newest = this.#newestRekeys(view);
    return (newest.length > 0 ? newest : this.#nodes.slice(0, 1)).flatMap(({ joinKey }) => joinKey ?? []);
  }

  /** The place of a `rekey` entry whose secret lets in; null where it is still the first one. */
  rekeyPlace(view: View): number | null {
    return this.#newestRekeys(view)[0]?.n ?? null;
  }

  #newestRekeys(view: View): Node[] {
    const newest: Node[] = [];
    for (const rekey of this.#rekeys.toReversed())
      if (this.#rekeyCounts(view, rekey) && !newest.some((other) => other.seen.has(rekey.n))) newest.push(rekey);
    return newest;
  }

  /** True where an invitation of this agent stands: it counts, and no removal came beside or after it. */
  isInvited(view: View, aid: Aid): boolean {
    const out = this.#exits(view, aid);
    return this.#of(view, aid, 'invite').some(
      (invite) => this.#isInForce(view, invite) && out.every((exit) => invite.seen.has(exit.n)),
    );
  }

  /** True where the agent was removed: the join secret does not let it in again. */
  isBanned(view: View, aid: Aid): boolean {
    return this.#of(view, aid, 'remove').some((removal) => this.removalCounts(view, removal.n));
  }

  /** Unix seconds of the author's newest delegation that its control entries in a view carry. */
  newestDelegation(view: View, aid: Aid): number {
    const own = OWN_KINDS.flatMap((kind) => this.#of(view, aid, kind));
    return own.reduce((newest, node) => Math.max(newest, node.issuedAt), 0);
  }

  /** Places of all removals of an agent, whether they count or not. */
  removalsOf(aid: Aid): number[] {
    return this.#list(aid, 'remove').map(({ n }) => n);
  }

  /** Places of every removal that an agent has written. */
  removalsBy(author: Aid): number[] {
    return (this.#removalsBy.get(author) ?? []).map(({ n }) => n);
  }

  /**
   * True where a removal counts in a view. Those of the creator always do. Those of an admin do not
   * where the creator took the admin's office away beside them.
   */
  removalCounts(view: View, place: number): boolean {
    const removal = this.#nodes[place];
    return removal !== undefined && !this.#lostOfficeBeside(view, removal);
  }

  #lostOfficeBeside(view: View, node: Node): boolean {
    if (this.#isCreator(node.author)) return false;
    const ends = [...this.#list(node.author, 'remove'), ...this.#list(node.author, 'role')];
    return ends.some(
      (end) => !end.admin && this.#isCreator(end.author) && view.seen.has(end.n) && areConcurrent(end, node),
    );
  }

  /** False where its author was removed beside it, or lost the office there. */
  #rekeyCounts(view: View, rekey: Node): boolean {
    return view.seen.has(rekey.n) && !this.#lostOfficeBeside(view, rekey) && this.#isInForce(view, rekey);
  }

  #closure(frontier: readonly number[], shared?: SharedParts): Bits {
    const nodes = frontier.map((n) => {
      const node = this.#nodes[n];
      if (node === undefined) throw new RangeError('no such control entry');
      return node.seen;
    });
    return Bits.union(nodes, frontier, shared);
  }

  #list(aid: Aid, kind: ControlKind): Node[] {
    return this.#about.get(aid)?.get(kind) ?? [];
  }

  /** The lists that an entry is in. */
  #lists({ kind, subject, author }: ControlFact): Node[][] {
    const about = this.#about.get(subject) ?? new Map<ControlKind, Node[]>();
    this.#about.set(subject, about);
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

  /** Entries of a kind about an agent, the newest first: what came last decides most often. */
  #of(view: View, aid: Aid, kind: ControlKind): Node[] {
    return this.#list(aid, kind)
      .filter((node) => view.seen.has(node.n))
      .reverse();
  }

  /** What took an agent out of the group, as far as it counts. */
  #exits(view: View, aid: Aid): Node[] {
    const removals = this.#of(view, aid, 'remove').filter(({ n }) => this.removalCounts(view, n));
    return [...removals, ...this.#of(view, aid, 'leave')];
  }

  /** False where the author was removed beside it. */
  #isInForce(view: View, node: Node): boolean {
    return !this.#of(view, node.author, 'remove').some(
      (removal) => areConcurrent(removal, node) && this.removalCounts(view, removal.n),
    );
  }

  /** True where what a member came in by still counts in a view. */
  #isGrounded(view: View, join: Node): boolean {
    if (join.bySecret) return true;
    const invites = this.#of(view, join.subject, 'invite').filter(({ n }) => join.seen.has(n));
    return invites.some((invite) => this.#isInForce(view, invite));
  }

  #roleOf(view: View, aid: Aid): Role | null {
    // protocol-groups.md, step 3
    if (this.#isCreator(aid)) return 'creator';
    const exits = this.#exits(view, aid);
    const isIn = this.#of(view, aid, 'join').some(
      (join) => exits.every((exit) => join.seen.has(exit.n)) && this.#isGrounded(view, join),
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

/** What an entry says about membership; null where it says nothing. */
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

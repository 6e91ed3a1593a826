/** One agent's copy of a group. It admits entries of others according to the rules, and composes the agent's own. */
import type { Role } from '../../foundation/domain/groups.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { EntryFact } from '../../foundation/store/group-entries.ts';
import type { GroupRow } from '../../foundation/store/groups.ts';
import { admissionProblem } from './admission.ts';
import { refreshTitle, updateHidden } from './consequences.ts';
import { ControlLog, controlFact, MAX_FRONTIER } from './control.ts';
import { decodeEntry, type Entry, type EntryContent } from './entry.ts';
import { isContent } from './kinds.ts';
import { type Position, positionAfter, selectParents } from './position.ts';
import type { EntryDraft, GroupsDependencies } from './types.ts';

/** A replica admits no entry beyond this number. */
export const MAX_GROUP_ENTRIES = 220_000;
/** Limit of entries of one group that wait for missing parents. */
const MAX_WAITING = 256;
/** Limit of heads that are considered as parents of a new entry. */
const MAX_PARENT_CANDIDATES = 512;
/** Entries that are further ahead of this clock are not admitted yet, milliseconds. */
export const MAX_AHEAD_MS = 600_000;

/** With more control entries than this in the frontier, the next entry of the agent must merge them first. */
const MERGE_ABOVE: number = MAX_FRONTIER / 4;
/** Kinds that can change the title. */
const TITLE_KINDS: readonly string[] = ['title', 'create', 'remove', 'role'];

/** The result of `admit`. */
export interface AdmitResult {
  readonly added: readonly Entry[];
  /** Some entries wait for missing parents. */
  readonly waiting: boolean;
  /** Some entries are dated too far in the future. They may be offered again later. */
  readonly early: boolean;
  readonly refused: number;
}

/** The progress of one call of `admit`. */
interface AdmitProgress {
  /** Entries with a later time are not admitted, Unix milliseconds. */
  readonly latest: number;
  readonly added: Entry[];
  /** IDs of entries that no longer wait for parents. */
  readonly settled: string[];
  early: boolean;
  refused: number;
}

type ReplicaDependencies = Pick<GroupsDependencies, 'groups' | 'entries'>;

export class Replica {
  readonly rid: number;
  readonly aid: Aid;
  readonly groupId: string;
  readonly creator: Aid;
  readonly control: ControlLog = new ControlLog();
  readonly #deps: ReplicaDependencies;
  /** Entries that wait for a missing parent, by ID. */
  readonly #waiting = new Map<string, { readonly entry: Entry; readonly missing: string }>();
  #maxSeq: number;

  constructor(row: GroupRow, dependencies: ReplicaDependencies) {
    this.#deps = dependencies;
    this.rid = row.rid;
    this.aid = row.aid;
    this.groupId = row.groupId;
    this.creator = row.creator;
    this.#maxSeq = row.maxSeq;
    for (const { bytes, frontier } of dependencies.entries.control(row.rid))
      this.#addControl(decodeEntry(bytes), frontier);
  }

  get maxSeq(): number {
    return this.#maxSeq;
  }

  has(id: string): boolean {
    return this.#deps.entries.has(this.rid, id);
  }

  /** The role of an agent according to all entries here, or null if it is not a member. */
  role(aid: Aid): Role | null {
    return this.control.role(this.control.everything(), aid);
  }

  members(): { aid: Aid; role: Role }[] {
    return this.control.members(this.control.everything());
  }

  /** All members except the agent itself. */
  others(): Aid[] {
    return this.members().flatMap(({ aid }) => (aid === this.aid ? [] : [aid]));
  }

  /** Whether a removal is effective according to all entries here. `removal` is its index in the control log. */
  readonly isEffective = (removal: number): boolean =>
    this.control.isRemovalEffective(this.control.everything(), removal);

  /**
   * Admits entries with verified signatures. `alongside` runs in the same transaction if any entry was added.
   * @param latest entries with a later time are not admitted, Unix milliseconds
   */
  admit(entries: readonly Entry[], latest: number, alongside: (added: readonly Entry[]) => void): AdmitResult {
    const controlSize = this.control.size;
    const maxSeq = this.#maxSeq;
    const progress: AdmitProgress = { latest, added: [], settled: [], early: false, refused: 0 };
    const { added, settled } = progress;
    try {
      this.#deps.groups.transaction(() => {
        for (let queue = entries; queue.length > 0; ) {
          const before = added.length;
          for (const entry of queue) this.#offer(entry, progress);
          const here = new Set(added.slice(before).map(({ id }) => id));
          queue = [...this.#waiting.values()].filter(({ missing }) => here.has(missing)).map(({ entry }) => entry);
        }
        if (added.length > 0) alongside(added);
      });
    } catch (error) {
      this.control.truncate(controlSize);
      this.#maxSeq = maxSeq;
      throw error;
    }
    for (const id of settled) this.#waiting.delete(id);
    const waiting = entries.some(({ id }) => this.#waiting.has(id));
    return { added, waiting, early: progress.early, refused: progress.refused };
  }

  /** Composes the agent's next entry, with the current heads as parents. @param now Unix milliseconds */
  compose(draft: EntryDraft, now: number): EntryContent {
    const ends = this.#nextParents(now);
    const facts = [...ends.values()];
    return {
      ...draft,
      groupId: this.groupId,
      author: this.aid,
      parents: [...ends.keys()].sort(),
      depth: Math.max(0, ...facts.map(({ depth }) => depth + 1)),
      at: Math.max(now, ...facts.map(({ at }) => at)),
    };
  }

  /** Why the rules do not admit an entry, or null if they do. Its parents must be in the replica. */
  problem(entry: Entry): string | null {
    const position = positionAfter([...this.#facts(entry.parents).values()], this.control);
    return position === null ? 'it merges too many control entries' : admissionProblem(entry, this.control, position);
  }

  /** The newest effective removal of an agent, encoded, or null if there is none. */
  removalEntry(aid: Aid): Uint8Array | null {
    const index = this.control.removalsOf(aid).findLast(this.isEffective);
    return index === undefined ? null : this.#deps.entries.controlAt(this.rid, index);
  }

  /** The current join secret, or null if no entry has changed the first one. */
  joinSecret(): Uint8Array | null {
    const index = this.control.rekeyIndex(this.control.everything());
    const bytes = index === null ? null : this.#deps.entries.controlAt(this.rid, index);
    return bytes === null ? null : (decodeEntry(bytes).body ?? null);
  }

  /** Whether the agent should write a control entry that merges concurrent ones. @param now Unix milliseconds */
  needsMerge(now: number): boolean {
    return (positionAfter([...this.#nextParents(now).values()], this.control)?.frontier.length ?? 0) > MERGE_ABOVE;
  }

  /** The entries that the agent's next entry names as parents. */
  #nextParents(now: number): ReadonlyMap<string, EntryFact> {
    const heads = this.#facts(this.#deps.entries.heads(this.rid, MAX_PARENT_CANDIDATES));
    return selectParents(this.#headsUpTo(heads, now + MAX_AHEAD_MS), this.aid, this.control);
  }

  /**
   * The heads of the group without the entries dated later than `latest`. The agent wrote those while its clock was
   * ahead. Other members do not admit them yet, nor entries that name them as a parent.
   */
  #headsUpTo(heads: ReadonlyMap<string, EntryFact>, latest: number): ReadonlyMap<string, EntryFact> {
    const { entries } = this.#deps;
    const isDue = ({ at }: EntryFact): boolean => at <= latest;
    if ([...heads.values()].every(isDue)) return heads;
    const facts = new Map(heads);
    // A loop over a map also visits the entries that are added during the loop.
    for (const [id, fact] of facts)
      if (!isDue(fact)) for (const [parent, its] of this.#facts(entries.parents(this.rid, id))) facts.set(parent, its);
    const due = [...facts].filter(([id, fact]) => isDue(fact) && !entries.hasChild(this.rid, id, fact.seq, latest));
    // No entry is due if the group was created while the clock was ahead.
    return due.length > 0 ? new Map(due) : heads;
  }

  #facts(ids: readonly string[]): ReadonlyMap<string, EntryFact> {
    const facts = ids.flatMap((id) => {
      const fact = this.#deps.entries.fact(this.rid, id);
      return fact === null ? [] : [[id, fact] as const];
    });
    if (facts.length < ids.length) throw new RangeError('a parent is missing');
    return new Map(facts);
  }

  #offer(entry: Entry, progress: AdmitProgress): void {
    const { entries } = this.#deps;
    if (entry.groupId !== this.groupId || this.#maxSeq >= MAX_GROUP_ENTRIES) return void progress.refused++;
    if (entries.has(this.rid, entry.id)) return void progress.settled.push(entry.id);
    if (entry.at > progress.latest) {
      progress.early = true;
      return;
    }
    const parents = entry.parents.map((id) => entries.fact(this.rid, id));
    const missing = entry.parents[parents.indexOf(null)];
    if (missing !== undefined) return this.#addWaiting(entry, missing);
    progress.settled.push(entry.id);
    const position = positionAfter(
      parents.filter((fact) => fact !== null),
      this.control,
    );
    const wrongCreator = entry.kind === 'create' && entry.author !== this.creator;
    if (position === null || wrongCreator || admissionProblem(entry, this.control, position) !== null)
      return void progress.refused++;
    this.#insert(entry, position);
    progress.added.push(entry);
  }

  /** Stores an entry until its parent arrives. If too many wait, the oldest one is dropped. */
  #addWaiting(entry: Entry, missing: string): void {
    this.#waiting.set(entry.id, { entry, missing });
    if (this.#waiting.size <= MAX_WAITING) return;
    const [longest = ''] = this.#waiting.keys();
    this.#waiting.delete(longest);
  }

  /** Adds a control entry to the control log and returns its index. Returns null for other entries. */
  #addControl(entry: Entry, frontier: readonly number[]): number | null {
    const fact = controlFact(entry);
    return fact === null ? null : this.control.add(fact, frontier);
  }

  #insert(entry: Entry, { frontier, view }: Position): void {
    const { groups, entries } = this.#deps;
    const { rid } = this;
    const { id, parents, depth, author, kind, at, replyTo = null, to = [], encoded: bytes } = entry;
    const seq = this.#maxSeq + 1;
    const controlNo = this.#addControl(entry, frontier);
    const others = this.control.removalsOf(author).filter((n) => n !== controlNo && !view.seen.has(n));
    const counts = author !== this.aid && isContent(kind);
    const mention = counts && to.includes(this.aid);
    const row = { id, parents, depth, author, kind, at, replyTo, controlNo, frontier, counts, mention, to, bytes };
    entries.add(rid, seq, { ...row, void: others.some(this.isEffective) });
    this.#maxSeq = seq;
    for (const n of others) entries.addConflict(rid, n, seq);
    if (kind === 'retract' && entry.ref !== undefined) {
      const role = this.control.role(view, author);
      entries.addRetract(rid, entry.ref, seq, role === 'admin' || role === 'creator');
    }
    if (controlNo !== null) updateHidden(this, entry, controlNo, seq, entries);
    if (TITLE_KINDS.includes(kind)) refreshTitle(rid, groups, entries);
  }
}

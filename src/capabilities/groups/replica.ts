/**
 * The log of a group, which all local members share, and the view of one agent on it. The log admits entries according
 * to the rules, once for all local members.
 */
import { MAX_MEMBERS, type Role } from '../../foundation/domain/groups.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { EntryFact, GroupEntryStore } from '../../foundation/store/group-entries.ts';
import type { GroupRow, GroupStore } from '../../foundation/store/groups.ts';
import { ControlLog, controlFact, MAX_FRONTIER, type View } from './control.ts';
import { decodeEntry, type Entry, type EntryContent, MAX_PARENTS, provesSecret } from './entry.ts';
import { bodyText, isContent, shapeProblem } from './kinds.ts';
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

type LogDependencies = Pick<GroupsDependencies, 'groups' | 'entries'>;

type LogRow = Pick<GroupRow, 'lid' | 'groupId' | 'creator'>;

/** The entries of a group on this node. */
export class GroupLog {
  readonly lid: number;
  readonly groupId: string;
  readonly creator: Aid;
  readonly control: ControlLog = new ControlLog();
  readonly #deps: LogDependencies;
  /** Entries that wait for a missing parent, by ID. */
  readonly #waiting = new Map<string, { readonly entry: Entry; readonly missing: string }>();
  #maxSeq: number;

  /** @param maxSeq the position of the last entry */
  constructor(row: LogRow, maxSeq: number, dependencies: LogDependencies) {
    this.#deps = dependencies;
    this.lid = row.lid;
    this.groupId = row.groupId;
    this.creator = row.creator;
    this.#maxSeq = maxSeq;
    this.#readControl();
  }

  /** Reads the entries that the import of an agent has added to the stored log. */
  catchUp(): void {
    const last = this.#deps.entries.lastSeq(this.lid);
    if (last <= this.#maxSeq) return;
    this.#readControl();
    this.#maxSeq = last;
  }

  #readControl(): void {
    for (const { bytes, frontier } of this.#deps.entries.control(this.lid).slice(this.control.size))
      this.#addControl(decodeEntry(bytes), frontier);
  }

  get maxSeq(): number {
    return this.#maxSeq;
  }

  has(id: string): boolean {
    return this.#deps.entries.has(this.lid, id);
  }

  /** The role of an agent according to all entries here, or null if it is not a member. */
  role(aid: Aid): Role | null {
    return this.control.role(this.control.everything(), aid);
  }

  members(): { aid: Aid; role: Role }[] {
    return this.control.members(this.control.everything());
  }

  /** Whether an agent may read the group: a member, an invited agent, or one that proves the join secret. */
  mayRead(aid: Aid, proof?: Uint8Array): boolean {
    if (this.role(aid) !== null) return true;
    const view = this.control.everything();
    if (this.control.isInvited(view, aid)) return true;
    if (proof === undefined || this.control.isBanned(view, aid)) return false;
    return this.control.joinKeys(view).some((key) => provesSecret(key, this.groupId, aid, proof));
  }

  /** Whether a removal is effective according to all entries here. `removal` is its index in the control log. */
  readonly isEffective = (removal: number): boolean =>
    this.control.isRemovalEffective(this.control.everything(), removal);

  /**
   * Admits entries with verified signatures. `alongside` runs in the same transaction if any entry was added.
   * @param latest entries with a later time are not admitted, Unix milliseconds
   */
  admit(entries: readonly Entry[], latest: number, alongside: (added: readonly Entry[]) => void): AdmitResult {
    this.catchUp();
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

  /** Composes the next entry of an agent, with the current heads as parents. @param now Unix milliseconds */
  compose(author: Aid, draft: EntryDraft, now: number): EntryContent {
    this.catchUp();
    const ends = this.#nextParents(author, now);
    const facts = [...ends.values()];
    return {
      ...draft,
      groupId: this.groupId,
      author,
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
    return index === undefined ? null : this.#deps.entries.controlAt(this.lid, index);
  }

  /** The current join secret, or null if no entry has changed the first one. */
  joinSecret(): Uint8Array | null {
    const index = this.control.rekeyIndex(this.control.everything());
    const bytes = index === null ? null : this.#deps.entries.controlAt(this.lid, index);
    return bytes === null ? null : (decodeEntry(bytes).body ?? null);
  }

  /** Whether an agent should write a control entry that merges concurrent ones. @param now Unix milliseconds */
  needsMerge(author: Aid, now: number): boolean {
    return (
      (positionAfter([...this.#nextParents(author, now).values()], this.control)?.frontier.length ?? 0) > MERGE_ABOVE
    );
  }

  /** The entries that the next entry of an agent names as parents. */
  #nextParents(author: Aid, now: number): ReadonlyMap<string, EntryFact> {
    const heads = this.#facts(this.#deps.entries.heads(this.lid, MAX_PARENT_CANDIDATES));
    return selectParents(this.#headsUpTo(heads, now + MAX_AHEAD_MS), author, this.control);
  }

  /**
   * The heads of the group without the entries dated later than `latest`. A local agent wrote those while its clock was
   * ahead. Other members do not admit them yet, nor entries that name them as a parent.
   */
  #headsUpTo(heads: ReadonlyMap<string, EntryFact>, latest: number): ReadonlyMap<string, EntryFact> {
    const { entries } = this.#deps;
    const isDue = ({ at }: EntryFact): boolean => at <= latest;
    if ([...heads.values()].every(isDue)) return heads;
    const facts = new Map(heads);
    // A loop over a map also visits the entries that are added during the loop.
    for (const [id, fact] of facts)
      if (!isDue(fact)) for (const [parent, its] of this.#facts(entries.parents(this.lid, id))) facts.set(parent, its);
    const due = [...facts].filter(([id, fact]) => isDue(fact) && !entries.hasChild(this.lid, id, fact.seq, latest));
    // No entry is due if the group was created while the clock was ahead.
    return due.length > 0 ? new Map(due) : heads;
  }

  #facts(ids: readonly string[]): ReadonlyMap<string, EntryFact> {
    const facts = ids.flatMap((id) => {
      const fact = this.#deps.entries.fact(this.lid, id);
      return fact === null ? [] : [[id, fact] as const];
    });
    if (facts.length < ids.length) throw new RangeError('a parent is missing');
    return new Map(facts);
  }

  #offer(entry: Entry, progress: AdmitProgress): void {
    const { entries } = this.#deps;
    if (entry.groupId !== this.groupId || this.#maxSeq >= MAX_GROUP_ENTRIES) return void progress.refused++;
    if (entries.has(this.lid, entry.id)) return void progress.settled.push(entry.id);
    if (entry.at > progress.latest) {
      progress.early = true;
      return;
    }
    const parents = entry.parents.map((id) => entries.fact(this.lid, id));
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
    const { lid } = this;
    const { id, parents, depth, author, kind, at, replyTo = null, to = [], encoded: bytes } = entry;
    const seq = this.#maxSeq + 1;
    const controlNo = this.#addControl(entry, frontier);
    const others = this.control.removalsOf(author).filter((n) => n !== controlNo && !view.seen.has(n));
    const counts = isContent(kind);
    const row = { id, parents, depth, author, kind, at, replyTo, controlNo, frontier, counts, to, bytes };
    entries.add(lid, seq, { ...row, void: others.some(this.isEffective) });
    this.#maxSeq = seq;
    for (const n of others) entries.addConflict(lid, n, seq);
    if (kind === 'retract' && entry.ref !== undefined) {
      const role = this.control.role(view, author);
      entries.addRetract(lid, entry.ref, seq, role === 'admin' || role === 'creator');
    }
    if (controlNo !== null) updateHidden(this, entry, controlNo, seq, entries);
    if (TITLE_KINDS.includes(kind)) refreshTitle(lid, groups, entries);
  }
}

/** The view of one local agent on the log of a group. */
export class Replica {
  readonly rid: number;
  readonly aid: Aid;
  readonly groupId: string;
  readonly #groups: LogDependencies['groups'];
  readonly #openLog: (row: GroupRow) => GroupLog;
  #log: GroupLog;

  /** @param openLog opens the log of a group. Default: a log that no other replica shares */
  constructor(
    row: GroupRow,
    dependencies: LogDependencies,
    openLog: (row: GroupRow) => GroupLog = (one) =>
      new GroupLog(one, dependencies.entries.lastSeq(one.lid), dependencies),
  ) {
    this.rid = row.rid;
    this.aid = row.aid;
    this.groupId = row.groupId;
    this.#groups = dependencies.groups;
    this.#openLog = openLog;
    this.#log = openLog(row);
  }

  get log(): GroupLog {
    return this.#log;
  }

  get lid(): number {
    return this.#log.lid;
  }

  get creator(): Aid {
    return this.#log.creator;
  }

  get control(): ControlLog {
    return this.#log.control;
  }

  get maxSeq(): number {
    return this.#log.maxSeq;
  }

  has(id: string): boolean {
    return this.#log.has(id);
  }

  role(aid: Aid): Role | null {
    return this.#log.role(aid);
  }

  members(): { aid: Aid; role: Role }[] {
    return this.#log.members();
  }

  /** All members except the agent itself. */
  others(): Aid[] {
    return this.members().flatMap(({ aid }) => (aid === this.aid ? [] : [aid]));
  }

  readonly isEffective = (removal: number): boolean => this.#log.isEffective(removal);

  /**
   * Uses the log that other local agents have filled, instead of an own empty one. The agent must be allowed to read it.
   * Returns false if there is no such log.
   */
  attach(): boolean {
    const lid = this.#log.maxSeq > 0 ? null : this.#groups.filledLog(this.groupId);
    if (lid === null) return false;
    this.#groups.attach(this.rid, lid);
    const row = this.#groups.byRid(this.rid);
    if (row !== null) this.#log = this.#openLog(row);
    return true;
  }

  /** As `GroupLog.admit`. */
  admit(entries: readonly Entry[], latest: number, alongside: (added: readonly Entry[]) => void): AdmitResult {
    // A member sent the first entry, so this agent may read the group.
    const isServed = entries.some(({ kind, author }) => kind === 'create' && author === this.creator);
    if (isServed && this.maxSeq === 0) this.attach();
    return this.#log.admit(entries, latest, alongside);
  }

  compose(draft: EntryDraft, now: number): EntryContent {
    return this.#log.compose(this.aid, draft, now);
  }

  problem(entry: Entry): string | null {
    return this.#log.problem(entry);
  }

  removalEntry(aid: Aid): Uint8Array | null {
    return this.#log.removalEntry(aid);
  }

  joinSecret(): Uint8Array | null {
    return this.#log.joinSecret();
  }

  needsMerge(now: number): boolean {
    return this.#log.needsMerge(this.aid, now);
  }
}

// Applies the effects of a new entry: hides or restores other entries, and updates the title.

/** The parts of a replica that this module uses. */
interface Group {
  readonly lid: number;
  readonly creator: Aid;
  readonly control: ControlLog;
  /** Whether the removal at an index of the control log is effective. */
  readonly isEffective: (removal: number) => boolean;
}

/**
 * Hides entries that are concurrent with a removal. Restores entries that were hidden by removals that are no longer
 * effective.
 */
function updateHidden(group: Group, entry: Entry, controlNo: number, seq: number, entries: GroupEntryStore): void {
  // protocol-groups.md, step 5
  const [subject] = entry.to ?? [];
  if (subject === undefined) return;
  if (entry.kind === 'remove') {
    for (const concurrent of concurrentEntries(entries, group.lid, seq, subject))
      entries.addConflict(group.lid, controlNo, concurrent);
    applyRemoval(group, controlNo, entries);
  }
  if (entry.author !== group.creator) return;
  for (const removal of group.control.removalsBy(subject)) applyRemoval(group, removal, entries);
}

function applyRemoval(group: Group, removal: number, entries: GroupEntryStore): void {
  for (const { seq, removals } of entries.conflictsOf(group.lid, removal))
    entries.setVoid(group.lid, seq, removals.some(group.isEffective));
}

/** Stores the current title: the last `title` entry that is not set aside, otherwise the title of the first entry. */
function refreshTitle(lid: number, groups: GroupStore, entries: GroupEntryStore): void {
  const bytes = entries.lastTitle(lid) ?? entries.controlAt(lid, 0);
  if (bytes !== null) groups.setTitle(lid, bodyText(decodeEntry(bytes)) ?? '');
}

// Finds entries that are concurrent with another one: neither ancestors nor descendants.

/** Entries that are read in one step. */
const STEP = 256;

/**
 * Positions of an author's entries that are not ancestors of the entry at `seq`, which must be the newest one. Walks
 * back in order of arrival, in which children follow their parents, and stops when every remaining entry is an
 * ancestor.
 */
function concurrentEntries(entries: GroupEntryStore, lid: number, seq: number, author: Aid): number[] {
  const found: number[] = [];
  /** Known ancestors of the entry that the walk has not reached yet. */
  const seen = new Set<string>();
  /** Known concurrent entries that the walk has not reached yet. */
  const open = new Set(entries.heads(lid, Number.MAX_SAFE_INTEGER));
  let next = seq + 1;
  for (;;) {
    const step = entries.before(lid, next, STEP);
    for (const entry of step) {
      next = entry.seq;
      open.delete(entry.id);
      const isSeen = entry.seq === seq || seen.delete(entry.id);
      if (!isSeen && entry.author === author) found.push(entry.seq);
      for (const parent of entry.parents) {
        if (isSeen) {
          seen.add(parent);
          open.delete(parent);
        } else if (!seen.has(parent)) open.add(parent);
      }
      if (open.size === 0) return found;
    }
    if (step.length < STEP) return found;
  }
}

// The position of an entry in the graph: its parents and the control entries among its ancestors. Pure.

interface Position {
  readonly parents: readonly Pick<EntryFact, 'depth' | 'at'>[];
  /** The newest control entries among the ancestors. */
  readonly frontier: readonly number[];
  readonly view: View;
}

/** The position of an entry with these parents, or null if it would merge more control entries than one entry may. */
function positionAfter(parents: readonly EntryFact[], control: ControlLog): Position | null {
  const frontier = control.newest(parents.flatMap(childFrontier));
  return frontier === null ? null : { parents, frontier, view: control.view(frontier) };
}

/** The control frontier that an entry passes to its children. */
function childFrontier({ controlNo, frontier }: EntryFact): readonly number[] {
  return controlNo === null ? frontier : [controlNo];
}

/**
 * Selects the heads that become parents of a new entry, within the limits of one entry. If there are too many, heads
 * that know the author as a member have priority.
 */
function selectParents(
  heads: ReadonlyMap<string, EntryFact>,
  author: Aid,
  control: ControlLog,
): ReadonlyMap<string, EntryFact> {
  if (heads.size <= MAX_PARENTS && positionAfter([...heads.values()], control) !== null) return heads;
  const knows = (fact: EntryFact): boolean => {
    const position = positionAfter([fact], control);
    return position !== null && control.role(position.view, author) !== null;
  };
  const byKnowing = Map.groupBy(heads, ([, fact]) => knows(fact));
  const ends = new Map<string, EntryFact>();
  for (const [id, fact] of [true, false].flatMap((known) => byKnowing.get(known) ?? [])) {
    if (ends.size >= MAX_PARENTS) break;
    if (positionAfter([...ends.values(), fact], control) !== null) ends.set(id, fact);
  }
  return ends;
}

// Decides whether an entry is admitted. The decision depends only on the entry and its ancestors.

function positionProblem(entry: Entry, { parents }: Position): string | null {
  const depth = parents.reduce((deepest, parent) => Math.max(deepest, parent.depth + 1), 0);
  if (entry.depth !== depth) return 'its depth is wrong';
  return parents.some((parent) => parent.at > entry.at) ? 'it is older than a parent' : null;
}

/** Why an entry is not admitted that would add one member too many. */
export const GROUP_FULL = 'the group is full';

function joinProblem(entry: Entry, control: ControlLog, { view }: Position): string | null {
  if (control.role(view, entry.author) !== null) return 'the author is already a member';
  if (control.isFull(view, MAX_MEMBERS)) return GROUP_FULL;
  if (entry.proof === undefined) return control.isInvited(view, entry.author) ? null : 'the author is not invited';
  if (control.isBanned(view, entry.author) && !control.isInvited(view, entry.author)) return 'the author was removed';
  const { groupId, author, proof } = entry;
  const proven = control.joinKeys(view).some((key) => provesSecret(key, groupId, author, proof));
  return proven ? null : 'the join secret is not proven';
}

function removeProblem(entry: Entry, control: ControlLog, view: View): string | null {
  const role = control.role(view, entry.author);
  const [target] = entry.to ?? [];
  const other = target === undefined ? null : control.role(view, target);
  if (role === 'member') return 'only admins can remove members';
  if (other === 'creator') return 'the creator cannot be removed';
  return other === 'admin' && role !== 'creator' ? 'only the creator can remove admins' : null;
}

function roleProblem(entry: Entry, control: ControlLog, view: View): string | null {
  const [target] = entry.to ?? [];
  if (control.role(view, entry.author) !== 'creator') return 'only the creator can assign roles';
  const other = target === undefined ? null : control.role(view, target);
  return other === null || other === 'creator' ? 'the agent is not a member' : null;
}

function memberProblem(entry: Entry, control: ControlLog, view: View): string | null {
  const role = control.role(view, entry.author);
  if (role === null) return 'the author is not a member';
  switch (entry.kind) {
    case 'leave':
      return role === 'creator' ? 'the creator cannot leave' : null;
    case 'remove':
      return removeProblem(entry, control, view);
    case 'role':
      return roleProblem(entry, control, view);
    case 'title':
      return role === 'member' ? 'only admins can change the title' : null;
    case 'rekey':
      return role === 'member' ? 'only admins can change the link' : null;
    default:
      return null;
  }
}

/** Why an entry with a verified signature is rejected, or null if it is admitted. */
function admissionProblem(entry: Entry, control: ControlLog, position: Position): string | null {
  // protocol-groups.md, step 4
  const problem = shapeProblem(entry) ?? positionProblem(entry, position);
  if (problem !== null) return problem;
  if (entry.kind === 'create') return control.size === 0 ? null : 'the group already has a first entry';
  if (entry.delegation.issuedAt < control.newestDelegation(position.view, entry.author))
    return 'the author has a newer key';
  if (entry.kind === 'join') return joinProblem(entry, control, position);
  return memberProblem(entry, control, position.view);
}

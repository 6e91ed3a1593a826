/** One agent's copy of a group: takes entries in where they may stand, and writes its own. */
import type { Role } from '../../foundation/domain/groups.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { EntryFact } from '../../foundation/store/group-entries.ts';
import type { GroupRow } from '../../foundation/store/groups.ts';
import { admissionProblem } from './admission.ts';
import { judgeBesides, refreshTitle } from './consequences.ts';
import { ControlLog, controlFact, MAX_FRONTIER } from './control.ts';
import { decodeEntry, type Entry, type EntryContent } from './entry.ts';
import { isContent } from './kinds.ts';
import { endsOf, type Place, placeBehind } from './place.ts';
import type { EntryDraft, GroupsDependencies } from './types.ts';

/** Entries of one group beyond which nothing is taken in. */
export const MAX_GROUP_ENTRIES = 220_000;
/** Entries whose parents are missing that wait for them, for each group. */
const MAX_WAITING = 256;
/** Ends of the group that are looked at for an entry of our own. */
const MAX_ENDS = 512;
/** How far ahead of our clock an entry may be, milliseconds. */
export const MAX_AHEAD_MS = 600_000;

/** Newest control ancestors above which an entry of our own is to unite them first. */
const WIDE: number = MAX_FRONTIER / 4;
/** Kinds that may change which title stands. */
const ABOUT_TITLE: readonly string[] = ['title', 'create', 'remove', 'role'];

/** What became of entries that were offered. */
export interface OfferResult {
  readonly added: readonly Entry[];
  /** Some wait for parents that are not here. */
  readonly waiting: boolean;
  /** Some are dated too far in the future: they may be offered again later. */
  readonly early: boolean;
  readonly refused: number;
}

/** What becomes of entries while they are offered. */
interface Intake {
  /** Latest time that an entry may carry, Unix milliseconds. */
  readonly latest: number;
  readonly added: Entry[];
  /** Ids that need not wait any more. */
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
  /** Entries that wait, each for a parent. */
  readonly #waiting = new Map<string, { readonly entry: Entry; readonly missing: string }>();
  #maxSeq: number;

  constructor(row: GroupRow, dependencies: ReplicaDependencies) {
    this.#deps = dependencies;
    this.rid = row.rid;
    this.aid = row.aid;
    this.groupId = row.groupId;
    this.creator = row.creator;
    this.#maxSeq = row.maxSeq;
    for (const { bytes, frontier } of dependencies.entries.control(row.rid)) this.#learn(decodeEntry(bytes), frontier);
  }

  get maxSeq(): number {
    return this.#maxSeq;
  }

  has(id: string): boolean {
    return this.#deps.entries.has(this.rid, id);
  }

  /** The role of an agent as of everything known here; null where it is no member. */
  role(aid: Aid): Role | null {
    return this.control.role(this.control.everything(), aid);
  }

  members(): { aid: Aid; role: Role }[] {
    return this.control.members(this.control.everything());
  }

  /** The members but the agent itself. */
  others(): Aid[] {
    return this.members().flatMap(({ aid }) => (aid === this.aid ? [] : [aid]));
  }

  /** True where the removal at a place counts as of everything known here. */
  readonly counts = (removal: number): boolean => this.control.removalCounts(this.control.everything(), removal);

  /**
   * Takes in entries whose signatures were verified, in one transaction with what `meanwhile` does.
   * @param latest entries with a later time are not taken in, Unix milliseconds
   */
  admit(entries: readonly Entry[], latest: number, meanwhile: (added: readonly Entry[]) => void): OfferResult {
    const controlSize = this.control.size;
    const maxSeq = this.#maxSeq;
    const intake: Intake = { latest, added: [], settled: [], early: false, refused: 0 };
    const { added, settled } = intake;
    try {
      this.#deps.groups.transaction(() => {
        for (let queue = entries; queue.length > 0; ) {
          const before = added.length;
          for (const entry of queue) this.#offer(entry, intake);
          const here = new Set(added.slice(before).map(({ id }) => id));
          queue = [...this.#waiting.values()].filter(({ missing }) => here.has(missing)).map(({ entry }) => entry);
        }
        if (added.length > 0) meanwhile(added);
      });
    } catch (error) {
      this.control.truncate(controlSize);
      this.#maxSeq = maxSeq;
      throw error;
    }
    for (const id of settled) this.#waiting.delete(id);
    const waiting = entries.some(({ id }) => this.#waiting.has(id));
    return { added, waiting, early: intake.early, refused: intake.refused };
  }

  /** What an entry of the agent would be, at the end of what is known here. @param now Unix milliseconds */
  compose(draft: EntryDraft, now: number): EntryContent {
    const ends = this.#ends(now);
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

  /** Why an entry may not stand where it stands; null where it may. Its parents must be here. */
  problem(entry: Entry): string | null {
    const place = placeBehind([...this.#facts(entry.parents).values()], this.control);
    return place === null ? 'it unites too much of the group' : admissionProblem(entry, this.control, place);
  }

  /** The newest removal of an agent that counts, encoded; null where there is none. */
  removalEntry(aid: Aid): Uint8Array | null {
    const place = this.control.removalsOf(aid).findLast(this.counts);
    return place === undefined ? null : this.#deps.entries.controlAt(this.rid, place);
  }

  /** The join secret that lets in now; null where no entry here has changed the first one. */
  joinSecret(): Uint8Array | null {
    const place = this.control.rekeyPlace(this.control.everything());
    const bytes = place === null ? null : this.#deps.entries.controlAt(this.rid, place);
    return bytes === null ? null : (decodeEntry(bytes).body ?? null);
  }

  /** True if a control entry is due that unites concurrent ones. @param now Unix milliseconds */
  isWide(now: number): boolean {
    return (placeBehind([...this.#ends(now).values()], this.control)?.frontier.length ?? 0) > WIDE;
  }

  /** What an entry of the agent may name as its parents. */
  #ends(now: number): ReadonlyMap<string, EntryFact> {
    const heads = this.#facts(this.#deps.entries.heads(this.rid, MAX_ENDS));
    return endsOf(this.#headsUpTo(heads, now + MAX_AHEAD_MS), this.aid, this.control);
  }

  /**
   * The heads of the group without the entries dated later than `latest`. The agent wrote those while its clock was
   * ahead. Other members do not take them in yet, nor anything that names them as a parent.
   */
  #headsUpTo(heads: ReadonlyMap<string, EntryFact>, latest: number): ReadonlyMap<string, EntryFact> {
    const { entries } = this.#deps;
    const isDue = ({ at }: EntryFact): boolean => at <= latest;
    if ([...heads.values()].every(isDue)) return heads;
    const facts = new Map(heads);
    // A map also visits what is added to it meanwhile.
    for (const [id, fact] of facts)
      if (!isDue(fact)) for (const [parent, its] of this.#facts(entries.parents(this.rid, id))) facts.set(parent, its);
    const due = [...facts].filter(([id, fact]) => isDue(fact) && !entries.hasChild(this.rid, id, fact.seq, latest));
    // A group that was created while the clock was ahead has none.
    return due.length > 0 ? new Map(due) : heads;
  }

  #facts(ids: readonly string[]): ReadonlyMap<string, EntryFact> {
    const facts = ids.flatMap((id) => {
      const fact = this.#deps.entries.fact(this.rid, id);
      return fact === null ? [] : [[id, fact] as const];
    });
    if (facts.length < ids.length) throw new RangeError('a parent is not here');
    return new Map(facts);
  }

  #offer(entry: Entry, intake: Intake): void {
    const { entries } = this.#deps;
    if (entry.groupId !== this.groupId || this.#maxSeq >= MAX_GROUP_ENTRIES) return void intake.refused++;
    if (entries.has(this.rid, entry.id)) return void intake.settled.push(entry.id);
    if (entry.at > intake.latest) {
      intake.early = true;
      return;
    }
    const parents = entry.parents.map((id) => entries.fact(this.rid, id));
    const missing = entry.parents[parents.indexOf(null)];
    if (missing !== undefined) return this.#wait(entry, missing);
    intake.settled.push(entry.id);
    const place = placeBehind(
      parents.filter((fact) => fact !== null),
      this.control,
    );
    const wrongCreator = entry.kind === 'create' && entry.author !== this.creator;
    if (place === null || wrongCreator || admissionProblem(entry, this.control, place) !== null)
      return void intake.refused++;
    this.#insert(entry, place);
    intake.added.push(entry);
  }

  /** Keeps an entry until its parents come; the one that waits longest makes room. */
  #wait(entry: Entry, missing: string): void {
    this.#waiting.set(entry.id, { entry, missing });
    if (this.#waiting.size <= MAX_WAITING) return;
    const [longest = ''] = this.#waiting.keys();
    this.#waiting.delete(longest);
  }

  /** Adds a control entry to those that decide who is a member; returns its place, null for others. */
  #learn(entry: Entry, frontier: readonly number[]): number | null {
    const fact = controlFact(entry);
    return fact === null ? null : this.control.add(fact, frontier);
  }

  #insert(entry: Entry, { frontier, view }: Place): void {
    const { groups, entries } = this.#deps;
    const { rid } = this;
    const { id, parents, depth, author, kind, at, replyTo = null, to = [], encoded: bytes } = entry;
    const seq = this.#maxSeq + 1;
    const controlNo = this.#learn(entry, frontier);
    const others = this.control.removalsOf(author).filter((n) => n !== controlNo && !view.seen.has(n));
    const counts = author !== this.aid && isContent(kind);
    const mention = counts && to.includes(this.aid);
    const row = { id, parents, depth, author, kind, at, replyTo, controlNo, frontier, counts, mention, to, bytes };
    entries.add(rid, seq, { ...row, void: others.some(this.counts) });
    this.#maxSeq = seq;
    for (const n of others) entries.addConflict(rid, n, seq);
    if (kind === 'retract' && entry.ref !== undefined) {
      const role = this.control.role(view, author);
      entries.addRetract(rid, entry.ref, seq, role === 'admin' || role === 'creator');
    }
    if (controlNo !== null) judgeBesides(this, entry, controlNo, seq, entries);
    if (ABOUT_TITLE.includes(kind)) refreshTitle(rid, groups, entries);
  }
}

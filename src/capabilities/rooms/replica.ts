/** One agent's copy of a room: takes entries in where they may stand, and writes its own. */
import type { Role } from '../../foundation/domain/rooms.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { EntryFact, RoomEntryStore } from '../../foundation/store/room-entries.ts';
import type { RoomRow, RoomStore } from '../../foundation/store/rooms.ts';
import { admissionProblem, type Place } from './admission.ts';
import { besides } from './besides.ts';
import { ControlLog, controlFact, MAX_FRONTIER } from './control.ts';
import { decodeEntry, type Entry, type EntryContent, MAX_PARENTS } from './entry.ts';
import { bodyText, isContent } from './kinds.ts';
import type { EntryDraft } from './types.ts';

/** Entries of one room beyond which nothing is taken in. */
export const MAX_ROOM_ENTRIES = 220_000;
/** Entries whose parents are missing that wait for them, for each room. */
const MAX_WAITING = 256;
/** Ends of the room that are looked at for an entry of our own. */
const MAX_ENDS = 512;
/** How far ahead of our clock an entry may be, milliseconds. */
const MAX_AHEAD_MS = 600_000;

/** Newest control ancestors above which an entry of our own is to unite them first. */
const WIDE: number = MAX_FRONTIER / 4;
const TOO_WIDE = 'it unites too much of the room';

/** What became of entries that were offered. */
export interface OfferResult {
  readonly added: readonly Entry[];
  /** Some wait for parents that are not here. */
  readonly waiting: boolean;
  /** Some are dated too far in the future: they may be offered again later. */
  readonly early: boolean;
  readonly refused: number;
}

interface ReplicaDependencies {
  readonly rooms: RoomStore;
  readonly entries: RoomEntryStore;
}

interface PlaceHere extends Place {
  /** The newest control entries among the ancestors. */
  readonly frontier: readonly number[];
}

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

  constructor(row: RoomRow, dependencies: ReplicaDependencies) {
    this.#deps = dependencies;
    this.rid = row.rid;
    this.aid = row.aid;
    this.groupId = row.groupId;
    this.creator = row.creator;
    this.#maxSeq = row.maxSeq;
    for (const { bytes, frontier } of dependencies.entries.control(row.rid)) {
      const entry = decodeEntry(bytes);
      this.#learn(entry, frontier);
    }
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

  /**
   * Takes in entries whose signatures were verified, in one transaction with what `meanwhile` does.
   * @param now Unix milliseconds
   */
  admit(entries: readonly Entry[], now: number, meanwhile: (added: readonly Entry[]) => void): OfferResult {
    const controlSize = this.control.size;
    const maxSeq = this.#maxSeq;
    const taken: string[] = [];
    try {
      return this.#deps.rooms.transaction(() => {
        const added: Entry[] = [];
        const result = { waiting: false, early: false, refused: 0 };
        for (let queue = entries; queue.length > 0; ) {
          const before = added.length;
          for (const entry of queue) this.#offer(entry, now, added, result, taken);
          const here = new Set(added.slice(before).map(({ id }) => id));
          queue = [...this.#waiting.values()].filter(({ missing }) => here.has(missing)).map(({ entry }) => entry);
        }
        if (added.length > 0) meanwhile(added);
        for (const id of taken) this.#waiting.delete(id);
        result.waiting = entries.some((entry) => this.#waiting.has(entry.id));
        return { added, ...result };
      });
    } catch (error) {
      this.control.truncate(controlSize);
      this.#maxSeq = maxSeq;
      throw error;
    }
  }

  /** What an entry of the agent would be, at the end of what is known here. @param now Unix milliseconds */
  compose(draft: EntryDraft, now: number): EntryContent {
    const { entries } = this.#deps;
    const parents = this.#ends(entries.heads(this.rid, MAX_ENDS));
    const facts = parents.map((id) => this.#fact(id));
    return {
      ...draft,
      groupId: this.groupId,
      author: this.aid,
      parents,
      depth: facts.reduce((deepest, fact) => Math.max(deepest, fact.depth + 1), 0),
      at: facts.reduce((latest, fact) => Math.max(latest, fact.at), now),
    };
  }

  /** Why an entry may not stand where it stands; null where it may. Its parents must be here. */
  problem(entry: Entry): string | null {
    const place = this.#place(entry.parents.map((id) => this.#fact(id)));
    return place === null ? TOO_WIDE : admissionProblem(entry, this.control, place);
  }

  /** The newest removal of an agent that counts, encoded; null where there is none. */
  removalEntry(aid: Aid): Uint8Array | null {
    const place = this.control.removalsOf(aid).findLast((n) => this.#counts(n));
    return place === undefined ? null : this.#deps.entries.controlAt(this.rid, place);
  }

  /** The join secret that lets in now; null where no entry here has changed the first one. */
  joinSecret(): Uint8Array | null {
    const place = this.control.rekeyPlace(this.control.everything());
    const bytes = place === null ? null : this.#deps.entries.controlAt(this.rid, place);
    return bytes === null ? null : (decodeEntry(bytes).body ?? null);
  }

  /** True where a control entry is due that unites what came beside each other. */
  isWide(): boolean {
    const facts = this.#ends(this.#deps.entries.heads(this.rid, MAX_ENDS)).map((id) => this.#fact(id));
    return (this.#place(facts)?.frontier.length ?? 0) > WIDE;
  }

  /** As many ends as an entry may name and unite: where there are more, those that know its author as a member go first. */
  #ends(heads: readonly string[]): readonly string[] {
    const facts = new Map(heads.map((id) => [id, this.#fact(id)]));
    if (heads.length <= MAX_PARENTS && this.#place([...facts.values()]) !== null) return heads;
    const knows = (fact: EntryFact): boolean => {
      const view = this.#place([fact])?.view;
      return view !== undefined && this.control.role(view, this.aid) !== null;
    };
    const knowing = [...facts].filter(([, fact]) => knows(fact));
    const others = [...facts].filter(([, fact]) => !knows(fact));
    const ends = new Map<string, EntryFact>();
    for (const [id, fact] of [...knowing, ...others]) {
      if (ends.size >= MAX_PARENTS) break;
      if (this.#place([...ends.values(), fact]) !== null) ends.set(id, fact);
    }
    return [...ends.keys()].sort();
  }

  #fact(id: string): EntryFact {
    const fact = this.#deps.entries.fact(this.rid, id);
    if (fact === null) throw new RangeError('a parent is not here');
    return fact;
  }

  /** Where an entry with these parents stands; null where it unites more of the room than one entry may. */
  #place(parents: readonly EntryFact[]): PlaceHere | null {
    const frontier = this.control.newest(parents.flatMap(controlOf));
    return frontier === null ? null : { parents, frontier, view: this.control.view(frontier) };
  }

  #offer(
    entry: Entry,
    now: number,
    added: Entry[],
    result: { early: boolean; refused: number },
    taken: string[],
  ): void {
    const { entries } = this.#deps;
    if (entry.groupId !== this.groupId || this.#maxSeq >= MAX_ROOM_ENTRIES) return void result.refused++;
    if (entries.has(this.rid, entry.id)) return void taken.push(entry.id);
    if (entry.at > now + MAX_AHEAD_MS) {
      result.early = true;
      return;
    }
    const parents = entry.parents.map((id) => entries.fact(this.rid, id));
    const known = parents.filter((fact) => fact !== null);
    const missing = entry.parents[parents.indexOf(null)];
    if (missing !== undefined) return this.#wait(entry, missing);
    taken.push(entry.id);
    const place = this.#place(known);
    const wrongCreator = entry.kind === 'create' && entry.author !== this.creator;
    if (place === null || wrongCreator || admissionProblem(entry, this.control, place) !== null)
      return void result.refused++;
    this.#insert(entry, place);
    added.push(entry);
  }

  /** Keeps an entry until its parents come; the one that waits longest makes room. */
  #wait(entry: Entry, missing: string): void {
    this.#waiting.set(entry.id, { entry, missing });
    if (this.#waiting.size <= MAX_WAITING) return;
    for (const oldest of this.#waiting.keys()) {
      this.#waiting.delete(oldest);
      break;
    }
  }

  #learn(entry: Entry, frontier: readonly number[]): number | null {
    const fact = controlFact(entry, bodyText(entry));
    if (fact === null) return null;
    return this.control.add(fact, frontier);
  }

  #insert(entry: Entry, { frontier, view }: PlaceHere): void {
    const { entries } = this.#deps;
    const { rid } = this;
    const seq = this.#maxSeq + 1;
    const controlNo = this.#learn(entry, frontier);
    const others = this.control.removalsOf(entry.author).filter((n) => n !== controlNo && !view.seen.has(n));
    const isForeign = entry.author !== this.aid;
    entries.add(rid, seq, {
      id: entry.id,
      parents: entry.parents,
      depth: entry.depth,
      author: entry.author,
      kind: entry.kind,
      at: entry.at,
      replyTo: entry.replyTo ?? null,
      controlNo,
      frontier,
      counts: isForeign && isContent(entry.kind),
      mention: isForeign && isContent(entry.kind) && entry.to?.includes(this.aid) === true,
      void: others.some((n) => this.#counts(n)),
      to: entry.to ?? [],
      bytes: entry.encoded,
    });
    this.#maxSeq = seq;
    for (const n of others) entries.addConflict(rid, n, seq);
    if (entry.kind === 'retract' && entry.ref !== undefined) {
      const role = this.control.role(view, entry.author);
      entries.addRetract(rid, entry.ref, seq, role === 'admin' || role === 'creator');
    }
    const [subject] = entry.to ?? [];
    if (subject !== undefined && controlNo !== null) this.#afterControl(entry, controlNo, seq, subject);
    if (entry.kind === 'title' || entry.kind === 'create' || entry.kind === 'remove' || entry.kind === 'role')
      this.#refreshTitle(entry);
  }

  #counts(removal: number): boolean {
    return this.control.removalCounts(this.control.everything(), removal);
  }

  /** Sets aside what stands beside a removal, and takes back what removals of a fallen admin had set aside. */
  #afterControl(entry: Entry, controlNo: number, seq: number, subject: Aid): void {
    const { entries } = this.#deps;
    if (entry.kind === 'remove') {
      for (const beside of besides(entries, this.rid, seq, subject)) entries.addConflict(this.rid, controlNo, beside);
      this.#judge(controlNo);
    }
    if (entry.author !== this.creator) return;
    for (const removal of this.control.removalsBy(subject)) this.#judge(removal);
  }

  #judge(removal: number): void {
    const { entries } = this.#deps;
    for (const { seq, removals } of entries.conflictsOf(this.rid, removal))
      entries.setVoid(
        this.rid,
        seq,
        removals.some((n) => this.#counts(n)),
      );
  }

  #refreshTitle(entry: Entry): void {
    const { rooms, entries } = this.#deps;
    const last = entries.lastTitle(this.rid);
    if (last !== null) rooms.setTitle(this.rid, bodyText(decodeEntry(last)) ?? '');
    else if (entry.kind === 'create') rooms.setTitle(this.rid, bodyText(entry) ?? '');
    else this.#titleOfCreation();
  }

  #titleOfCreation(): void {
    const [first] = this.#deps.entries.control(this.rid);
    if (first !== undefined) this.#deps.rooms.setTitle(this.rid, bodyText(decodeEntry(first.bytes)) ?? '');
  }
}

/** The newest control entries that an entry's children have among their ancestors by it. */
function controlOf({ controlNo, frontier }: EntryFact): readonly number[] {
  return controlNo === null ? frontier : [controlNo];
}

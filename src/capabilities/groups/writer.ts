/** Adds entries to the groups of local agents. */
import { randomBytes } from 'node:crypto';
import { assertClockNotAhead } from '../../foundation/clock.ts';
import { HASH_BYTES, JOIN_SECRET_BYTES } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import { type Entry, type EntryContent, groupIdOf, joinKey, signEntry } from './entry.ts';
import { type ControlKind, isControl } from './kinds.ts';
import { Announcer, updateState } from './notices.ts';
import { type AdmitResult, type GroupLog, MAX_AHEAD_MS, type Replica } from './replica.ts';
import type { Replicas } from './replicas.ts';
import type { EntryDraft, GroupsDependencies } from './types.ts';
import { entryView, groupLinkText, rejectedError } from './views.ts';

/** Members add no entry to a group that has this many. Entries that are already on their way are still accepted. */
export const MAX_APPENDED = 200_000;
/** Control entries that `append` accepts, because they have no separate operation. */
const APPENDABLE_CONTROL: readonly string[] = ['remove', 'role', 'rekey'] satisfies readonly ControlKind[];

/** A new entry of a local agent. */
export interface Written {
  readonly seq: number;
  readonly entryId: string;
  /** Unix milliseconds. */
  readonly at: number;
}

type WriterParts = Pick<
  GroupsDependencies,
  'groups' | 'entries' | 'objects' | 'events' | 'clock' | 'log' | 'clockAheadMs'
>;

export class GroupWriter {
  /**
   * Notified of new entries after they are stored. `from` is the member that sent them, or null if a local agent wrote
   * them.
   */
  readonly added: Listeners<[replica: Replica, entries: readonly Entry[], from: Aid | null]> = new Listeners();
  readonly #deps: WriterParts;
  readonly #replicas: Replicas;
  readonly #announcer: Announcer;

  constructor(dependencies: WriterParts, replicas: Replicas) {
    this.#deps = dependencies;
    this.#announcer = new Announcer(dependencies);
    this.#replicas = replicas;
  }

  /** Emits pending events. */
  stop(): void {
    this.#announcer.stop();
  }

  /** See `Groups.create`. */
  create(aid: Aid, title: string, alongside?: (groupId: string) => void): { groupId: string; link: string } {
    const { groups } = this.#deps;
    const identity = this.#replicas.requireLocal(aid);
    const nonce = new Uint8Array(randomBytes(HASH_BYTES));
    const secret = new Uint8Array(randomBytes(JOIN_SECRET_BYTES));
    const groupId = groupIdOf(aid, nonce);
    groups.transaction(() => {
      const row = this.#replicas.add({ aid, groupId, creator: aid, title, secret, hints: [], state: 'member' });
      const proof = Buffer.concat([nonce, joinKey(secret).publicKey]);
      this.write(this.#replicas.open(row), identity, { kind: 'create', body: new TextEncoder().encode(title), proof });
      alongside?.(groupId);
    });
    return { groupId, link: groupLinkText({ creator: aid, groupId, secret }) };
  }

  /** See `Groups.append`. */
  append(aid: Aid, groupId: string, draft: EntryDraft, alongside?: (entryId: string) => void): Written {
    if (isControl(draft.kind) && !APPENDABLE_CONTROL.includes(draft.kind))
      throw new SvcError('invalid_request', {
        message: `Entries of kind "${draft.kind}" have their own operation.`,
        details: { path: '/kind' },
      });
    const { objects } = this.#deps;
    if (draft.kind === 'file' && objects !== undefined && !objects.has(aid, draft.ref ?? ''))
      throw new SvcError('not_found', {
        thing: 'object',
        message: 'The agent has no such object. Store it first, then name it in ref.',
      });
    if (draft.kind === 'rekey') return this.#append(aid, groupId, [rekeyDraft()], alongside);
    // The removed member may know the link, so the link changes in the same transaction.
    return this.#append(aid, groupId, draft.kind === 'remove' ? [draft, rekeyDraft()] : [draft], alongside);
  }

  /** See `Groups.retract`. */
  retract(aid: Aid, groupId: string, entryId: string): Written {
    const { entries } = this.#deps;
    const row = this.#replicas.row(aid, groupId);
    const stored = entries.entry(row.lid, entryId);
    if (stored === null) throw new SvcError('not_found', { thing: 'entry', message: 'The group has no such entry.' });
    const role = this.#replicas.open(row).role(aid);
    if (entryView(stored).author !== aid && role !== 'admin' && role !== 'creator')
      throw new SvcError(role === null ? 'not_member' : 'access_denied', {
        message: 'Only the author of an entry or an admin of the group can retract it.',
      });
    return this.appendAny(aid, groupId, { kind: 'retract', ref: entryId });
  }

  /** See `Groups.leave`. */
  leave(aid: Aid, groupId: string): void {
    const row = this.#replicas.row(aid, groupId);
    if (row.creator === aid) throw new SvcError('creator_cannot_leave');
    if (row.state === 'joining') return this.#deps.groups.setState(row.rid, 'left');
    this.appendAny(aid, groupId, { kind: 'leave' });
  }

  /**
   * Adds an entry of any kind.
   * @throws SvcError `not_found`, `not_member`, `quota_exceeded`, and as `write`
   */
  appendAny(aid: Aid, groupId: string, draft: EntryDraft): Written {
    return this.#append(aid, groupId, [draft]);
  }

  #append(aid: Aid, groupId: string, drafts: Drafts, alongside?: (entryId: string) => void): Written {
    const row = this.#replicas.row(aid, groupId);
    if (row.state !== 'member') throw new SvcError('not_member');
    if (row.maxSeq >= MAX_APPENDED)
      throw new SvcError('quota_exceeded', { message: `A group can have at most ${MAX_APPENDED} entries.` });
    return this.#write(this.#replicas.open(row), this.#replicas.requireLocal(aid), drafts, alongside);
  }

  /**
   * Signs and stores an entry of a local agent. Then notifies the listeners of `added`.
   * @throws SvcError `access_denied`, `invalid_request`, `not_member`, `bad_delegation`, `clock_wrong`
   */
  write(replica: Replica, identity: LocalIdentity, draft: EntryDraft): Written {
    return this.#write(replica, identity, [draft]);
  }

  /** Signs and stores entries in one transaction. */
  #write(
    replica: Replica,
    identity: LocalIdentity,
    [draft, ...behind]: Drafts,
    alongside?: (entryId: string) => void,
  ): Written {
    assertClockNotAhead(this.#deps.clockAheadMs?.() ?? 0);
    const now = this.#deps.clock.now();
    const known = replica.control.newestDelegation(replica.control.everything(), replica.aid);
    // A `key` entry first: an older key of this agent, perhaps a stolen one, cannot write after it.
    const hasNewKey = known > 0 && identity.delegation.issuedAt > known && draft.kind !== 'join';
    const unites = !isControl(draft.kind) && replica.needsMerge(now);
    if ((hasNewKey || unites) && draft.kind !== 'key') this.write(replica, identity, { kind: 'key' });
    const entry = signEntry(replica.compose(draft, now), identity);
    const problem = replica.problem(entry);
    if (problem !== null) throw rejectedError(problem);
    const entries = [entry];
    for (const next of behind) entries.push(signEntry(childOf(entries.at(-1) ?? entry, next), identity));
    const { added } = this.admit(replica, entries, null, () => alongside?.(entry.id));
    if (added.length < entries.length) throw new SvcError('internal');
    return { seq: replica.maxSeq - behind.length, entryId: entry.id, at: entry.at };
  }

  /**
   * Admits entries with verified signatures.
   * @param from the member that sent them; null for entries of a local agent
   * @param alongside runs in the transaction that stores them
   * @throws SvcError `not_found` if the group was deleted
   */
  admit(replica: Replica, entries: readonly Entry[], from: Aid | null, alongside?: () => void): AdmitResult {
    const { groups, clock } = this.#deps;
    // The agent and its groups may have been deleted while signatures were verified.
    if (groups.byRid(replica.rid) === null) throw new SvcError('not_found', { thing: 'group' });
    // Entries of a local agent are never dated before their parents, even if the clock is behind. protocol-groups.md,
    // step 2
    const latest = from === null ? Number.POSITIVE_INFINITY : clock.now() + MAX_AHEAD_MS;
    const admission = replica.admit(entries, latest, (added) => {
      this.stored(replica.log, added);
      alongside?.();
    });
    if (admission.added.length > 0) this.added.notify(replica, admission.added, from);
    return admission;
  }

  /** Updates the local members and emits events for new entries. Runs in the transaction that stores them. */
  stored(log: GroupLog, added: readonly Entry[]): void {
    updateState(log, added, this.#deps);
    this.#announcer.emit(log, added);
  }
}

/** An entry, and those that follow it in the same transaction. */
type Drafts = readonly [EntryDraft, ...EntryDraft[]];

/** A new join secret. Links with the old secret no longer work. */
function rekeyDraft(): EntryDraft {
  return { kind: 'rekey', body: new Uint8Array(randomBytes(JOIN_SECRET_BYTES)) };
}

/** An entry that follows one that no other member has seen yet. */
function childOf({ groupId, author, id, depth, at }: Entry, draft: EntryDraft): EntryContent {
  return { ...draft, groupId, author, parents: [id], depth: depth + 1, at };
}

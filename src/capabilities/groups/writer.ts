/** Takes entries into the groups of agents here: those that they write themselves, and those of others. */
import { randomBytes } from 'node:crypto';
import { assertClockNotAhead } from '../../foundation/clock-check.ts';
import { HASH_BYTES, JOIN_SECRET_BYTES } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import { type Entry, type EntryContent, groupIdOf, joinKey, signEntry } from './entry.ts';
import { groupLinkText } from './group-link.ts';
import { type ControlKind, isControl } from './kinds.ts';
import { announce, settleState } from './notices.ts';
import { MAX_AHEAD_MS, type OfferResult, type Replica } from './replica.ts';
import type { Replicas } from './replicas.ts';
import type { EntryDraft, GroupsDependencies } from './types.ts';
import { entryView, refusal } from './views.ts';

/** Entries of one group beyond which its members add nothing: what is under way may still come in. */
export const MAX_APPENDED = 200_000;
/** Control entries without an operation of their own. */
const BY_APPEND: readonly string[] = ['remove', 'role', 'rekey'] satisfies readonly ControlKind[];

/** Where an entry of our own stands now. */
export interface Written {
  readonly seq: number;
  readonly entryId: string;
  /** Unix milliseconds. */
  readonly at: number;
}

interface GroupWriterDependencies
  extends Pick<GroupsDependencies, 'groups' | 'entries' | 'objects' | 'events' | 'clock' | 'clockAheadMs'> {
  readonly replicas: Replicas;
}

export class GroupWriter {
  /** Told of what has come into a group, once it is kept, and from whom; null where an agent here wrote it. */
  readonly added: Listeners<[replica: Replica, entries: readonly Entry[], from: Aid | null]> = new Listeners();
  readonly #deps: GroupWriterDependencies;

  constructor(dependencies: GroupWriterDependencies) {
    this.#deps = dependencies;
  }

  /** As `Groups.create`. */
  create(aid: Aid, title: string): { groupId: string; link: string } {
    const { groups, replicas } = this.#deps;
    const identity = replicas.mustBeHere(aid);
    const nonce = new Uint8Array(randomBytes(HASH_BYTES));
    const secret = new Uint8Array(randomBytes(JOIN_SECRET_BYTES));
    const groupId = groupIdOf(aid, nonce);
    groups.transaction(() => {
      const row = replicas.add({ aid, groupId, creator: aid, title, secret, hints: [], state: 'member' });
      const proof = Buffer.concat([nonce, joinKey(secret).publicKey]);
      this.write(replicas.open(row), identity, { kind: 'create', body: new TextEncoder().encode(title), proof });
    });
    return { groupId, link: groupLinkText({ creator: aid, groupId, secret }) };
  }

  /** As `Groups.append`. */
  append(aid: Aid, groupId: string, draft: EntryDraft): Written {
    if (isControl(draft.kind) && !BY_APPEND.includes(draft.kind))
      throw new SvcError('invalid_request', {
        message: `Entries of kind "${draft.kind}" have an operation of their own.`,
        details: { path: '/kind' },
      });
    const { objects } = this.#deps;
    if (draft.kind === 'file' && objects !== undefined && !objects.has(aid, draft.ref ?? ''))
      throw new SvcError('not_found', {
        thing: 'object',
        message: 'The agent has no such object: put it first, then name it in ref.',
      });
    if (draft.kind === 'rekey') return this.appendAny(aid, groupId, rekeyDraft());
    // Whoever is removed may have kept the link: both or neither.
    return this.appendAny(aid, groupId, draft, ...(draft.kind === 'remove' ? [rekeyDraft()] : []));
  }

  /** As `Groups.retract`. */
  retract(aid: Aid, groupId: string, entryId: string): Written {
    const { entries, replicas } = this.#deps;
    const row = replicas.row(aid, groupId);
    const stored = entries.entry(row.rid, entryId);
    if (stored === null)
      throw new SvcError('not_found', { thing: 'entry', message: 'There is no such entry in the group.' });
    const role = replicas.open(row).role(aid);
    if (entryView(stored).author !== aid && role !== 'admin' && role !== 'creator')
      throw new SvcError(role === null ? 'not_member' : 'access_denied', {
        message: 'Only its author or an admin of the group retracts an entry.',
      });
    return this.appendAny(aid, groupId, { kind: 'retract', ref: entryId });
  }

  /** As `Groups.leave`. */
  leave(aid: Aid, groupId: string): void {
    const row = this.#deps.replicas.row(aid, groupId);
    if (row.creator === aid) throw new SvcError('creator_cannot_leave');
    if (row.state === 'joining') return this.#deps.groups.setState(row.rid, 'left');
    this.appendAny(aid, groupId, { kind: 'leave' });
  }

  /**
   * Adds an entry of any kind, and those that stand behind it.
   * @throws SvcError `not_found`, `not_member`, `quota_exceeded`, and as `write`
   */
  appendAny(aid: Aid, groupId: string, draft: EntryDraft, ...behind: readonly EntryDraft[]): Written {
    const { replicas } = this.#deps;
    const row = replicas.row(aid, groupId);
    if (row.state !== 'member') throw new SvcError('not_member');
    if (row.maxSeq >= MAX_APPENDED)
      throw new SvcError('quota_exceeded', { message: `A group takes ${MAX_APPENDED} entries.` });
    return this.write(replicas.open(row), replicas.mustBeHere(aid), draft, ...behind);
  }

  /**
   * Signs and keeps an entry of our own, and those that stand behind it, all or none; tells the others.
   * @throws SvcError `access_denied`, `invalid_request`, `not_member`, `bad_delegation`, `clock_wrong`
   */
  write(replica: Replica, identity: LocalIdentity, draft: EntryDraft, ...behind: readonly EntryDraft[]): Written {
    assertClockNotAhead(this.#deps.clockAheadMs?.() ?? 0);
    const now = this.#deps.clock.now();
    const known = replica.control.newestDelegation(replica.control.everything(), replica.aid);
    // Whoever has an older key of this agent, a thief perhaps, writes nothing behind this.
    const hasNewKey = known > 0 && identity.delegation.issuedAt > known && draft.kind !== 'join';
    const unites = !isControl(draft.kind) && replica.isWide(now);
    if ((hasNewKey || unites) && draft.kind !== 'key') this.write(replica, identity, { kind: 'key' });
    const entry = signEntry(replica.compose(draft, now), identity);
    const problem = replica.problem(entry);
    if (problem !== null) throw refusal(problem);
    const entries = [entry];
    for (const next of behind) entries.push(signEntry(childOf(entries.at(-1) ?? entry, next), identity));
    const { added } = this.admit(replica, entries, null);
    if (added.length < entries.length) throw new SvcError('internal');
    return { seq: replica.maxSeq - behind.length, entryId: entry.id, at: entry.at };
  }

  /**
   * Takes in entries whose signatures were verified.
   * @param from who handed them over; null for our own
   * @throws SvcError `not_found` where the group is gone
   */
  admit(replica: Replica, entries: readonly Entry[], from: Aid | null): OfferResult {
    const { groups, clock } = this.#deps;
    // The group may have gone with its agent while signatures were checked.
    if (groups.byRid(replica.rid) === null) throw new SvcError('not_found', { thing: 'group' });
    // The agent's own entries are never dated before their parents, whatever the clock says.
    // protocol-groups.md, step 2
    const latest = from === null ? Number.POSITIVE_INFINITY : clock.now() + MAX_AHEAD_MS;
    const admission = replica.admit(entries, latest, (added) => {
      settleState(replica, added, this.#deps);
      announce(replica, added, this.#deps);
    });
    if (admission.added.length > 0) this.added.notify(replica, admission.added, from);
    return admission;
  }
}

/** Another join secret: the link of before lets nobody in any more. */
function rekeyDraft(): EntryDraft {
  return { kind: 'rekey', body: new Uint8Array(randomBytes(JOIN_SECRET_BYTES)) };
}

/** An entry behind one that nobody else has seen yet. */
function childOf({ groupId, author, id, depth, at }: Entry, draft: EntryDraft): EntryContent {
  return { ...draft, groupId, author, parents: [id], depth: depth + 1, at };
}

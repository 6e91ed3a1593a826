/** The groups of the agents here: which there are, and the copy of each that is in use. */
import { randomBytes } from 'node:crypto';
import { EPOCH_BYTES, MAX_GROUPS_PER_AGENT, MAX_PAST_GROUPS } from '../../foundation/domain/groups.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { GroupRow, NewGroup } from '../../foundation/store/groups.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import { proveSecret } from './entry.ts';
import { Replica } from './replica.ts';
import type { GroupsDependencies } from './types.ts';

type ReplicasDependencies = Pick<GroupsDependencies, 'groups' | 'entries' | 'clock' | 'identity'>;

export class Replicas {
  readonly #deps: ReplicasDependencies;
  readonly #open = new Map<number, Replica>();

  constructor(dependencies: ReplicasDependencies) {
    this.#deps = dependencies;
  }

  /** Who an agent is; null where it is not here. */
  identity(aid: Aid): LocalIdentity | null {
    return this.#deps.identity(aid);
  }

  /** @throws SvcError `not_found` where the agent is not here */
  mustBeHere(aid: Aid): LocalIdentity {
    const identity = this.identity(aid);
    if (identity === null) throw noSuchAgent(aid);
    return identity;
  }

  /** What is kept of an agent's group. @throws SvcError `not_found` */
  row(aid: Aid, groupId: string): GroupRow {
    this.mustBeHere(aid);
    const row = this.#deps.groups.find(aid, groupId);
    if (row === null)
      throw new SvcError('not_found', { thing: 'group', message: 'The agent has no copy of such a group.' });
    return row;
  }

  /** The copy of a group that is there. */
  open(row: GroupRow): Replica {
    const known = this.#open.get(row.rid);
    // The number of a group that was not kept after all is given to the next one.
    if (known?.groupId === row.groupId) return known;
    const replica = new Replica(row, this.#deps);
    this.#open.set(row.rid, replica);
    return replica;
  }

  /** The copy with a number; null where it, or its agent, is not here. */
  byRid(rid: number): Replica | null {
    return this.#ofAgentHere(this.#deps.groups.byRid(rid));
  }

  /** The copy that others may ask: not one that is still to be filled. */
  served(aid: Aid, groupId: string): Replica | null {
    const row = this.#deps.groups.find(aid, groupId);
    return row?.state === 'joining' ? null : this.#ofAgentHere(row);
  }

  #ofAgentHere(row: GroupRow | null): Replica | null {
    return row === null || this.identity(row.aid) === null ? null : this.open(row);
  }

  /** Begins an empty copy; of those that the agent is in no more, the oldest gives way. @throws SvcError `quota_exceeded` */
  add(group: Omit<NewGroup, 'epoch' | 'lastAt'>): GroupRow {
    const { groups, clock } = this.#deps;
    const { aid, groupId } = group;
    this.checkCount(aid);
    for (const rid of groups.forgetPast(aid, MAX_PAST_GROUPS)) this.reopen(rid);
    groups.add({ ...group, epoch: new Uint8Array(randomBytes(EPOCH_BYTES)), lastAt: clock.now() });
    return this.row(aid, groupId);
  }

  /** @throws SvcError `quota_exceeded` where an agent is in no more groups */
  checkCount(aid: Aid): void {
    if (this.#deps.groups.count(aid) >= MAX_GROUPS_PER_AGENT)
      throw new SvcError('quota_exceeded', { message: `An agent takes part in ${MAX_GROUPS_PER_AGENT} groups.` });
  }

  /** Has a copy read anew where it is used again: what is kept of it has changed, or it is gone. */
  reopen(rid: number): void {
    this.#open.delete(rid);
  }

  /** Forgets the groups of an agent that is gone. */
  forget(aid: Aid): void {
    const { groups } = this.#deps;
    for (const { rid } of groups.list(aid)) this.reopen(rid);
    groups.removeAgent(aid);
  }

  /** What proves to others that the agent was given the join secret; undefined where it was not. */
  proof({ rid, groupId, aid }: Replica): Uint8Array | undefined {
    const secret = this.#deps.groups.byRid(rid)?.secret ?? null;
    return secret === null ? undefined : proveSecret(secret, groupId, aid);
  }

  /** Whom a copy may ask: members, and for a joiner first whom it was pointed to. */
  peers(replica: Replica): Aid[] {
    const row = this.#deps.groups.byRid(replica.rid);
    const hints = row?.state === 'joining' ? row.hints.filter((aid) => aid !== replica.aid) : [];
    return [...new Set([...hints, ...replica.others()])];
  }
}

/** The groups of the local agents and their open replicas. */
import { randomBytes } from 'node:crypto';
import { EPOCH_BYTES, MAX_GROUPS_PER_AGENT, MAX_PAST_GROUPS } from '../../foundation/domain/groups.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { GroupRow, NewGroup } from '../../foundation/store/groups.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import { proveSecret } from './entry.ts';
import { GroupLog, Replica } from './replica.ts';
import type { GroupsDependencies } from './types.ts';

type ReplicasDependencies = Pick<GroupsDependencies, 'groups' | 'entries' | 'clock' | 'identity'>;

export class Replicas {
  readonly #deps: ReplicasDependencies;
  readonly #open = new Map<number, Replica>();
  readonly #logs = new Map<number, GroupLog>();

  constructor(dependencies: ReplicasDependencies) {
    this.#deps = dependencies;
  }

  /** The identity of a local agent, or null if it does not exist. */
  identity(aid: Aid): LocalIdentity | null {
    return this.#deps.identity(aid);
  }

  /** @throws SvcError `not_found` if the agent is not on this node */
  requireLocal(aid: Aid): LocalIdentity {
    const identity = this.identity(aid);
    if (identity === null) throw noSuchAgent(aid);
    return identity;
  }

  /** The stored row of an agent's group. @throws SvcError `not_found` */
  row(aid: Aid, groupId: string): GroupRow {
    this.requireLocal(aid);
    const row = this.#deps.groups.find(aid, groupId);
    if (row === null)
      throw new SvcError('not_found', { thing: 'group', message: 'The agent has no copy of this group.' });
    return row;
  }

  /** Opens the replica of a stored group. */
  open(row: GroupRow): Replica {
    const known = this.#open.get(row.rid);
    // If creating a group fails, its number is used again for the next one.
    if (known?.groupId === row.groupId && known.lid === row.lid) return known;
    const replica = new Replica(row, this.#deps, (one) => this.#openLog(one));
    this.#open.set(row.rid, replica);
    return replica;
  }

  /** The log of a group, which all local members share. */
  #openLog(row: GroupRow): GroupLog {
    const known = this.#logs.get(row.lid);
    if (known?.groupId === row.groupId) return known;
    const log = new GroupLog(row, this.#deps.entries.lastSeq(row.lid), this.#deps);
    this.#logs.set(row.lid, log);
    return log;
  }

  /** Uses the log of other local members for an agent that may read it. Returns false if there is none. */
  attachLocal(replica: Replica): boolean {
    const { groups } = this.#deps;
    const lid = replica.maxSeq > 0 ? null : groups.filledLog(replica.groupId);
    const [member] = lid === null ? [] : groups.sharing(lid);
    if (member === undefined || !this.open(member).log.mayRead(replica.aid, this.proof(replica))) return false;
    return replica.attach();
  }

  /** The replica with a number, or null if it or its agent does not exist. */
  byRid(rid: number): Replica | null {
    return this.#openIfLocal(this.#deps.groups.byRid(rid));
  }

  /** The replica that other nodes may read, or null if it is still empty. */
  served(aid: Aid, groupId: string): Replica | null {
    const row = this.#deps.groups.find(aid, groupId);
    return row?.state === 'joining' ? null : this.#openIfLocal(row);
  }

  #openIfLocal(row: GroupRow | null): Replica | null {
    return row === null || this.identity(row.aid) === null ? null : this.open(row);
  }

  /**
   * Creates an empty replica. If the agent has too many groups that it left, the oldest of them are deleted.
   * @throws SvcError `quota_exceeded`
   */
  add(group: Omit<NewGroup, 'epoch' | 'lastAt'>): GroupRow {
    const { groups, clock } = this.#deps;
    const { aid, groupId } = group;
    this.checkCount(aid);
    for (const rid of groups.deletePast(aid, MAX_PAST_GROUPS)) this.reopen(rid);
    groups.add({ ...group, epoch: new Uint8Array(randomBytes(EPOCH_BYTES)), lastAt: clock.now() });
    return this.row(aid, groupId);
  }

  /** @throws SvcError `quota_exceeded` if the agent is in too many groups */
  checkCount(aid: Aid): void {
    if (this.#deps.groups.count(aid) >= MAX_GROUPS_PER_AGENT)
      throw new SvcError('quota_exceeded', { message: `An agent can be in at most ${MAX_GROUPS_PER_AGENT} groups.` });
  }

  /** Drops the open replica, because its stored state has changed or was deleted. The next use reads it again. */
  reopen(rid: number): void {
    const replica = this.#open.get(rid);
    this.#open.delete(rid);
    // An open log of other members stays, because they use it.
    if (replica !== undefined && ![...this.#open.values()].some(({ lid }) => lid === replica.lid))
      this.#logs.delete(replica.lid);
  }

  /** Deletes the groups of a deleted agent. */
  forget(aid: Aid): void {
    const { groups } = this.#deps;
    for (const { rid } of groups.list(aid)) this.reopen(rid);
    groups.removeAgent(aid);
  }

  /** The proof that the agent knows the join secret, or undefined if it does not know it. */
  proof({ rid, groupId, aid }: Replica): Uint8Array | undefined {
    const secret = this.#deps.groups.byRid(rid)?.secret ?? null;
    return secret === null ? undefined : proveSecret(secret, groupId, aid);
  }

  /** The agents that a replica can sync with: the members, and for a joining agent first the agents in its hints. */
  peers(replica: Replica): Aid[] {
    const row = this.#deps.groups.byRid(replica.rid);
    const hints = row?.state === 'joining' ? row.hints : [];
    const here = this.#deps.groups.localAids(replica.lid);
    return [...new Set([...hints, ...replica.others()])].filter((aid) => aid !== replica.aid && !here.has(aid));
  }
}

/** Joins an agent to a group: fetches the log from a member, then writes a `join` entry. */
import { assertClockNotAhead } from '../../foundation/clock-check.ts';
import { MAX_HINTS, MAX_TITLE_CHARS } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { GroupRow, InviteIn } from '../../foundation/store/groups.ts';
import type { AntiEntropy } from './anti-entropy.ts';
import { type GroupLink, parseGroupLink } from './group-link.ts';
import type { Replica } from './replica.ts';
import type { Replicas } from './replicas.ts';
import type { GroupsDependencies } from './types.ts';
import type { GroupWriter } from './writer.ts';

/** Peers that are tried before `join` returns and joining continues in the background. */
const MAX_TRIED = 4;

/** Identifies a group to join: by its link, or by its ID and creator. */
export interface JoinRequest {
  readonly link?: string | undefined;
  readonly groupId?: string | undefined;
  readonly creator?: Aid | undefined;
  readonly hints: readonly Aid[];
  readonly title?: string | undefined;
}

/** Everything that is known about a group before joining. */
interface JoinInfo extends GroupLink {
  readonly title: string;
  readonly hints: readonly Aid[];
}

interface JoinerDependencies extends Pick<GroupsDependencies, 'groups' | 'log' | 'clockAheadMs'> {
  readonly replicas: Replicas;
  readonly writer: Pick<GroupWriter, 'write'>;
  readonly antiEntropy: Pick<AntiEntropy, 'scheduleSync' | 'syncNow'>;
}

export class Joiner {
  readonly #deps: JoinerDependencies;

  constructor(dependencies: JoinerDependencies) {
    this.#deps = dependencies;
  }

  /**
   * See `Groups.join`.
   * @throws SvcError `clock_wrong` if the clock of this machine prevents joining; as `Groups.join`
   */
  async join(aid: Aid, request: JoinRequest): Promise<{ groupId: string; joined: boolean; title: string }> {
    const { groups, replicas, antiEntropy: spread } = this.#deps;
    replicas.requireLocal(aid);
    const link = request.link === undefined ? null : parseGroupLink(request.link);
    const groupId = link?.groupId ?? request.groupId;
    if (groupId === undefined || (request.groupId !== undefined && request.groupId !== groupId))
      throw new SvcError('invalid_request', { message: 'Give a link, or group_id with creator_aid.' });
    const known = groups.find(aid, groupId);
    // A member needs no invitation, and the stored one may be from anyone.
    const invite = known?.state === 'member' ? null : groups.inviteIn(aid, groupId);
    const way = joinInfoOf(aid, groupId, request, link, invite);
    if (known === null) replicas.add({ ...way, aid, state: 'joining' });
    else this.#rejoin(known, way);
    const clockWrong = await this.#tryPeers(replicas.open(replicas.row(aid, groupId)));
    const row = replicas.row(aid, groupId);
    if (row.state === 'joining' || known !== null) spread.scheduleSync(row.rid);
    if (row.state === 'joining') {
      // Joining completes when the clock is right. Until then, no attempt can succeed.
      assertClockNotAhead(this.#deps.clockAheadMs?.() ?? 0);
      if (clockWrong !== null) throw clockWrong;
    }
    return { groupId, joined: row.state === 'member', title: row.title };
  }

  /** Must be called after each sync. If a joining agent has the log now, writes its `join` entry. */
  synced(replica: Replica): void {
    const { groups, replicas, writer, log } = this.#deps;
    const row = groups.byRid(replica.rid);
    const identity = replicas.identity(replica.aid);
    if (row?.state !== 'joining' || identity === null || replica.maxSeq === 0) return;
    if (replica.role(replica.aid) !== null) return groups.setState(row.rid, 'member');
    const view = replica.control.everything();
    const proof = replica.control.isInvited(view, replica.aid) ? undefined : replicas.proof(replica);
    try {
      writer.write(replica, identity, { kind: 'join', proof });
    } catch (error) {
      log.debug({ aid: replica.aid, error }, 'the group did not admit this agent');
    }
  }

  /** The information from the last attempt may be wrong, for example from a false invitation. */
  #rejoin(known: GroupRow, { creator, hints, secret }: JoinInfo): void {
    const { groups, replicas } = this.#deps;
    const { rid, maxSeq, state } = known;
    if (state === 'left' || state === 'removed') replicas.checkCount(known.aid);
    const all = [...new Set([...hints, ...known.hints])].slice(0, MAX_HINTS);
    // As soon as the replica has an entry, the creator is certain.
    const maker = maxSeq === 0 ? creator : known.creator;
    groups.transaction(() => {
      groups.setJoinInfo(rid, { creator: maker, hints: all }, secret);
      if (state !== 'member') groups.setState(rid, 'joining');
    });
    if (maker !== known.creator) replicas.reopen(rid);
  }

  /** @returns the `clock_wrong` error of an attempt, or null */
  async #tryPeers(replica: Replica): Promise<SvcError | null> {
    const { groups, replicas, antiEntropy: spread, log } = this.#deps;
    let clockWrong: SvcError | null = null;
    for (const peer of replicas.peers(replica).slice(0, MAX_TRIED)) {
      if (groups.byRid(replica.rid)?.state !== 'joining') break;
      try {
        await spread.syncNow(replica, peer);
      } catch (error) {
        log.debug({ aid: replica.aid, peer, error }, 'joining a group through this agent failed');
        if (error instanceof SvcError && error.code === 'clock_wrong') clockWrong = error;
      }
    }
    return clockWrong;
  }
}

/**
 * Combines a join request with its link and a stored invitation.
 * @throws SvcError `invalid_request` if the creator is unknown
 */
function joinInfoOf(
  aid: Aid,
  groupId: string,
  request: JoinRequest,
  link: GroupLink | null,
  invite: InviteIn | null,
): JoinInfo {
  const creator = link?.creator ?? request.creator ?? invite?.creator;
  if (creator === undefined)
    throw new SvcError('invalid_request', {
      message: 'Without a link or an invitation, creator_aid is required.',
      details: { path: '/creator_aid' },
    });
  const hints = [...request.hints, ...(invite === null ? [] : [invite.inviter]), creator];
  return {
    groupId,
    creator,
    title: (request.title ?? invite?.title ?? '').slice(0, MAX_TITLE_CHARS),
    secret: link?.secret ?? invite?.secret ?? null,
    hints: [...new Set(hints)].filter((hint) => hint !== aid).slice(0, MAX_HINTS),
  };
}

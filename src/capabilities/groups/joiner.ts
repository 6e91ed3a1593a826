/** How an agent comes into a group: it finds a member that gives it the log, then writes that it joins. */
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

/** Peers that a joiner tries before it says that joining goes on. */
const MAX_TRIED = 4;

/** How to come to a group: by its link, or by its name. */
export interface JoinRequest {
  readonly link?: string | undefined;
  readonly groupId?: string | undefined;
  readonly creator?: Aid | undefined;
  readonly hints: readonly Aid[];
  readonly title?: string | undefined;
}

/** Where a room is and what lets in, what it is called, and whom to ask. */
interface Way extends GroupLink {
  readonly title: string;
  readonly hints: readonly Aid[];
}

interface JoinerDependencies extends Pick<GroupsDependencies, 'groups' | 'log' | 'clockAheadMs'> {
  readonly replicas: Replicas;
  readonly writer: Pick<GroupWriter, 'write'>;
  readonly spread: Pick<AntiEntropy, 'soon' | 'syncNow'>;
}

export class Joiner {
  readonly #deps: JoinerDependencies;

  constructor(dependencies: JoinerDependencies) {
    this.#deps = dependencies;
  }

  /**
   * As `Groups.join`.
   * @throws SvcError `clock_wrong` if the clock of this machine keeps the agent out; as `Groups.join`
   */
  async join(aid: Aid, request: JoinRequest): Promise<{ groupId: string; joined: boolean; title: string }> {
    const { groups, replicas, spread } = this.#deps;
    replicas.mustBeHere(aid);
    const link = request.link === undefined ? null : parseGroupLink(request.link);
    const groupId = link?.groupId ?? request.groupId;
    if (groupId === undefined || (request.groupId !== undefined && request.groupId !== groupId))
      throw new SvcError('invalid_request', { message: 'Give a link, or group_id with creator_aid.' });
    const known = groups.find(aid, groupId);
    // A member needs no invitation, and anybody may have written one.
    const invite = known?.state === 'member' ? null : groups.inviteIn(aid, groupId);
    const way = wayOf(aid, groupId, request, link, invite);
    if (known === null) replicas.add({ ...way, aid, state: 'joining' });
    else this.#joinAnew(known, way);
    const clockWrong = await this.#tryToEnter(replicas.open(replicas.row(aid, groupId)));
    const row = replicas.row(aid, groupId);
    if (row.state === 'joining' || known !== null) spread.soon(row.rid);
    if (row.state === 'joining') {
      // The group is joined later, once the clock is right. Until then no attempt can succeed.
      assertClockNotAhead(this.#deps.clockAheadMs?.() ?? 0);
      if (clockWrong !== null) throw clockWrong;
    }
    return { groupId, joined: row.state === 'member', title: row.title };
  }

  /** To be called after a comparison: a joiner that has the group writes its entry. */
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
      log.debug({ aid: replica.aid, error }, 'the group does not let this agent in');
    }
  }

  /** What was said of the way before may have been wrong, as in a false invitation. */
  #joinAnew(known: GroupRow, { creator, hints, secret }: Way): void {
    const { groups, replicas } = this.#deps;
    const { rid, maxSeq, state } = known;
    if (state === 'left' || state === 'removed') replicas.checkCount(known.aid);
    const all = [...new Set([...hints, ...known.hints])].slice(0, MAX_HINTS);
    // Once an entry is here it is certain who made the group.
    const maker = maxSeq === 0 ? creator : known.creator;
    groups.transaction(() => {
      groups.setWay(rid, { creator: maker, hints: all }, secret);
      if (state !== 'member') groups.setState(rid, 'joining');
    });
    if (maker !== known.creator) replicas.reopen(rid);
  }

  /** @returns the `clock_wrong` that an attempt failed with; null if none did */
  async #tryToEnter(replica: Replica): Promise<SvcError | null> {
    const { groups, replicas, spread, log } = this.#deps;
    let clockWrong: SvcError | null = null;
    for (const peer of replicas.peers(replica).slice(0, MAX_TRIED)) {
      if (groups.byRid(replica.rid)?.state !== 'joining') break;
      try {
        await spread.syncNow(replica, peer);
      } catch (error) {
        log.debug({ aid: replica.aid, peer, error }, 'a group was not joined through this agent');
        if (error instanceof SvcError && error.code === 'clock_wrong') clockWrong = error;
      }
    }
    return clockWrong;
  }
}

/**
 * What a request to join, its link and an invitation that came before say together.
 * @throws SvcError `invalid_request` where it is not enough
 */
function wayOf(aid: Aid, groupId: string, request: JoinRequest, link: GroupLink | null, invite: InviteIn | null): Way {
  const creator = link?.creator ?? request.creator ?? invite?.creator;
  if (creator === undefined)
    throw new SvcError('invalid_request', {
      message: 'Without a link and without an invitation, creator_aid is needed.',
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

/** Ways to a room: a link, or an invitation. */
import { MAX_HINTS, MAX_TITLE_CHARS } from '../../foundation/domain/rooms.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { InviteIn } from '../../foundation/store/rooms.ts';
import { parseRoomLink } from './room-link.ts';

/** How to come to a room: by its link, or by its name. */
export interface JoinRequest {
  readonly link?: string | undefined;
  readonly groupId?: string | undefined;
  readonly creator?: Aid | undefined;
  readonly hints: readonly Aid[];
  readonly title?: string | undefined;
}

/** Where a room is, what it is called, what lets in, and whom to ask. */
export interface Way {
  readonly groupId: string;
  readonly creator: Aid;
  readonly title: string;
  readonly secret: Uint8Array | null;
  readonly hints: readonly Aid[];
}

/**
 * What a request to join and an invitation that came before say together.
 * @throws SvcError `invalid_request` where it is not enough, `bad_aid`
 */
export function wayOf(aid: Aid, request: JoinRequest, inviteTo: (groupId: string) => InviteIn | null): Way {
  const link = request.link === undefined ? null : parseRoomLink(request.link);
  const groupId = link?.groupId ?? request.groupId;
  if (groupId === undefined || (request.groupId !== undefined && request.groupId !== groupId))
    throw new SvcError('invalid_request', { message: 'Give a link, or group_id with creator_aid.' });
  const invite = inviteTo(groupId);
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

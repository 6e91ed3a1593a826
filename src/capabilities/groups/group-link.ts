/** The shareable link of a group: `svc://<creator>/groups/<group id>#<join secret>`. */
import { JOIN_SECRET_BYTES } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';

const LINK = /^svc:\/\/([0-9A-Za-z]{1,100})\/groups\/([0-9a-f]{64})(?:#([A-Za-z0-9_-]{43}))?$/;

export interface GroupLink {
  readonly creator: Aid;
  readonly groupId: string;
  /** Admits anyone who knows it. Without it, the link only locates the group. */
  readonly secret: Uint8Array | null;
}

export function groupLinkText({ creator, groupId, secret }: GroupLink): string {
  const fragment = secret === null ? '' : `#${Buffer.from(secret).toString('base64url')}`;
  return `svc://${creator}/groups/${groupId}${fragment}`;
}

/** @throws SvcError `invalid_request` (the message never includes the link, because it contains a secret), `bad_aid` */
export function parseGroupLink(text: string): GroupLink {
  const [, creator, groupId, secret] = LINK.exec(text.trim()) ?? [];
  if (creator === undefined || groupId === undefined)
    throw new SvcError('invalid_request', {
      message: 'Invalid group link. Expected svc://<aid>/groups/<group_id>#<secret>.',
      details: { path: '/link' },
    });
  const bytes = secret === undefined ? null : new Uint8Array(Buffer.from(secret, 'base64url'));
  if (bytes !== null && bytes.length !== JOIN_SECRET_BYTES) throw new SvcError('invalid_request');
  return { creator: parseAid(creator), groupId, secret: bytes };
}

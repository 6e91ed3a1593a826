/** Pages of chats and groups. */
import type { Output } from '../../lib/api.ts';
import type { Page } from '../../lib/pages.ts';
import { perform } from '../../lib/query.ts';

export type ChatEntry = Output<'chatRead'>['entries'][number];
export type GroupEntry = Output<'groupEntries'>['entries'][number];

/** Entries per page. */
const PAGE = 50;
/** A position after every entry. */
const BEYOND = 1e12;

/** The entries of a chat before a position. Default: the newest ones. */
export async function chatBefore(aid: string, peer: string, before = BEYOND): Promise<Page<ChatEntry>> {
  const { entries, has_more, read_cursor } = await perform('chatRead', { aid, peer, before_seq: before, limit: PAGE });
  return { entries, hasOlder: has_more, readTo: read_cursor };
}

/** The entries of a group before a position. Default: the newest ones. */
export async function groupBefore(aid: string, group_id: string, before = BEYOND): Promise<Page<GroupEntry>> {
  const { entries, has_more, read_cursor } = await perform('groupEntries', {
    aid,
    group_id,
    before_seq: before,
    limit: PAGE,
  });
  return { entries, hasOlder: has_more, readTo: read_cursor };
}

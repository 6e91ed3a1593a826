/** The ends of conversations. */
import type { Output } from '../../lib/api.ts';
import { perform } from '../../lib/query.ts';

/** Entries of a page, and those that are shown. */
const PAGE = 200;
/** A place in a chat that no entry has. */
const BEYOND = 1e12;

/** The last entries of a chat: those before a place that none reaches. */
export async function endOfChat(aid: string, peer: string): Promise<Output<'chatRead'>['entries']> {
  const { entries } = await perform('chatRead', { aid, peer, before_seq: BEYOND, limit: PAGE });
  return entries;
}

/** The last entries of a room. */
export async function endOfRoom(aid: string, group_id: string): Promise<Output<'groupEntries'>['entries']> {
  const { max_seq } = await perform('groupHead', { aid, group_id });
  const { entries } = await perform('groupEntries', { aid, group_id, after_seq: Math.max(0, max_seq - PAGE) });
  return entries;
}

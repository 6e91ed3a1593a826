/** The ends of conversations, which the API gives from their beginning. */
import type { Output } from '../../lib/api.ts';
import { perform } from '../../lib/query.ts';

/** Entries of a page, and those that are shown. */
const PAGE = 200;

/** The last entries of a chat. */
export async function endOfChat(aid: string, peer: string): Promise<Output<'chatRead'>['entries']> {
  let entries: Output<'chatRead'>['entries'] = [];
  for (let after = 0, more = true; more; ) {
    const page: Output<'chatRead'> = await perform('chatRead', { aid, peer, after_seq: after, limit: PAGE });
    entries = [...entries, ...page.entries].slice(-PAGE);
    more = page.has_more;
    after = page.scanned_to;
  }
  return entries;
}

/** The last entries of a room. */
export async function endOfRoom(aid: string, group_id: string): Promise<Output<'groupEntries'>['entries']> {
  const { max_seq } = await perform('groupHead', { aid, group_id });
  const { entries } = await perform('groupEntries', { aid, group_id, after_seq: Math.max(0, max_seq - PAGE) });
  return entries;
}

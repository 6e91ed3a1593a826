/** Finds what stands beside an entry in the graph: neither before it nor after it. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { GroupEntryStore } from '../../foundation/store/group-entries.ts';

/** Entries that are looked at in one step. */
const STEP = 256;

/**
 * Places of an author's entries that the entry at `seq`, the newest one here, has not among its
 * ancestors. Walks back in order of arrival, in which children come after their parents, as far as
 * there is anything that the entry has not seen.
 */
export function besides(entries: GroupEntryStore, rid: number, seq: number, author: Aid): number[] {
  const found: number[] = [];
  /** Ancestors of the entry that the walk has not come to yet. */
  const seen = new Set<string>();
  /** Entries still to come that it has not seen, as far as is known. */
  const open = new Set(entries.heads(rid, Number.MAX_SAFE_INTEGER));
  let next = seq + 1;
  for (;;) {
    const step = entries.before(rid, next, STEP);
    for (const entry of step) {
      next = entry.seq;
      open.delete(entry.id);
      const isSeen = entry.seq === seq || seen.delete(entry.id);
      if (!isSeen && entry.author === author) found.push(entry.seq);
      for (const parent of entry.parents) {
        if (isSeen) {
          seen.add(parent);
          open.delete(parent);
        } else if (!seen.has(parent)) open.add(parent);
      }
      if (open.size === 0) return found;
    }
    if (step.length < STEP) return found;
  }
}

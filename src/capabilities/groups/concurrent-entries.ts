/** Finds entries that are concurrent with another one: neither ancestors nor descendants. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { GroupEntryStore } from '../../foundation/store/group-entries.ts';

/** Entries that are read in one step. */
const STEP = 256;

/**
 * Positions of an author's entries that are not ancestors of the entry at `seq`, which must be the newest one. Walks
 * back in order of arrival, in which children follow their parents, and stops when every remaining entry is an
 * ancestor.
 */
export function concurrentEntries(entries: GroupEntryStore, rid: number, seq: number, author: Aid): number[] {
  const found: number[] = [];
  /** Known ancestors of the entry that the walk has not reached yet. */
  const seen = new Set<string>();
  /** Known concurrent entries that the walk has not reached yet. */
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

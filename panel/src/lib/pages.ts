/** A conversation in pages: the newest entries first, and earlier ones on demand. */

interface Placed {
  readonly seq: number;
}

export interface Page<E> {
  /** Oldest first. */
  readonly entries: readonly E[];
  /** There are earlier entries. */
  readonly hasOlder: boolean;
  /** The last entry that the agent's own program marked as read. */
  readonly readTo: number;
}

/** Adds the newest page to the loaded entries. If there is a gap between them, only the newest page remains. */
export function withEnd<E extends Placed>(known: Page<E> | undefined, end: Page<E>): Page<E> {
  const [first] = end.entries;
  if (known === undefined || first === undefined) return end;
  if ((known.entries.at(-1)?.seq ?? 0) < first.seq - 1) return end;
  const before = known.entries.filter(({ seq }) => seq < first.seq);
  return { ...end, entries: [...before, ...end.entries], hasOlder: known.hasOlder };
}

/** Adds a page of earlier entries. */
export function withOlder<E extends Placed>(known: Page<E>, older: Page<E>): Page<E> {
  const first = known.entries[0]?.seq ?? Infinity;
  const before = older.entries.filter(({ seq }) => seq < first);
  return { ...known, entries: [...before, ...known.entries], hasOlder: older.hasOlder };
}

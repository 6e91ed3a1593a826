/** A conversation in pages: its end first, older ones in front of it when they are wanted. */

interface Placed {
  readonly seq: number;
}

export interface Page<E> {
  /** Oldest first. */
  readonly entries: readonly E[];
  /** More go before. */
  readonly hasOlder: boolean;
  /** The last entry that the agent's own program has read. */
  readonly readTo: number;
}

/** What is known with the end as it is now; where more came than the end holds, the end alone. */
export function withEnd<E extends Placed>(known: Page<E> | undefined, end: Page<E>): Page<E> {
  const [first] = end.entries;
  if (known === undefined || first === undefined) return end;
  if ((known.entries.at(-1)?.seq ?? 0) < first.seq - 1) return end;
  const before = known.entries.filter(({ seq }) => seq < first.seq);
  return { ...end, entries: [...before, ...end.entries], hasOlder: known.hasOlder };
}

/** What is known with a page of older entries in front of it. */
export function withOlder<E extends Placed>(known: Page<E>, older: Page<E>): Page<E> {
  const first = known.entries[0]?.seq ?? Infinity;
  const before = older.entries.filter(({ seq }) => seq < first);
  return { ...known, entries: [...before, ...known.entries], hasOlder: older.hasOlder };
}

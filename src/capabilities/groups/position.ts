/** The position of an entry in the graph: its parents and the control entries among its ancestors. Pure. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { EntryFact } from '../../foundation/store/group-entries.ts';
import type { ControlLog, View } from './control.ts';
import { MAX_PARENTS } from './entry.ts';

export interface Position {
  readonly parents: readonly Pick<EntryFact, 'depth' | 'at'>[];
  /** The newest control entries among the ancestors. */
  readonly frontier: readonly number[];
  readonly view: View;
}

/** The position of an entry with these parents, or null if it would merge more control entries than one entry may. */
export function positionAfter(parents: readonly EntryFact[], control: ControlLog): Position | null {
  const frontier = control.newest(parents.flatMap(childFrontier));
  return frontier === null ? null : { parents, frontier, view: control.view(frontier) };
}

/** The control frontier that an entry passes to its children. */
function childFrontier({ controlNo, frontier }: EntryFact): readonly number[] {
  return controlNo === null ? frontier : [controlNo];
}

/**
 * Selects the heads that become parents of a new entry, within the limits of one entry. If there are too many, heads
 * that know the author as a member have priority.
 */
export function selectParents(
  heads: ReadonlyMap<string, EntryFact>,
  author: Aid,
  control: ControlLog,
): ReadonlyMap<string, EntryFact> {
  if (heads.size <= MAX_PARENTS && positionAfter([...heads.values()], control) !== null) return heads;
  const knows = (fact: EntryFact): boolean => {
    const position = positionAfter([fact], control);
    return position !== null && control.role(position.view, author) !== null;
  };
  const byKnowing = Map.groupBy(heads, ([, fact]) => knows(fact));
  const ends = new Map<string, EntryFact>();
  for (const [id, fact] of [true, false].flatMap((known) => byKnowing.get(known) ?? [])) {
    if (ends.size >= MAX_PARENTS) break;
    if (positionAfter([...ends.values(), fact], control) !== null) ends.set(id, fact);
  }
  return ends;
}

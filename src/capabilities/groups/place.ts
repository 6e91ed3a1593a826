/** Where an entry stands in a group: behind which others, and what can be seen from there. Pure. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { EntryFact } from '../../foundation/store/group-entries.ts';
import type { ControlLog, View } from './control.ts';
import { MAX_PARENTS } from './entry.ts';

export interface Place {
  readonly parents: readonly Pick<EntryFact, 'depth' | 'at'>[];
  /** The newest control entries among the ancestors. */
  readonly frontier: readonly number[];
  readonly view: View;
}

/** Where an entry with these parents stands; null where it unites more of the group than one entry may. */
export function placeBehind(parents: readonly EntryFact[], control: ControlLog): Place | null {
  const frontier = control.newest(parents.flatMap(controlOf));
  return frontier === null ? null : { parents, frontier, view: control.view(frontier) };
}

/** The newest control entries that an entry's children have among their ancestors by it. */
function controlOf({ controlNo, frontier }: EntryFact): readonly number[] {
  return controlNo === null ? frontier : [controlNo];
}

/** As many heads as an entry may name and unite: where there are more, those that know its author as a member go first. */
export function endsOf(
  heads: ReadonlyMap<string, EntryFact>,
  author: Aid,
  control: ControlLog,
): ReadonlyMap<string, EntryFact> {
  if (heads.size <= MAX_PARENTS && placeBehind([...heads.values()], control) !== null) return heads;
  const knows = (fact: EntryFact): boolean => {
    const place = placeBehind([fact], control);
    return place !== null && control.role(place.view, author) !== null;
  };
  const byKnowing = Map.groupBy(heads, ([, fact]) => knows(fact));
  const ends = new Map<string, EntryFact>();
  for (const [id, fact] of [true, false].flatMap((known) => byKnowing.get(known) ?? [])) {
    if (ends.size >= MAX_PARENTS) break;
    if (placeBehind([...ends.values(), fact], control) !== null) ends.set(id, fact);
  }
  return ends;
}

/** Applies the effects of a new entry: hides or restores other entries, and updates the title. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { GroupEntryStore } from '../../foundation/store/group-entries.ts';
import type { GroupStore } from '../../foundation/store/groups.ts';
import { concurrentEntries } from './concurrent-entries.ts';
import type { ControlLog } from './control.ts';
import { decodeEntry, type Entry } from './entry.ts';
import { bodyText } from './kinds.ts';

/** The parts of a replica that this module uses. */
interface Group {
  readonly rid: number;
  readonly creator: Aid;
  readonly control: ControlLog;
  /** Whether the removal at an index of the control log is effective. */
  readonly isEffective: (removal: number) => boolean;
}

/**
 * Hides entries that are concurrent with a removal. Restores entries that were hidden by removals that are no longer
 * effective.
 */
export function updateHidden(
  group: Group,
  entry: Entry,
  controlNo: number,
  seq: number,
  entries: GroupEntryStore,
): void {
  // protocol-groups.md, step 5
  const [subject] = entry.to ?? [];
  if (subject === undefined) return;
  if (entry.kind === 'remove') {
    for (const concurrent of concurrentEntries(entries, group.rid, seq, subject))
      entries.addConflict(group.rid, controlNo, concurrent);
    applyRemoval(group, controlNo, entries);
  }
  if (entry.author !== group.creator) return;
  for (const removal of group.control.removalsBy(subject)) applyRemoval(group, removal, entries);
}

function applyRemoval(group: Group, removal: number, entries: GroupEntryStore): void {
  for (const { seq, removals } of entries.conflictsOf(group.rid, removal))
    entries.setVoid(group.rid, seq, removals.some(group.isEffective));
}

/** Stores the current title: the last `title` entry that is not set aside, otherwise the title of the first entry. */
export function refreshTitle(rid: number, groups: GroupStore, entries: GroupEntryStore): void {
  const bytes = entries.lastTitle(rid) ?? entries.controlAt(rid, 0);
  if (bytes !== null) groups.setTitle(rid, bodyText(decodeEntry(bytes)) ?? '');
}

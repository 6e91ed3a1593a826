/** What an entry that has come in changes about others: which of them are set aside, and what the room is called. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { GroupEntryStore } from '../../foundation/store/group-entries.ts';
import type { GroupStore } from '../../foundation/store/groups.ts';
import { besides } from './besides.ts';
import type { ControlLog } from './control.ts';
import { decodeEntry, type Entry } from './entry.ts';
import { bodyText } from './kinds.ts';

/** What is known of a group. */
interface Group {
  readonly rid: number;
  readonly creator: Aid;
  readonly control: ControlLog;
  /** True where the removal at a place counts. */
  readonly counts: (removal: number) => boolean;
}

/** Sets aside what stands beside a removal, and takes back what removals of a fallen admin had set aside. */
export function judgeBesides(
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
    for (const beside of besides(entries, group.rid, seq, subject)) entries.addConflict(group.rid, controlNo, beside);
    judge(group, controlNo, entries);
  }
  if (entry.author !== group.creator) return;
  for (const removal of group.control.removalsBy(subject)) judge(group, removal, entries);
}

function judge(group: Group, removal: number, entries: GroupEntryStore): void {
  for (const { seq, removals } of entries.conflictsOf(group.rid, removal))
    entries.setVoid(group.rid, seq, removals.some(group.counts));
}

/** Keeps the title that stands: the last one that is not set aside, otherwise that of the first entry. */
export function refreshTitle(rid: number, groups: GroupStore, entries: GroupEntryStore): void {
  const bytes = entries.lastTitle(rid) ?? entries.controlAt(rid, 0);
  if (bytes !== null) groups.setTitle(rid, bodyText(decodeEntry(bytes)) ?? '');
}

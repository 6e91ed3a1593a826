import type { NewEntryRow } from '../../../src/foundation/store/group-entries.ts';
import { testAid } from '../../support/agents.ts';
import { bytes } from './store-with-agents.ts';

/** The ID of entry number `n`. */
export function entryId(n: number): string {
  return n.toString(16).padStart(64, '0');
}

/** Entry number `n` of a group: a message that does not count as unread. */
export function newEntry(n: number, more: Partial<NewEntryRow> = {}): NewEntryRow {
  const place = { parents: [], depth: n, replyTo: null, controlNo: null, frontier: [], to: [] };
  const flags = { counts: false, void: false };
  return {
    id: entryId(n),
    author: testAid(more.counts === true ? 2 : 1),
    kind: 'msg',
    at: 100 + n,
    bytes: bytes(n, 3),
    ...place,
    ...flags,
    ...more,
  };
}

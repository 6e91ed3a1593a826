/** What an agent reads of its rooms, and how far it has read. */
import { MAX_ENTRIES_PAGE } from '../../foundation/domain/rooms.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { type EntryFilter, MAX_SCANNED, type RoomEntryStore } from '../../foundation/store/room-entries.ts';
import type { RoomStore } from '../../foundation/store/rooms.ts';
import type { Replicas } from './replicas.ts';
import { roomLinkText } from './room-link.ts';
import type { RoomHead, RoomPage, RoomSummary } from './types.ts';
import { entryView, summaryOf } from './views.ts';

export interface ReadQuery extends EntryFilter {
  readonly afterSeq: number;
  readonly limit: number;
}

export interface RoomReaderDependencies {
  readonly rooms: RoomStore;
  readonly entries: RoomEntryStore;
  readonly replicas: Replicas;
}

export class RoomReader {
  readonly #deps: RoomReaderDependencies;

  constructor(dependencies: RoomReaderDependencies) {
    this.#deps = dependencies;
  }

  /** As `Rooms.list`. */
  list(aid: Aid): RoomSummary[] {
    const { rooms, replicas } = this.#deps;
    replicas.mustBeHere(aid);
    const rows = rooms.list(aid).filter(({ state }) => state !== 'left');
    return rows.map((row) => summaryOf(row, replicas.open(row)));
  }

  /** As `Rooms.head`. */
  head(aid: Aid, groupId: string): RoomHead {
    const { replicas } = this.#deps;
    const row = replicas.row(aid, groupId);
    const replica = replicas.open(row);
    return {
      ...summaryOf(row, replica),
      link: roomLinkText(row),
      members: replica.members(),
      maxSeq: row.maxSeq,
      readCursor: row.readSeq,
    };
  }

  /** As `Rooms.read`. */
  read(aid: Aid, groupId: string, { afterSeq, limit, ...filter }: ReadQuery): RoomPage {
    const { rid, maxSeq, readSeq, unread } = this.#deps.replicas.row(aid, groupId);
    const upTo = Math.min(maxSeq, afterSeq + MAX_SCANNED);
    const count = Math.min(limit, MAX_ENTRIES_PAGE);
    const found = this.#deps.entries.page(rid, afterSeq, upTo, count, filter);
    const last = found.at(-1)?.seq ?? upTo;
    const scannedToSeq = found.length < count ? Math.max(upTo, Math.min(afterSeq, maxSeq)) : last;
    return {
      entries: found.map(entryView),
      scannedToSeq,
      hasMore: scannedToSeq < maxSeq,
      readCursor: readSeq,
      unreadCount: unread,
    };
  }

  /** As `Rooms.markRead`. */
  markRead(aid: Aid, groupId: string, seq: number): { readCursor: number; unreadCount: number } {
    const { rooms, replicas } = this.#deps;
    rooms.markRead(replicas.row(aid, groupId).rid, seq);
    const { readSeq, unread } = replicas.row(aid, groupId);
    return { readCursor: readSeq, unreadCount: unread };
  }
}

/** The newest events as encoded frames, shared by all subscribers. */

import { isoTime } from '../../foundation/clock.ts';
import { EVENT_RETRY_MS, LOG_TRUNCATED } from '../../foundation/domain/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { EventBounds, StoredEvent } from '../../foundation/store/events.ts';

/** Limit of cached events. Subscribers that are further behind read from the log. */
export const MAX_RECENT_EVENTS = 4_096;
/** Limit of cached frames, bytes. */
export const MAX_RECENT_BYTES = 8 * 1024 * 1024;
/** Limit of one batch for a subscriber, bytes. */
export const MAX_BATCH_BYTES = 128 * 1024;

interface Recent {
  readonly seq: number;
  readonly aid: string;
  readonly type: string;
  readonly frame: Buffer;
}

/** The filter of a subscriber. */
export interface SubscriberFilter {
  readonly aid: Aid | null;
  /** Null for all types. */
  readonly types: ReadonlySet<string> | null;
  /** Subscribers with equal filters have equal keys. */
  readonly key: string;
}

/** Frames for a subscriber, and its position after them. */
interface Batch {
  readonly bytes: Buffer;
  readonly seq: number;
}

export class RecentEvents {
  #events: Recent[] = [];
  #bytes = 0;
  /** All events after this number are cached. */
  #floor: number;
  #position: number;
  readonly #batches = new Map<string, Batch>();

  /** @param position number of the newest event of the log */
  constructor(position: number) {
    this.#floor = position;
    this.#position = position;
  }

  /** The number of the newest cached event. */
  get position(): number {
    return this.#position;
  }

  /** Whether all events after `seq` are cached. */
  reaches(seq: number): boolean {
    return seq >= this.#floor;
  }

  add(events: readonly StoredEvent[]): void {
    if (events.length === 0) return;
    this.#batches.clear();
    for (const event of events) {
      const { seq, aid, type } = event;
      const frame = eventFrame(event);
      this.#events.push({ seq, aid, type, frame });
      this.#bytes += frame.length;
      this.#position = seq;
    }
    let gone = 0;
    while (this.#events.length - gone > MAX_RECENT_EVENTS || this.#bytes > MAX_RECENT_BYTES) {
      const oldest = this.#events[gone];
      if (oldest === undefined) break;
      this.#bytes -= oldest.frame.length;
      this.#floor = oldest.seq;
      gone++;
    }
    if (gone > 0) this.#events = this.#events.slice(gone);
  }

  /** Returns the frames after `seq`. Cached for subscribers with the same filter and position. */
  batch(filter: SubscriberFilter, seq: number): Batch {
    const key = `${seq} ${filter.key}`;
    const made = this.#batches.get(key);
    if (made !== undefined) return made;
    const batch = this.#collect(filter, seq);
    this.#batches.set(key, batch);
    return batch;
  }

  #collect({ aid, types }: SubscriberFilter, seq: number): Batch {
    const frames: Buffer[] = [];
    let bytes = 0;
    // Subscribers that keep up are near the end.
    for (const event of this.#events.slice(this.#events.findLastIndex((one) => one.seq <= seq) + 1)) {
      if ((aid !== null && event.aid !== aid) || types?.has(event.type) === false) continue;
      frames.push(event.frame);
      bytes += event.frame.length;
      if (bytes >= MAX_BATCH_BYTES) return { bytes: Buffer.concat(frames), seq: event.seq };
    }
    return { bytes: Buffer.concat(frames), seq: this.#position };
  }
}

// Encodes events as server-sent events (HTML standard, section 9.2).

/** A comment. It keeps proxies from closing an idle connection, and shows that the server is still running. */
export const HEARTBEAT = Buffer.from(': \n\n');

/** A logged event. Its data is already JSON, which contains no line break. */
export function eventFrame({ seq, aid, type, at, data }: StoredEvent): Buffer {
  const head = `id: ${seq}\nevent: ${type}\n`;
  return Buffer.from(`${head}data: {"type":"${type}","at":"${isoTime(at)}","aid":"${aid}","data":${data}}\n\n`);
}

/** The start of a stream: the reconnection delay, and the pending counters if there are any. */
export function openingFrame(pending: Readonly<Record<string, unknown>>): Buffer {
  const waiting = Object.keys(pending).length > 0 ? `event: pending\ndata: ${JSON.stringify(pending)}\n` : '';
  return Buffer.from(`retry: ${EVENT_RETRY_MS}\n${waiting}\n`);
}

/** The current position without an event. A client that reconnects resumes from here. */
export function positionFrame(seq: number): Buffer {
  return Buffer.from(`id: ${seq}\n\n`);
}

/** Reports that events after the client's cursor were deleted. The remaining events follow. */
export function truncatedFrame(id: number, { oldestSeq, lastSeq }: EventBounds, at: number, aid: Aid | null): Buffer {
  const data = { type: LOG_TRUNCATED, at: isoTime(at), aid, data: { oldest_seq: oldestSeq, last_seq: lastSeq } };
  return Buffer.from(`id: ${id}\nevent: ${LOG_TRUNCATED}\ndata: ${JSON.stringify(data)}\n\n`);
}

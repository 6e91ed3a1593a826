/** Events in the form of server-sent events (HTML standard, section 9.2). */
import { isoTime } from '../../foundation/clock.ts';
import { EVENT_RETRY_MS, LOG_TRUNCATED } from '../../foundation/domain/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { EventBounds, StoredEvent } from '../../foundation/store/events.ts';

/** A comment: keeps proxies from cutting a quiet connection, and shows that the other side is still there. */
export const HEARTBEAT = Buffer.from(': \n\n');

/** A logged event. Its data is JSON already, which holds no line break. */
export function eventFrame({ seq, aid, type, at, data }: StoredEvent): Buffer {
  const head = `id: ${seq}\nevent: ${type}\n`;
  return Buffer.from(`${head}data: {"type":"${type}","at":"${isoTime(at)}","aid":"${aid}","data":${data}}\n\n`);
}

/** What a stream begins with: when to come back, and what waits, if anything does. */
export function openingFrame(pending: Readonly<Record<string, unknown>>): Buffer {
  const waiting = Object.keys(pending).length > 0 ? `event: pending\ndata: ${JSON.stringify(pending)}\n` : '';
  return Buffer.from(`retry: ${EVENT_RETRY_MS}\n${waiting}\n`);
}

/** Says where the stream stands, without an event: a client that is cut off now takes up from there. */
export function positionFrame(seq: number): Buffer {
  return Buffer.from(`id: ${seq}\n\n`);
}

/** Says that events behind the client's cursor are gone; what is kept follows. */
export function truncatedFrame(id: number, { oldestSeq, lastSeq }: EventBounds, at: number, aid: Aid | null): Buffer {
  const data = { type: LOG_TRUNCATED, at: isoTime(at), aid, data: { oldest_seq: oldestSeq, last_seq: lastSeq } };
  return Buffer.from(`id: ${id}\nevent: ${LOG_TRUNCATED}\ndata: ${JSON.stringify(data)}\n\n`);
}

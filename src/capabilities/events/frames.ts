/** Encodes events as server-sent events (HTML standard, section 9.2). */
import { isoTime } from '../../foundation/clock.ts';
import { EVENT_RETRY_MS, LOG_TRUNCATED } from '../../foundation/domain/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { EventBounds, StoredEvent } from '../../foundation/store/events.ts';

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

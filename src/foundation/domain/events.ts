/** Streams of events. Rules: docs/events.md. */

/** Comes on a stream, and in place of the events behind a client's cursor that are gone. */
export const LOG_TRUNCATED = 'log.truncated';

/** Milliseconds between two signs of life on a stream where nothing happens. */
export const EVENT_HEARTBEAT_MS = 15_000;
/** How long a client waits before it opens a broken stream again, milliseconds. */
export const EVENT_RETRY_MS = 3_000;

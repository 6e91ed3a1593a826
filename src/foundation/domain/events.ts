/** Streams of events. Rules: docs/events.md. */

/** Sent instead of events that are no longer stored. */
export const LOG_TRUNCATED = 'log.truncated';

/** Interval of heartbeats on an idle stream, milliseconds. */
export const EVENT_HEARTBEAT_MS = 15_000;
/** A client waits this long before it opens a broken stream again, milliseconds. */
export const EVENT_RETRY_MS = 3_000;

/** Longest time that a read waits for something new, seconds: the default timeout of many MCP clients. */
export const MAX_WAIT_S = 60;

/** Options that the streams of all adapters share. */

/** Bytes that each half of a stream buffers in JavaScript before back-pressure. */
export const STREAM_BUFFER_BYTES: number = 256 * 1024;

/** Node stream options. The two halves end separately. */
export const STREAM_OPTIONS = {
  allowHalfOpen: true,
  readableHighWaterMark: STREAM_BUFFER_BYTES,
  writableHighWaterMark: STREAM_BUFFER_BYTES,
} as const;

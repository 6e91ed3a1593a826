/** Why a stream broke: the other side reset it, or the whole connection went away. */
const MESSAGES = {
  stream_reset: 'The other side reset the stream.',
  connection_lost: 'The connection under the stream has ended.',
} as const;
type StreamErrorCode = keyof typeof MESSAGES;

/** The error that a broken stream is destroyed with. A clean end never carries one. */
export class StreamError extends Error {
  readonly code: StreamErrorCode;

  constructor(code: StreamErrorCode, cause?: unknown) {
    super(MESSAGES[code], cause === undefined ? undefined : { cause });
    this.name = 'StreamError';
    this.code = code;
  }
}

/** The engine's texts for a reset and for "stop sending"; every other failure is the connection's. */
const RESET_TEXT = /reset by peer|stopped by peer/;

/** Translates a failed read or write of the engine. */
export function streamError(cause: unknown): StreamError {
  const reset = cause instanceof Error && RESET_TEXT.test(cause.message);
  return new StreamError(reset ? 'stream_reset' : 'connection_lost', cause);
}

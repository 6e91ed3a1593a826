/**
 * Runs work in the background. An unhandled rejection would end the process with all its agents, so `detach` is the
 * only way to leave a promise unawaited, and it has an error handler. The linter rejects `void` before a promise; `npm
 * run check:architecture` rejects calls that drop one.
 */

type ErrorHandler = (error: unknown) => void;

/** Without a handler a failure ends the process, as it should in tests. */
const RETHROW: ErrorHandler = (error) => {
  throw error;
};

let handler: ErrorHandler = RETHROW;

/** Sets the error handler until the returned function is called. */
export function onDetachedError(next: ErrorHandler): () => void {
  handler = next;
  return () => {
    if (handler === next) handler = RETHROW;
  };
}

/** Runs a promise in the background, if there is one. */
export function detach(promise: Promise<unknown> | undefined): void {
  promise?.catch((error: unknown) => handler(error));
}

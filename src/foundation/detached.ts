/**
 * Work that goes on by itself, and whose failure nobody waits for. A promise that is left alone ends the process where
 * it fails, with all agents: so there is one way to leave one alone, and it has an owner. The linter refuses `void`
 * before a promise that stands by itself, `npm run check:architecture` refuses it where a function gives one.
 */

type ErrorHandler = (error: unknown) => void;

/** Nobody: what fails ends the process, as it should in tests. */
const RETHROW: ErrorHandler = (error) => {
  throw error;
};

let handler: ErrorHandler = RETHROW;

/** Says who hears of failures from now on, until the returned function is called. */
export function onDetachedError(next: ErrorHandler): () => void {
  handler = next;
  return () => {
    if (handler === next) handler = RETHROW;
  };
}

/** Lets a promise go on by itself, where there is one. */
export function detach(promise: Promise<unknown> | undefined): void {
  promise?.catch((error: unknown) => handler(error));
}

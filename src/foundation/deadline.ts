/** Timeouts as abort signals whose reason is the error to throw. */
import type { Clock, Timer } from './clock.ts';
import { SvcError } from './errors.ts';

export interface Deadline {
  /** Restarts the timeout. Default: of the same length. */
  readonly restart: (ms?: number) => void;
  /** Aborts with `timeout` when the time is up, or with `cancelled` when the outer signal aborts. */
  readonly signal: AbortSignal;
  [Symbol.dispose](): void;
}

/** Starts a timeout of `ms`; 0 means none. Dispose of it when the work is done. */
export function deadline(clock: Clock, ms: number, outer?: AbortSignal): Deadline {
  const controller = new AbortController();
  let [length, dueAt, timerAt] = [ms, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let timer: Timer | null = null;
  const expire = (): void => {
    // The clock may have jumped, and the timer counted only the time that the machine was awake.
    const left = Math.min(length, dueAt - timerAt);
    if (left <= 0) return controller.abort(new SvcError('timeout', { details: { after_ms: length } }));
    timerAt = dueAt = clock.monotonic() + left;
    timer = clock.after(left, expire);
  };
  // A later end does not restart the timer, because it may follow each chunk of a body.
  const restart = (after = ms): void => {
    if (after === 0) return;
    length = after;
    dueAt = clock.monotonic() + after;
    if (dueAt >= timerAt) return;
    timer?.cancel();
    timerAt = dueAt;
    timer = clock.after(after, expire);
  };
  restart();
  const cancel = (): void => controller.abort(reasonOf(outer?.reason));
  if (outer?.aborted === true) cancel();
  else outer?.addEventListener('abort', cancel, { once: true });
  return {
    signal: controller.signal,
    restart,
    [Symbol.dispose]() {
      timer?.cancel();
      outer?.removeEventListener('abort', cancel);
    },
  };
}

function reasonOf(reason: unknown): SvcError {
  return reason instanceof SvcError ? reason : new SvcError('cancelled', { cause: reason });
}

/** The error of an aborted signal: its reason if that is an SvcError, otherwise `cancelled`. */
export function abortError(signal: AbortSignal): SvcError {
  return reasonOf(signal.reason);
}

/**
 * Settles like `promise`, or rejects as soon as the signal aborts. The work itself continues, so that other callers can
 * share it.
 * @throws SvcError see `abortError`
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(abortError(signal));
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/**
 * Waits for `ms`, or until the signal aborts.
 * @throws SvcError see `abortError`
 */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = clock.after(ms, resolve);
  try {
    await abortable(promise, signal);
  } finally {
    timer.cancel();
  }
}

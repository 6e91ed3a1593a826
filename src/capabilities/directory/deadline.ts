import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';

/**
 * Runs `work` and stops waiting for it after `ms` or when `stop` aborts; the signal that it gets
 * aborts then.
 * @throws SvcError `timeout`, `cancelled`, and what `work` throws
 */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  stop: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (stop.aborted) throw new SvcError('cancelled');
  const controller = new AbortController();
  const { promise: given, reject } = Promise.withResolvers<never>();
  const give = (error: SvcError): void => {
    reject(error);
    controller.abort(error);
  };
  const timer = clock.after(ms, () => give(new SvcError('timeout')));
  const onStop = (): void => give(new SvcError('cancelled'));
  stop.addEventListener('abort', onStop, { once: true });
  try {
    return await Promise.race([work(controller.signal), given]);
  } finally {
    timer.cancel();
    stop.removeEventListener('abort', onStop);
  }
}

/**
 * Waits for work that others share: giving up does not end it.
 * @throws SvcError `cancelled` as soon as `signal` aborts, and what the work throws
 */
export async function unlessAborted<T>(shared: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return shared;
  if (signal.aborted) throw new SvcError('cancelled');
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(new SvcError('cancelled'));
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([shared, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

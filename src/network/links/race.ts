/** Several attempts at one thing, begun one after the other: the first that succeeds counts. */
import type { Clock, Timer } from '../../foundation/clock.ts';
import { abortable, abortError } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';

interface Runner<T> {
  /** When it begins, in milliseconds after the race did, if nothing hurries it. */
  readonly afterMs: number;
  run(signal: AbortSignal): Promise<T>;
}

interface RaceOptions<T> {
  /** What makes the next one begin before its time. */
  readonly hurry: 'when one has failed' | 'when the latest has failed';
  /** Takes what comes after another has won, or after the race was given up. */
  readonly drop: (late: T) => void;
}

/**
 * Runs until one succeeds; the signals of the others abort then.
 * @param runners in the order in which they begin; at least one
 * @throws what the last one that failed threw, or the signal's reason
 */
export async function race<T>(
  runners: readonly Runner<T>[],
  { hurry, drop }: RaceOptions<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<T> {
  if (signal.aborted) throw abortError(signal);
  const queue = [...runners];
  const outcome = Promise.withResolvers<T>();
  const others = new AbortController();
  const startedAt = clock.now();
  let running = 0;
  let latest: Runner<T> | undefined;
  let timer: Timer | undefined;
  const won = (result: T): void => {
    if (others.signal.aborted) return drop(result);
    others.abort(new SvcError('cancelled'));
    outcome.resolve(result);
  };
  const begin = (): void => {
    timer?.cancel();
    const runner = queue.shift();
    if (runner === undefined || others.signal.aborted) return;
    running++;
    latest = runner;
    const [next] = queue;
    // Where each failure hurries, those behind the hurried one keep their distance to it.
    const waitMs = (afterMs: number): number =>
      hurry === 'when one has failed' ? afterMs - runner.afterMs : startedAt + afterMs - clock.now();
    if (next !== undefined) timer = clock.after(Math.max(0, waitMs(next.afterMs)), begin);
    runner.run(others.signal).then(won, (failure: unknown) => lost(runner, failure));
  };
  const lost = (runner: Runner<T>, failure: unknown): void => {
    running--;
    if (others.signal.aborted) return;
    if (queue.length > 0 && (hurry === 'when one has failed' || runner === latest)) begin();
    else if (queue.length === 0 && running === 0) outcome.reject(failure);
  };
  begin();
  try {
    return await abortable(outcome.promise, signal);
  } finally {
    timer?.cancel();
    others.abort(new SvcError('cancelled'));
  }
}

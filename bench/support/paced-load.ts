/** Requests at a constant rate. Each is measured from its due time, so that delays of a slow server count. */
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../table.ts';

export interface PacedResult {
  readonly p50Ms: number;
  readonly p95Ms: number;
  /** Responses per second, from the first request to the last response. */
  readonly perSecond: number;
}

/** @param request sends one request; rejects if the response is not the expected one */
export async function pacedLoad(
  request: () => Promise<void>,
  perSecond: number,
  seconds: number,
): Promise<PacedResult> {
  const samples: number[] = [];
  const running: Promise<void>[] = [];
  const total = perSecond * seconds;
  const started = performance.now();
  for (let i = 0; i < total; i++) {
    const due = started + (i * 1000) / perSecond;
    // No busy waiting, which would take CPU time from the server. A timer may fire slightly early.
    while (performance.now() < due) await delay(Math.max(0, due - performance.now()));
    running.push(request().then(() => void samples.push(performance.now() - due)));
  }
  await Promise.all(running);
  const elapsed = (performance.now() - started) / 1000;
  return { p50Ms: quantile(samples, 0.5), p95Ms: quantile(samples, 0.95), perSecond: total / elapsed };
}

/** Requests per second with `parallel` concurrent requests. */
export async function closedLoad(request: () => Promise<void>, parallel: number, total: number): Promise<number> {
  let left = total;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      while (left-- > 0) await request();
    }),
  );
  return (total * 1000) / (performance.now() - started);
}

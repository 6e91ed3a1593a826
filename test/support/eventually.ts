/** Polls for conditions without an event. */
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 20;
/** Only a failing test waits this long. A busy machine may need time. */
export const LIMIT_MS = 60_000;

/** Polls until `check` returns a value other than undefined and false. Fails with `what` after the limit. */
export async function eventually<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T> {
  const end = Date.now() + LIMIT_MS;
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > end) throw new Error(`never came: ${what}`);
    await delay(POLL_MS);
  }
}

/** Waits for conditions that have no event to wait for. */
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 20;
/** Only who fails waits so long: a machine with other work may take a while for everything else. */
export const LIMIT_MS = 60_000;

/** Asks until `check` returns something other than undefined and false; fails with `what` where it never does. */
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

/**
 * Detects work on other threads (signatures, encryption). A test clock must not advance meanwhile, or timeouts would
 * fire within microseconds.
 */
import { createHook } from 'node:async_hooks';

/** Jobs of the crypto module. They can also run synchronously, and then never report completion. */
const MAYBE_AT_ONCE = /Job$/;

const running = new Set<number>();
/** Recent jobs, until it is known whether they run on a thread. */
const begun = new Map<number, object>();
/** Called when no thread works for this process. */
let onEnd: (() => void)[] = [];

function ended(id: number): void {
  if (!running.delete(id) || running.size > 0) return;
  const waiting = onEnd;
  onEnd = [];
  for (const resolve of waiting) resolve();
}

createHook({
  init(id, type, _trigger, resource: object) {
    if (!type.endsWith('REQUEST')) return;
    if (MAYBE_AT_ONCE.test(resource.constructor.name)) begun.set(id, resource);
    else running.add(id);
  },
  after(id) {
    begun.delete(id);
    ended(id);
  },
  destroy: ended,
}).enable();

/** True while another thread works for this process. */
function isBusy(): boolean {
  for (const [id, job] of begun) if ('ondone' in job) running.add(id);
  begun.clear();
  return running.size > 0;
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Turns of the event loop that a promise chain may need between two pieces of work. */
const QUIET_TURNS = 3;

/**
 * Waits until no thread works for this process and no follow-up work is left. It does not poll while a thread works:
 * the test runner observes every promise, so each turn of the event loop is expensive.
 */
export async function idle(): Promise<void> {
  for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
    await turn();
    if (!isBusy()) continue;
    quiet = -1;
    await new Promise<void>((resolve) => void onEnd.push(resolve));
  }
}

/**
 * Detects work on other threads (signatures, encryption). A test clock must not advance meanwhile, or timeouts would
 * fire within microseconds.
 */
import { createHook } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';

/** Kinds of work that can also run synchronously, which never report completion. */
const MAYBE_AT_ONCE: ReadonlySet<string> = new Set(['SignJob', 'RandomBytesJob']);

const running = new Set<number>();
/** Recent work of these kinds, until it is known whether it runs on a thread. */
const begun = new Map<number, object>();

createHook({
  init(id, type, _trigger, resource: object) {
    if (!type.endsWith('REQUEST')) return;
    if (MAYBE_AT_ONCE.has(resource.constructor.name)) begun.set(id, resource);
    else running.add(id);
  },
  after(id) {
    begun.delete(id);
    running.delete(id);
  },
  destroy(id) {
    running.delete(id);
  },
}).enable();

/** True while another thread works for this process. */
function isBusy(): boolean {
  for (const [id, job] of begun) if ('ondone' in job) running.add(id);
  begun.clear();
  return running.size > 0;
}

/** Turns of the event loop that a promise chain may need between two pieces of work. */
const QUIET_TURNS = 3;

/** Waits until no thread works for this process and no follow-up work is left. */
export async function idle(): Promise<void> {
  for (let quiet = 0; quiet < QUIET_TURNS; quiet = isBusy() ? 0 : quiet + 1) await turn();
}

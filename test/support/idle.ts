/**
 * Knows whether work is under way on other threads (signatures, seals): a test's clock must stand
 * still meanwhile, or its time-outs would strike within microseconds.
 */
import { createHook } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';

/** Kinds of work that we also do at once, on our own thread: that never says that it is done. */
const MAYBE_AT_ONCE: ReadonlySet<string> = new Set(['SignJob', 'RandomBytesJob']);

const running = new Set<number>();
/** Work of these kinds that has just begun, until it shows whether somebody waits for it. */
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

/** True while a thread works for us. */
function isBusy(): boolean {
  for (const [id, job] of begun) if ('ondone' in job) running.add(id);
  begun.clear();
  return running.size > 0;
}

/** Turns of the event loop that a chain of promises may need between two pieces of work. */
const QUIET_TURNS = 3;

/** Waits until no thread works for us and nothing follows from what they did. */
export async function idle(): Promise<void> {
  for (let quiet = 0; quiet < QUIET_TURNS; quiet = isBusy() ? 0 : quiet + 1) await turn();
}

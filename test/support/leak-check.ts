/**
 * Finds resources that code leaves behind in its process: timers (also unreferenced ones), sockets, pipes and children,
 * file descriptors, process listeners.
 */
import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Node's names of resources that must be stopped, closed or canceled. */
const HANDLES: ReadonlySet<string> = new Set([
  'Timeout',
  'TCPWRAP',
  'TCPSERVERWRAP',
  'UDPWRAP',
  'PIPEWRAP',
  'PIPESERVERWRAP',
  'PROCESSWRAP',
  'SIGNALWRAP',
  'FSEVENTWRAP',
  'STATWATCHER',
  'MESSAGEPORT',
  'WORKER',
]);
/** Handles close on a later turn, sockets of the QUIC engine on another thread. */
const POLL_MS = 10;
const POLLS = 500;
/** A garbage collection takes longer than a poll. */
const POLLS_PER_COLLECTION = 25;

const open = new Map<number, string>();

const hook = createHook({
  init(id, type) {
    if (HANDLES.has(type)) open.set(id, `${type} ${new Error().stack?.split('\n').slice(2).join('\n') ?? ''}`);
  },
  destroy(id) {
    open.delete(id);
  },
  trackPromises: false,
});

/** Targets of the file descriptors, without their numbers. Empty if the system does not list them. */
function descriptors(): string[] {
  try {
    return readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`).replace(/:\[\d+\]$/, '')];
      } catch {
        // The descriptor of the listing itself.
        return [];
      }
    });
  } catch {
    return [];
  }
}

/**
 * Resources that keep the process running. A histogram that was never enabled is listed too, until its owner is
 * collected.
 */
function active(): string[] {
  return process.getActiveResourcesInfo().filter((type) => type !== 'IntervalHistogram');
}

function listeners(): string[] {
  return process
    .eventNames()
    .flatMap((name) => process.listeners(name).map((one) => `listener of ${String(name)}: ${String(one)}`));
}

/** Items that occur more often than before. */
function added(before: readonly string[], now: readonly string[]): string[] {
  const left = [...before];
  return now.filter((one) => {
    const at = left.indexOf(one);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

setFlagsFromString('--expose-gc');
/** Collects all garbage now. */
export const collectGarbage: () => void = runInNewContext('gc');

export class LeakCheck {
  readonly #handles = new Set(open.keys());
  readonly #active = active();
  readonly #descriptors = descriptors();
  readonly #listeners = listeners();

  /** Starts the check, after everything that is created once per process was used. */
  static begin(): LeakCheck {
    hook.enable();
    return new LeakCheck();
  }

  /** Resources that were added and still exist. */
  left(): string[] {
    return [
      ...[...open].filter(([id]) => !this.#handles.has(id)).map(([, what]) => what),
      ...added(this.#active, active()),
      ...added(this.#descriptors, descriptors()),
      ...added(this.#listeners, listeners()),
    ];
  }

  /**
   * Fails if a resource does not disappear within a few seconds.
   * @param collecting run garbage collections, which release the dialing sockets of the QUIC engine
   */
  async assertNothingLeft({ collecting = false } = {}): Promise<void> {
    for (let polls = 0; polls < POLLS && this.left().length > 0; polls++) {
      if (collecting && polls % POLLS_PER_COLLECTION === 0) collectGarbage();
      await delay(POLL_MS);
      // The timer of this wait disappears on the next turn.
      await turn();
    }
    assert.deepEqual(this.left(), []);
  }
}

/** Heap in use after a garbage collection, bytes. */
export async function heapInUse(): Promise<number> {
  // Objects released by finalizers are found by the next collection.
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await turn();
  }
  return process.memoryUsage().heapUsed;
}

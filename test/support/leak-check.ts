/**
 * Finds what a piece of a program leaves behind in its process: timers (also those that keep nothing
 * alive, as all of ours), sockets, pipes and children, open descriptors, listeners on the process.
 */
import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Node's names for what somebody has to stop, close or cancel. */
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
/** Handles close on a later turn, sockets of the QUIC engine on a thread of its own. */
const POLL_MS = 10;
const POLLS = 500;
/** Collecting takes longer than waiting. */
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

/** What the descriptors of this process lead to, without their numbers; none where the system does not tell. */
function descriptors(): string[] {
  try {
    return readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`).replace(/:\[\d+\]$/, '')];
      } catch {
        // That of the listing itself.
        return [];
      }
    });
  } catch {
    return [];
  }
}

/** What keeps the process alive. A histogram that was never enabled claims to, and goes with its owner. */
function active(): string[] {
  return process.getActiveResourcesInfo().filter((type) => type !== 'IntervalHistogram');
}

function listeners(): string[] {
  return process
    .eventNames()
    .flatMap((name) => process.listeners(name).map((one) => `listener of ${String(name)}: ${String(one)}`));
}

/** What is there more often than before. */
function added(before: readonly string[], now: readonly string[]): string[] {
  const left = [...before];
  return now.filter((one) => {
    const at = left.indexOf(one);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

export class LeakCheck {
  readonly #handles = new Set(open.keys());
  readonly #active = active();
  readonly #descriptors = descriptors();
  readonly #listeners = listeners();

  /** Looks from now on: once everything has been used that a process makes only once. */
  static begin(): LeakCheck {
    hook.enable();
    return new LeakCheck();
  }

  /** What has come since and is still there. */
  left(): string[] {
    return [
      ...[...open].filter(([id]) => !this.#handles.has(id)).map(([, what]) => what),
      ...added(this.#active, active()),
      ...added(this.#descriptors, descriptors()),
      ...added(this.#listeners, listeners()),
    ];
  }

  /**
   * Fails where something is left that does not go by itself within a few seconds.
   * @param collecting lets go with the garbage what has no other end: the sockets that the QUIC engine dials from
   */
  async assertNothingLeft({ collecting = false } = {}): Promise<void> {
    for (let polls = 0; polls < POLLS && this.left().length > 0; polls++) {
      if (collecting && polls % POLLS_PER_COLLECTION === 0) collectGarbage();
      await delay(POLL_MS);
      // The timer of this very wait is known to be gone on the next turn.
      await turn();
    }
    assert.deepEqual(this.left(), []);
  }
}

/** Bytes of the heap that are in use after everything unreachable has been collected. */
export async function heapInUse(): Promise<number> {
  // What finalizers let go of is found by the next collection only.
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await turn();
  }
  return process.memoryUsage().heapUsed;
}

/**
 * Notices at the start that a database is older than it was: a journal that a crash left was lost or damaged, or an old
 * copy was put in place. A number grows in the database, and once it is on disk there, also in a file beside it. So the
 * file is never ahead of the database it belongs to, whenever the process or the machine ends.
 */
import { readFileSync } from 'node:fs';
import { writeFileAtomic } from '../atomic-file.ts';
import type { Clock } from '../clock.ts';
import type { Component } from '../lifecycle.ts';
import type { Log } from '../log.ts';
import { every, type RepeatingTask } from '../repeat.ts';
import type { MetaStore } from './meta.ts';
import type { Store } from './store.ts';

/** Changes that are lost are noticed if they are older than this, milliseconds. The number has to be in the journal to tell. */
export const MARK_PERIOD_MS = 10_000;

const KEY = 'state_number';

interface RollbackGuardDependencies {
  readonly store: Pick<Store, 'changes' | 'transaction' | 'onLasting'>;
  readonly meta: Pick<MetaStore, 'get' | 'set'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class RollbackGuard implements Component {
  readonly #file: string;
  readonly #deps: RollbackGuardDependencies;
  readonly #marks: RepeatingTask;
  #number: number;
  #changes = -1;
  #isRolledBack: boolean;

  /** @param file where the number is kept beside the database */
  constructor(file: string, dependencies: RollbackGuardDependencies) {
    const { meta, clock, log } = dependencies;
    this.#file = file;
    this.#deps = dependencies;
    const [inside, outside] = [numberOf(meta.get(KEY)), numberOf(readNumber(file))];
    this.#isRolledBack = outside > inside;
    this.#number = Math.max(inside, outside);
    const onError = (error: unknown): void => log.warn({ error }, 'the state of the database could not be marked');
    this.#marks = every(clock, { firstMs: MARK_PERIOD_MS, periodMs: MARK_PERIOD_MS, onError }, () => this.#mark());
  }

  /** True if the database had lost changes when it was opened, at this start or an earlier one, until the owner confirms. */
  get isRolledBack(): boolean {
    return this.#isRolledBack;
  }

  /** The owner has seen that changes were lost. @throws SvcError `not_writable` */
  confirm(): void {
    if (!this.#isRolledBack) return;
    this.#write();
    this.#isRolledBack = false;
    this.#deps.log.info({}, 'the owner confirmed the access lists: the agents are open again');
  }

  async start(): Promise<void> {
    this.#deps.store.onLasting(() => this.#marks.soon());
    if (this.#isRolledBack)
      this.#deps.log.error(
        {},
        'the database has lost its newest changes: its journal was damaged or removed after a crash, or an old copy was put in place. All agents are closed to other nodes: check the access lists, restore a backup if something is missing, then run "svc access confirm"',
      );
    this.#mark();
  }

  async stop(): Promise<void> {
    this.#marks.stop();
    this.#mark();
  }

  #mark(): void {
    // Until the owner confirms, the file stays ahead: the next start finds the same.
    if (this.#isRolledBack || this.#deps.store.changes === this.#changes) return;
    this.#write();
  }

  #write(): void {
    const { store, meta } = this.#deps;
    const next = this.#number + 1;
    store.transaction(() => meta.set(KEY, next));
    // Only now: a file that is behind says nothing, one that is ahead would be an alarm.
    writeFileAtomic(this.#file, `${next}\n`);
    this.#number = next;
    this.#changes = store.changes;
  }
}

function readNumber(file: string): unknown {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return 0;
  }
}

function numberOf(value: unknown): number {
  return Number.isSafeInteger(value) ? Number(value) : 0;
}

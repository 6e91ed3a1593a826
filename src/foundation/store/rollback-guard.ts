/**
 * Detects at the start that a database lost changes, because its journal was lost or damaged after a crash, or because
 * an old copy was restored. The database contains a counter. A file next to it gets each new value after the value is
 * on disk in the database. So the file is never ahead of the database, even after a crash.
 */
import { readFileSync } from 'node:fs';
import { writeFileAtomic } from '../files.ts';
import type { Component } from '../lifecycle.ts';
import type { NodeParts } from '../node-parts.ts';
import { every, type RepeatingTask } from '../repeat.ts';
import type { MetaStore } from './meta.ts';
import type { Store } from './store.ts';

/**
 * Lost changes are detected if they are older than this, in milliseconds. The counter must be in the journal for that.
 */
export const MARK_PERIOD_MS = 10_000;

const KEY = 'state_number';

interface RollbackGuardDependencies extends NodeParts {
  readonly store: Store;
  readonly meta: MetaStore;
}

export class RollbackGuard implements Component {
  readonly #file: string;
  readonly #deps: RollbackGuardDependencies;
  readonly #marks: RepeatingTask;
  #number: number;
  #changes = -1;
  #isRolledBack: boolean;

  /** @param file stores the counter next to the database */
  constructor(file: string, dependencies: RollbackGuardDependencies) {
    const { meta, clock, log } = dependencies;
    this.#file = file;
    this.#deps = dependencies;
    const [inside, outside] = [numberOf(meta.get(KEY)), numberOf(readNumber(file))];
    this.#isRolledBack = outside > inside;
    this.#number = Math.max(inside, outside);
    const onError = (error: unknown): void => log.warn({ error }, 'failed to mark the state of the database');
    this.#marks = every(clock, { firstMs: MARK_PERIOD_MS, periodMs: MARK_PERIOD_MS, onError }, () => this.#mark());
  }

  /**
   * True if the database had lost changes when it was opened, at this start or an earlier one, until the owner
   * confirms.
   */
  get isRolledBack(): boolean {
    return this.#isRolledBack;
  }

  /** The owner confirms the access lists after lost changes. @throws SvcError `not_writable` */
  confirm(): void {
    if (!this.#isRolledBack) return;
    this.#write();
    this.#isRolledBack = false;
    this.#deps.log.info({}, 'the owner confirmed the access lists; agents accept other nodes again');
  }

  async start(): Promise<void> {
    this.#deps.store.onCheckpoint(() => this.#marks.soon());
    if (this.#isRolledBack)
      this.#deps.log.error(
        {},
        'the database lost its latest changes: its journal was damaged or removed after a crash, or an old copy was restored. Agents reject all other nodes. Check the access lists, restore a backup if something is missing, then run "svc access confirm"',
      );
    this.#mark();
  }

  async stop(): Promise<void> {
    this.#marks.stop();
    this.#mark();
  }

  #mark(): void {
    // Until the owner confirms, the file remains ahead, so the next start detects the loss again.
    if (this.#isRolledBack || this.#deps.store.changes === this.#changes) return;
    this.#write();
  }

  #write(): void {
    const { store, meta } = this.#deps;
    const next = this.#number + 1;
    store.transaction(() => meta.set(KEY, next));
    // Written last: a file that is behind is harmless, and a file that is ahead reports a loss.
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

/** The public names that agents of this node hold at entries. Times are Unix milliseconds. */
import type { DueTable } from '../due-queue.ts';
import type { ErrorCode } from '../errors.ts';
import type { Aid } from '../identity/aid.ts';
import { dueRows } from './due-rows.ts';
import type { Store } from './store.ts';
import { aid, errorCode, integer, nullable, type RowOf, Table, text } from './table.ts';

const PUBLIC_NAMES = new Table('public_names', {
  name: text,
  aid,
  /** The AID of the node of the entry. */
  entry: aid,
  /** When the entry confirmed the name first, and last. */
  heldAt: integer,
  seenAt: integer,
  /** The error of the last attempt. */
  errorCode: nullable(errorCode),
  errorText: nullable(text),
  /** The time of the next confirmation. */
  dueAt: integer,
  /** Failed attempts since the last confirmation. */
  attempts: integer,
});

export type PublicNameRow = RowOf<typeof PUBLIC_NAMES>;

export class PublicNameStore {
  readonly #store: Store;
  /** The names to confirm, by entry. */
  readonly due: DueTable<PublicNameRow>;

  constructor(store: Store) {
    this.#store = store;
    this.due = dueRows(
      store,
      { table: 'public_names', dueAt: 'due_at', id: 'name', key: 'entry' },
      PUBLIC_NAMES.read,
      ({ name }, at) => store.run`UPDATE public_names SET due_at = ${at}, attempts = attempts + 1 WHERE name = ${name}`,
    );
  }

  list(): PublicNameRow[] {
    return PUBLIC_NAMES.all(this.#store)`ORDER BY name`;
  }

  find(name: string): PublicNameRow | null {
    return PUBLIC_NAMES.one(this.#store)`WHERE name = ${name}`;
  }

  /** Stores a confirmed name. Nothing changes if its agent is not registered here. */
  put(row: Pick<PublicNameRow, 'name' | 'aid' | 'entry' | 'heldAt' | 'seenAt' | 'dueAt'>): void {
    this.#store.transaction(() => {
      const before = this.find(row.name);
      this.delete(row.name);
      const heldAt = before?.aid === row.aid && before.entry === row.entry ? before.heldAt : row.heldAt;
      PUBLIC_NAMES.insertForAgent(this.#store, { ...row, heldAt, errorCode: null, errorText: null, attempts: 0 });
    });
  }

  /** Stores the error of an attempt. */
  failed(name: string, errorCode: ErrorCode, errorText: string): void {
    PUBLIC_NAMES.update(this.#store, { errorCode, errorText }, 'WHERE name = ?', name);
  }

  /** Makes names due: those at one entry, or all. */
  makeDue(now: number, entry: Aid | null = null): void {
    this.#store.run`UPDATE public_names SET due_at = min(due_at, ${now}) WHERE ${entry} IS NULL OR entry = ${entry}`;
  }

  delete(name: string): void {
    this.#store.run`DELETE FROM public_names WHERE name = ${name}`;
  }
}

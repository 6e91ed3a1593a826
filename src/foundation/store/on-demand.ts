/** Services that start on demand. Times are milliseconds. */
import type { Aid } from '../identity/aid.ts';
import type { Store } from './store.ts';
import { aid, flag, integer, type RowOf, Table, text, texts } from './table.ts';

const ON_DEMAND = new Table('on_demand', {
  aid,
  /** The program and its arguments. */
  command: texts,
  /** The command is one text for a shell. */
  shell: flag,
  folder: text,
  /** The port on 127.0.0.1 at which svcd listens for it. */
  port: integer,
  idleMs: integer,
});

export type OnDemandRow = RowOf<typeof ON_DEMAND>;

export class OnDemandStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  list(): OnDemandRow[] {
    return ON_DEMAND.all(this.#store)`ORDER BY aid`;
  }

  put(row: OnDemandRow): void {
    ON_DEMAND.replace(this.#store, row);
  }

  /** False if there is none. */
  delete(aid: Aid): boolean {
    return this.#store.run`DELETE FROM on_demand WHERE aid = ${aid}` > 0;
  }
}

/** Services that start on demand. Times are milliseconds. */
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, flagOf, integerOf, textOf } from './row.ts';
import type { Row, Store } from './store.ts';

export type OnDemandRow = Readonly<ReturnType<typeof rowOf>>;

function rowOf(row: Row) {
  return {
    aid: aidFromRow(row, 'aid'),
    /** The program and its arguments. */
    command: JSON.parse(textOf(row, 'command')) as readonly string[],
    /** The command is one text for a shell. */
    shell: flagOf(row, 'shell'),
    folder: textOf(row, 'folder'),
    /** The port on 127.0.0.1 at which svcd listens for it. */
    port: integerOf(row, 'port'),
    idleMs: integerOf(row, 'idle_ms'),
  };
}

export class OnDemandStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  list(): OnDemandRow[] {
    return this.#store.all`SELECT * FROM on_demand ORDER BY aid`.map(rowOf);
  }

  put({ aid, command, shell, folder, port, idleMs }: OnDemandRow): void {
    this.#store.run`
      INSERT OR REPLACE INTO on_demand (aid, command, shell, folder, port, idle_ms)
      VALUES (${aid}, ${JSON.stringify(command)}, ${Number(shell)}, ${folder}, ${port}, ${idleMs})`;
  }

  /** False if there is none. */
  delete(aid: Aid): boolean {
    return this.#store.run`DELETE FROM on_demand WHERE aid = ${aid}` > 0;
  }
}

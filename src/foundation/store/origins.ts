/** The local addresses of remote agents. The daemon opens them again when it starts. */
import { aidFromRow, integerOf, orNull, textOf } from './row.ts';
import type { Row, Store } from './store.ts';

export type SavedOrigin = Readonly<ReturnType<typeof fromRow>>;

function fromRow(row: Row) {
  return {
    id: textOf(row, 'id'),
    localAid: aidFromRow(row, 'local_aid'),
    remoteAid: aidFromRow(row, 'remote_aid'),
    /** The access token that the remote agent requires. */
    accessToken: orNull(textOf, row, 'access_token') ?? undefined,
    port: integerOf(row, 'port'),
    /** Unix milliseconds. */
    openedAt: integerOf(row, 'opened_at'),
  };
}

export class OriginStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Stores an address or its changes. Webhooks that were registered there remain. */
  save(o: SavedOrigin): void {
    this.#store.transaction(() => {
      // The system assigned this port again, so no other saved address uses it.
      this.#store.run`DELETE FROM origins WHERE port = ${o.port} AND id <> ${o.id}`;
      this.#store.run`
        INSERT INTO origins (id, local_aid, remote_aid, access_token, port, opened_at)
        VALUES (${o.id}, ${o.localAid}, ${o.remoteAid}, ${o.accessToken ?? null}, ${o.port}, ${o.openedAt})
        ON CONFLICT (id) DO UPDATE SET access_token = excluded.access_token, port = excluded.port`;
    });
  }

  delete(id: string): void {
    this.#store.run`DELETE FROM origins WHERE id = ${id}`;
  }

  list(): SavedOrigin[] {
    return this.#store.all('SELECT * FROM origins ORDER BY opened_at').map(fromRow);
  }
}

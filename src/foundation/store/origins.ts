/** The local addresses of remote agents. The daemon opens them again when it starts. */
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { openToken, sealToken } from './access-tokens.ts';
import { aidFromRow, integerOf, textOf } from './row.ts';
import type { Row, Store } from './store.ts';

export type SavedOrigin = Readonly<ReturnType<typeof fromRow>>;

function fromRow(secrets: StoredSecrets, row: Row) {
  return {
    id: textOf(row, 'id'),
    localAid: aidFromRow(row, 'local_aid'),
    remoteAid: aidFromRow(row, 'remote_aid'),
    /** The access token that the remote agent requires. */
    accessToken: openToken(secrets, 'origins', row),
    port: integerOf(row, 'port'),
    /** Unix milliseconds. */
    openedAt: integerOf(row, 'opened_at'),
  };
}

export class OriginStore {
  readonly #store: Store;
  readonly #secrets: StoredSecrets;

  constructor(store: Store, secrets: StoredSecrets) {
    this.#store = store;
    this.#secrets = secrets;
  }

  /** Stores an address or its changes. Webhooks that were registered there remain. */
  save(o: SavedOrigin): void {
    this.#store.transaction(() => {
      // The system assigned this port again, so no other saved address uses it.
      this.#store.run`DELETE FROM origins WHERE port = ${o.port} AND id <> ${o.id}`;
      this.#store.run`
        INSERT INTO origins (id, local_aid, remote_aid, sealed_token, port, opened_at)
        VALUES (${o.id}, ${o.localAid}, ${o.remoteAid}, ${sealToken(this.#secrets, 'origins', o)}, ${o.port}, ${o.openedAt})
        ON CONFLICT (id) DO UPDATE SET sealed_token = excluded.sealed_token, port = excluded.port`;
    });
  }

  delete(id: string): void {
    this.#store.run`DELETE FROM origins WHERE id = ${id}`;
  }

  list(): SavedOrigin[] {
    return this.#store.all('SELECT * FROM origins ORDER BY opened_at').map((row) => fromRow(this.#secrets, row));
  }
}

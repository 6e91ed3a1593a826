/** The local addresses of remote agents. The daemon opens them again when it starts. */
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { accessTokenIn } from './access-tokens.ts';
import type { Store } from './store.ts';
import { aid, integer, type RowOf, Table, text } from './table.ts';

function tableOf(secrets: StoredSecrets) {
  return new Table('origins', {
    id: text,
    localAid: aid,
    remoteAid: aid,
    /** The access token that the remote agent requires. */
    accessToken: accessTokenIn('origins', secrets),
    port: integer,
    /** Unix milliseconds. */
    openedAt: integer,
  });
}

export type SavedOrigin = RowOf<ReturnType<typeof tableOf>>;

export class OriginStore {
  readonly #store: Store;
  readonly #origins: ReturnType<typeof tableOf>;

  constructor(store: Store, secrets: StoredSecrets) {
    this.#store = store;
    this.#origins = tableOf(secrets);
  }

  /** Stores an address or its changes. Webhooks that were registered there remain. */
  save(o: SavedOrigin): void {
    this.#store.transaction(() => {
      // The system assigned this port again, so no other saved address uses it.
      this.#store.run`DELETE FROM origins WHERE port = ${o.port} AND id <> ${o.id}`;
      this.#origins.insert(
        this.#store,
        o,
        'ON CONFLICT (id) DO UPDATE SET sealed_token = excluded.sealed_token, port = excluded.port',
      );
    });
  }

  delete(id: string): void {
    this.#store.run`DELETE FROM origins WHERE id = ${id}`;
  }

  list(): SavedOrigin[] {
    return this.#origins.all(this.#store)`ORDER BY opened_at`;
  }
}

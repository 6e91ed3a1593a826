/** The tunnels with a fixed port. The daemon opens them again when it starts. */
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { accessTokenIn } from './access-tokens.ts';
import type { Store } from './store.ts';
import { aid, flag, integer, named, type RowOf, Table, text } from './table.ts';

function tableOf(secrets: StoredSecrets) {
  return new Table('tunnels', {
    id: text,
    localAid: aid,
    remoteAid: aid,
    /** The access token that the remote agent requires, stored so that the tunnel opens unattended. */
    accessToken: accessTokenIn('tunnels', secrets),
    localPort: integer,
    idleTimeoutSec: named('idle_timeout_s', integer),
    disableRelay: flag,
  });
}

export type SavedTunnel = RowOf<ReturnType<typeof tableOf>>;

export class TunnelStore {
  readonly #store: Store;
  readonly #tunnels: ReturnType<typeof tableOf>;

  constructor(store: Store, secrets: StoredSecrets) {
    this.#store = store;
    this.#tunnels = tableOf(secrets);
  }

  save(tunnel: SavedTunnel): void {
    this.#tunnels.replace(this.#store, tunnel);
  }

  delete(id: string): void {
    this.#store.run`DELETE FROM tunnels WHERE id = ${id}`;
  }

  list(): SavedTunnel[] {
    return this.#tunnels.all(this.#store)`ORDER BY local_port`;
  }
}

/** The tunnels with a fixed port. The daemon opens them again when it starts. */
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { accessTokenIn } from './access-tokens.ts';
import type { Store } from './store.ts';
import { aid, flag, integer, named, type RowOf, Table, text } from './table.ts';

function columns(secrets: StoredSecrets) {
  return {
    id: text,
    localAid: aid,
    remoteAid: aid,
    /** The access token that the remote agent requires, stored so that the tunnel opens unattended. */
    accessToken: accessTokenIn('tunnels', secrets),
    localPort: integer,
    idleTimeoutSec: named('idle_timeout_s', integer),
    disableRelay: flag,
  };
}

export type SavedTunnel = RowOf<ReturnType<typeof columns>>;

export class TunnelStore {
  readonly #store: Store;
  readonly #tunnels: Table<ReturnType<typeof columns>>;

  constructor(store: Store, secrets: StoredSecrets) {
    this.#store = store;
    this.#tunnels = new Table(store, 'tunnels', columns(secrets));
  }

  save(tunnel: SavedTunnel): void {
    this.#tunnels.replace(tunnel);
  }

  delete(id: string): void {
    this.#store.run`DELETE FROM tunnels WHERE id = ${id}`;
  }

  list(): SavedTunnel[] {
    return this.#tunnels.all`ORDER BY local_port`;
  }
}

/** The tunnels with a fixed port. The daemon opens them again when it starts. */
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { openToken, sealToken } from './access-tokens.ts';
import { aidFromRow, flagOf, integerOf, textOf } from './row.ts';
import type { Row, Store } from './store.ts';

export type SavedTunnel = Readonly<ReturnType<typeof fromRow>>;

function fromRow(secrets: StoredSecrets, row: Row) {
  return {
    id: textOf(row, 'id'),
    localAid: aidFromRow(row, 'local_aid'),
    remoteAid: aidFromRow(row, 'remote_aid'),
    /** The access token that the remote agent requires, stored so that the tunnel opens unattended. */
    accessToken: openToken(secrets, 'tunnels', row),
    localPort: integerOf(row, 'local_port'),
    idleTimeoutSec: integerOf(row, 'idle_timeout_s'),
    disableRelay: flagOf(row, 'disable_relay'),
  };
}

export class TunnelStore {
  readonly #store: Store;
  readonly #secrets: StoredSecrets;

  constructor(store: Store, secrets: StoredSecrets) {
    this.#store = store;
    this.#secrets = secrets;
  }

  save(t: SavedTunnel): void {
    this.#store.run`
      INSERT OR REPLACE INTO tunnels
        (id, local_aid, remote_aid, sealed_token, local_port, idle_timeout_s, disable_relay)
      VALUES (${t.id}, ${t.localAid}, ${t.remoteAid}, ${sealToken(this.#secrets, 'tunnels', t)}, ${t.localPort}, ${t.idleTimeoutSec},
        ${t.disableRelay ? 1 : 0})`;
  }

  delete(id: string): void {
    this.#store.run`DELETE FROM tunnels WHERE id = ${id}`;
  }

  list(): SavedTunnel[] {
    return this.#store.all('SELECT * FROM tunnels ORDER BY local_port').map((row) => fromRow(this.#secrets, row));
  }
}

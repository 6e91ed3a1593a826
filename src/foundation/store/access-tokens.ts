/** Access tokens of remote agents, which are presented as they are and so are stored sealed. */
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { blobOf, orNull, textOf } from './row.ts';
import type { Row } from './store.ts';
import type { Column } from './table.ts';

/** Tables with the columns `id` and `sealed_token`. */
type TokenTable = 'tunnels' | 'origins';

function purposeOf(table: TokenTable, id: string): string {
  return `${table} ${id}`;
}

/** The column of the token. Its row needs an `id`. */
export function accessTokenIn(table: TokenTable, secrets: StoredSecrets): Column<string | undefined> {
  return {
    name: 'sealed_token',
    read: (row) => openToken(secrets, table, row),
    write: (token, { id }) => (token === undefined ? null : secrets.seal(purposeOf(table, String(id)), token)),
  };
}

/** The token of a row; undefined if it has none, or one of another node. */
export function openToken(secrets: StoredSecrets, table: TokenTable, row: Row | undefined): string | undefined {
  const sealed = orNull(blobOf, row, 'sealed_token');
  return (sealed === null ? null : secrets.open(purposeOf(table, textOf(row, 'id')), sealed)) ?? undefined;
}

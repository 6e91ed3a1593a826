/** Access tokens of remote agents, which are presented as they are and so are stored sealed. */
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { blobOf, orNull, textOf } from './row.ts';
import type { Row } from './store.ts';

/** Tables with the columns `id` and `sealed_token`. */
type TokenTable = 'tunnels' | 'origins';

function purposeOf(table: TokenTable, id: string): string {
  return `${table} ${id}`;
}

export function sealToken(
  secrets: StoredSecrets,
  table: TokenTable,
  { id, accessToken }: { readonly id: string; readonly accessToken: string | undefined },
): Uint8Array | null {
  return accessToken === undefined ? null : secrets.seal(purposeOf(table, id), accessToken);
}

/** The token of a row; undefined if it has none, or one of another node. */
export function openToken(secrets: StoredSecrets, table: TokenTable, row: Row): string | undefined {
  const sealed = orNull(blobOf, row, 'sealed_token');
  return (sealed === null ? null : secrets.open(purposeOf(table, textOf(row, 'id')), sealed)) ?? undefined;
}

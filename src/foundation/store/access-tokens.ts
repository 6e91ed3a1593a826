/** Access tokens of remote agents, which are presented as they are and so are stored sealed. */
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { blobOf, orNull, textOf } from './row.ts';
import type { Row, Store } from './store.ts';

/** Tables with the columns `id`, `sealed_token`, and `access_token` for tokens of earlier versions. */
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

/** Seals the tokens that earlier versions stored as plain text, and overwrites them. */
export function sealEarlierTokens(store: Store, secrets: StoredSecrets): void {
  const tables = (['tunnels', 'origins'] as const).filter((table) => earlierTokens(store, table).length > 0);
  if (tables.length > 0) store.erase(() => tables.forEach((table) => sealTable(store, secrets, table)));
}

function earlierTokens(store: Store, table: TokenTable): Row[] {
  return store.all(`SELECT id, access_token FROM ${table} WHERE access_token IS NOT NULL`);
}

function sealTable(store: Store, secrets: StoredSecrets, table: TokenTable): void {
  for (const row of earlierTokens(store, table)) {
    const id = textOf(row, 'id');
    const token = sealToken(secrets, table, { id, accessToken: textOf(row, 'access_token') });
    store.run(`UPDATE ${table} SET sealed_token = ?, access_token = NULL WHERE id = ?`, token, id);
  }
}

/** How access lists are shown. */
import { formatTable, relativeTime } from './text.ts';

interface Lists {
  readonly allow: readonly {
    readonly id: string;
    readonly aid?: string;
    readonly label?: string;
    readonly created_at: string;
    readonly expires_at?: string;
  }[];
  readonly deny: readonly { readonly id: string; readonly aid: string; readonly created_at: string }[];
}

/** Both lists as a table; empty where nobody is on them. */
export function accessTable({ allow, deny }: Lists): string {
  const now = Date.now();
  const rows = [
    ...allow.map((e) => [
      'allow',
      e.id,
      e.aid ?? '(who presents a secret)',
      e.label ?? '',
      relativeTime(e.created_at, now),
      e.expires_at === undefined ? 'never' : relativeTime(e.expires_at, now),
    ]),
    ...deny.map((e) => ['deny', e.id, e.aid, '', relativeTime(e.created_at, now), 'never']),
  ];
  return rows.length === 0 ? '' : formatTable(['LIST', 'ID', 'WHO', 'LABEL', 'MADE', 'EXPIRES'], rows);
}

interface NewEntry {
  readonly id: string;
  readonly secret?: string;
}

/** One new entry: the secret stands alone in a pipe, where it was generated. */
export const ENTRY = {
  text: ({ id, secret }: NewEntry): string =>
    secret === undefined ? `Entry ${id}.` : `Entry ${id}. Shown this once:\n${secret}`,
  quiet: ({ id, secret }: NewEntry): string => secret ?? id,
};

/** How access lists are shown. */
import { relativeTime } from '../../foundation/plain-words.ts';
import type { AnswerOf } from './client.ts';
import type { Laid } from './laid.ts';
import type { Loss } from './loss.ts';
import { formatTable } from './text.ts';

type Lists = Pick<AnswerOf<'aclGet'>, 'allow' | 'deny'>;
type NewEntry = Pick<AnswerOf<'aclAllow'>, 'id' | 'secret'>;

/** Both lists as a table; empty where nobody is on them. */
export function accessTable({ allow, deny }: Lists): Laid {
  const now = Date.now();
  const rows = [
    ...allow.map((e) => [
      'allow',
      e.id,
      e.aid ?? '(who presents a secret)',
      e.label,
      relativeTime(e.created_at, now),
      e.expires_at === undefined ? 'never' : relativeTime(e.expires_at, now),
    ]),
    ...deny.map((e) => ['deny', e.id, e.aid, '', relativeTime(e.created_at, now), 'never']),
  ];
  return formatTable(['LIST', 'ID', 'WHO', 'LABEL', 'MADE', 'EXPIRES'], rows, '');
}

/** One new entry: the secret stands alone in a pipe, where it was generated. */
export const ENTRY = {
  text: ({ id, secret }: NewEntry): string =>
    secret === undefined ? `Entry ${id}.` : `Entry ${id}. Shown this once:\n${secret}`,
  quiet: ({ id, secret }: NewEntry): string => secret ?? id,
};

/** True if an answer holds a secret that is shown only this once. */
export function holdsSecret({ secret }: NewEntry): boolean {
  return secret !== undefined;
}

/**
 * What goes with an entry.
 * @param again the command that puts an AID on the list
 */
export function entryLoss(list: 'allow' | 'deny', id: string, again: string): Loss {
  const cost =
    list === 'allow'
      ? 'Who gets in by it alone is out, and a secret is never shown again'
      : 'Who it keeps out may come in';
  return {
    question: `Take the entry ${id} off the ${list} list?`,
    back: `${cost}. An AID comes back onto the list with "${again}"${list === 'allow' ? '; a secret has to be set anew' : ''}.`,
  };
}

/** One entry that is gone. */
export const GONE = {
  text: (): string => 'ok',
  quiet: (_: unknown, { id }: { readonly id: string }): string => id,
};

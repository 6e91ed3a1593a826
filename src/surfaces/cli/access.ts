/** Access lists in commands: options that grant access, and how lists are shown. */
import { relativeTime } from '../../foundation/display-text.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { AnswerOf } from './client.ts';
import type { Confirmation } from './command-group.ts';
import type { CliContext } from './context.ts';
import type { Names } from './names.ts';
import { expiry, type ParsedOptions } from './options.ts';
import { formatTable, type WrappedText } from './text.ts';

// Options of the commands that grant access.

export const ALLOW = {
  '--secret [secret]': 'allow callers that present this secret; prompts if no value follows',
  '--generate': 'generate a random secret and show it once',
  '--label <text>': 'a comment for yourself',
  '--expires <time>': expiry('expiry: 30m, 12h, 7d, or a date'),
} as const;

/**
 * The request body for the options, without the AID. @throws SvcError `invalid_request` unless exactly one kind is
 * given
 */
export async function allowInput(
  context: CliContext,
  aid: string | undefined,
  { secret, generate, label, expires }: ParsedOptions<'', typeof ALLOW>,
) {
  if ([aid, secret, generate].filter((way) => way !== undefined).length !== 1)
    throw new SvcError('invalid_request', { message: 'Choose whom to allow: an AID, --secret or --generate.' });
  return {
    secret: secret === true ? await context.readSecret('secret: ') : secret,
    generate_secret: generate,
    label,
    expires_at: expires,
  };
}

// How access lists are shown.

type Lists = Pick<AnswerOf<'aclGet'>, 'allow' | 'deny'>;
type NewEntry = Pick<AnswerOf<'aclAllow'>, 'id' | 'secret' | 'aid' | 'expires_at'>;

/** Both lists as a table. Empty if no list has an entry. */
export function accessTable({ allow, deny }: Lists): WrappedText {
  const now = Date.now();
  const rows = [
    ...allow.map((e) => [
      'allow',
      e.id,
      e.aid ?? '(anyone with the secret)',
      [e.label, e.tools && `only ${e.tools.join(', ')}`].filter((one) => one !== undefined).join('; '),
      relativeTime(e.created_at, now),
      e.service_tcp !== undefined
        ? 'with its service'
        : e.expires_at === undefined
          ? 'never'
          : relativeTime(e.expires_at, now),
    ]),
    ...deny.map((e) => [
      'deny',
      e.id,
      e.aid,
      '',
      relativeTime(e.created_at, now),
      e.expires_at === undefined ? 'never' : relativeTime(e.expires_at, now),
    ]),
  ];
  return formatTable(['LIST', 'ID', 'WHO', 'LABEL', 'MADE', 'EXPIRES'], rows, '');
}

/** The effect of a new entry. @param may what it allows or denies, such as `may call home` */
export function entryText({ id, secret, aid, expires_at: end }: NewEntry, names: Names, may: string): string {
  const until = end === undefined ? '' : ` until ${end.slice(0, 16).replace('T', ' ')} UTC`;
  if (aid !== undefined) return `${names.shown(aid)} ${may}${until}.`;
  return secret === undefined ? `Entry ${id}.` : `Entry ${id}. This secret is shown only once:\n${secret}`;
}

/** One new entry. In a pipe a generated secret is printed alone. */
export const NEW_ENTRY = {
  aids: 'labeled' as const,
  quiet: ({ id, secret }: NewEntry): string => secret ?? id,
};

/** True if an answer holds a secret that is shown only this once. */
export function hasSecret({ secret }: NewEntry): boolean {
  return secret !== undefined;
}

/**
 * The effect of removing an entry.
 * @param again the command that adds an AID to the list
 */
export function removalConfirmation(list: 'allow' | 'deny', id: string, again: string): Confirmation {
  const cost =
    list === 'allow'
      ? 'Callers that only this entry allows lose access, and a secret cannot be shown again'
      : 'The agent that it denies may call again';
  return {
    question: `Remove the entry ${id} from the ${list} list?`,
    consequence: `${cost}. Add an AID again with "${again}"${list === 'allow' ? ' and set a new secret' : ''}.`,
  };
}

/** A removed entry. */
export const REMOVED_ENTRY = {
  text: (): string => 'ok',
  quiet: (_: unknown, { id }: { readonly id: string }): string => id,
};

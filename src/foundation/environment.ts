/** Variables and flags from files with Windows line ends or quotes: a setting that can only be a mistake is rejected. */
import { SvcError } from './errors.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const DATA_DIR = 'SVCD_DATA_DIR';
/** Variables whose values never begin and end with quotes. Passwords may. */
const UNQUOTED: ReadonlySet<string> = new Set(['SVC_API', 'SVC_TOKEN']);
/** Variables that name a directory. */
const DIRECTORIES: ReadonlySet<string> = new Set([DATA_DIR, '--data-dir']);

function mistakeIn(name: string, value: string): string | null {
  if (/^(["']).*\1$/s.test(value)) return 'is in quotes that belong to the value: write it without quotes';
  if (!DIRECTORIES.has(name)) return null;
  if (/\r\n?$/.test(value)) return 'ends with a carriage return: convert the file that sets it to Unix line ends';
  if (/\p{Cc}/u.test(value)) return 'contains a control character';
  if (/^(?:~(?:\/|$)|\$|%)/.test(value))
    return 'begins with "~" or a variable that no shell has replaced: write the whole path';
  return null;
}

/**
 * Rejects a setting that can only be a mistake. Otherwise svcd would use a directory with this name, or report another
 * cause. The error does not contain the value, which may be a secret.
 * @param name the variable or flag
 * @throws SvcError `config_invalid`
 */
function rejectMistake(name: string, value: string | undefined): void {
  const mistake = value === undefined ? null : mistakeIn(name, value);
  if (mistake !== null) throw new SvcError('config_invalid', { message: `${name} ${mistake}.` });
}

/**
 * Rejects a value in quotes of the first of these variables that is set.
 * @throws SvcError `config_invalid`
 */
export function rejectQuoted(environment: Environment, names: readonly string[]): void {
  const name = names.find((one) => (environment[one] ?? '') !== '');
  if (name !== undefined) rejectMistake(name, environment[name]);
}

/**
 * What is probably a mistake in a variable with a passphrase. It is no error, because a passphrase may contain anything.
 * Null if nothing is.
 */
export function doubtfulPassphrase(name: string, value: string): string | null {
  if (/^(["']).*\1$/s.test(value)) return `${name} is in quotes, which are part of the passphrase`;
  return /[\r\n]$/.test(value) ? `${name} ends with a line break, which is part of the passphrase` : null;
}

/** Variables of programs that use the API. */
export const CLIENT_VARIABLES = ['SVC_API', 'SVC_TOKEN', 'SVC_ACCESS_TOKEN', 'SVC_VIA_PASSWORD', 'SVC_AID'] as const;

/** Variables that svcd sets for the programs it starts: hooks, services on demand and shared MCP servers. */
export const PROGRAM_VARIABLES = [
  'SVC_HOOK',
  'SVC_KIND',
  'SVC_FROM',
  'SVC_IDEMPOTENCY_KEY',
  'SVC_ATTEMPT',
  'SVC_PORT',
  'SVC_CALLER_AID',
] as const;
type ProgramVariable = (typeof PROGRAM_VARIABLES)[number] | (typeof CLIENT_VARIABLES)[number];

/** The variables of one program. The type rejects names that `svc` does not know. */
export type ProgramEnvironment = Readonly<Partial<Record<ProgramVariable, string>>>;

/**
 * The environment of a program that uses the API, without its empty variables, and without line ends after their values.
 * @throws SvcError `config_invalid` for a value that can only be a mistake
 */
export function clientEnvironment(environment: Environment): Environment {
  const cleaned: Record<string, string | undefined> = { ...environment };
  for (const name of CLIENT_VARIABLES) {
    const value = environment[name]?.replace(/[\r\n]+$/, '');
    if (UNQUOTED.has(name)) rejectMistake(name, value);
    if (value === '' || value === undefined) delete cleaned[name];
    else cleaned[name] = value;
  }
  const dataDir = namedDataDir(environment);
  if (dataDir === undefined) delete cleaned[DATA_DIR];
  return cleaned;
}

/**
 * The data directory that the user names, as written.
 * @param flag value of `--data-dir`, which takes precedence over SVCD_DATA_DIR
 * @throws SvcError `config_invalid` if it can only be a mistake
 */
export function namedDataDir(environment: Environment, flag?: string): string | undefined {
  if (flag === '') throw new SvcError('config_invalid', { message: '--data-dir is empty. Name a directory.' });
  rejectMistake('--data-dir', flag);
  rejectMistake(DATA_DIR, environment[DATA_DIR]);
  return flag ?? (environment[DATA_DIR] || undefined);
}

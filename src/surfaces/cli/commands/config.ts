/** `svc config`: reads and changes the configuration of the daemon. */

import { resolve } from 'node:path';
import { closestWord } from '../../../foundation/closest-word.ts';
import { NO_FILES_ROOT } from '../../../foundation/config/schema.ts';
import { pluralize } from '../../../foundation/display-text.ts';
import { isUnguessable, SHORT_TOKEN_WARNING } from '../../../foundation/domain/api-token.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { isObject, memberOf, readJson } from '../../../foundation/json.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { formatFields } from '../text.ts';

/** Parses a value: JSON (numbers, booleans, lists), comma-separated lists for list keys, text otherwise. */
function parseValue(text: string, type: unknown): unknown {
  // A token of digits is text if the schema requires text.
  if (type === 'string') return text;
  const value = readJson(text);
  if (type !== 'array' || Array.isArray(value)) return value === undefined ? text : value;
  const parts = text.split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '');
}

function showValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** One value or all values. @throws SvcError `not_found` */
function chosen(values: Readonly<Record<string, unknown>>, key: string | undefined): unknown {
  if (key === undefined || Object.hasOwn(values, key)) return key === undefined ? values : values[key];
  throw unknownKey(key, Object.keys(values));
}

/** @param keys the existing keys */
function unknownKey(key: string, keys: readonly string[]): SvcError {
  const meant = closestWord(key, keys);
  const next = meant === undefined ? '"svc config get" lists them.' : `Did you mean ${meant}?`;
  return new SvcError('not_found', { message: `Unknown configuration key "${key}". ${next}` });
}

/** @throws SvcError `invalid_request` if the key does not exist */
async function typeOf({ client }: CliContext, key: string): Promise<unknown> {
  const properties = memberOf(await client.configSchema(), 'properties');
  if (isObject(properties) && !Object.hasOwn(properties, key)) {
    const { message } = unknownKey(key, Object.keys(properties));
    throw new SvcError('invalid_request', { message });
  }
  return memberOf(properties, key, 'type');
}

type Changed = AnswerOf<'configPatch'> & Partial<Pick<AnswerOf<'filesRootSet'>, 'files_root' | 'objects_left'>>;

/** The objects folder has its own route, which only accepts local programs. */
async function setFilesRoot({ client }: CliContext, typed: string): Promise<Changed> {
  const path = typed === '' || typed === NO_FILES_ROOT ? typed : resolve(typed);
  const { overridden, ...answer } = await client.filesRootSet({ path });
  return {
    ...answer,
    restart_required: overridden ? ['files_root'] : [],
    overridden: overridden ? ['files_root'] : [],
  };
}

export function configCommands(svc: CommandGroup): void {
  const config = svc.group('config', 'read and change the configuration', [
    'svc config get',
    'svc config set log_level debug',
  ]);
  config.run('get', 'show the configuration without its secrets', {
    examples: ['svc config get', 'svc config get listen_addr'],
    options: { '[key]': 'one key; default: all' },
    run: ({ client }) => client.configGet(),
    json: (values, { key }) => chosen(values, key),
    text: (values, { key }) =>
      key === undefined
        ? formatFields(Object.fromEntries(Object.entries(values).map(([k, v]) => [k, v === '' ? '""' : showValue(v)])))
        : showValue(chosen(values, key)),
  });
  config.run('set <key>', 'change one key', {
    examples: [
      'svc config set log_level debug',
      'svc config set bootstrap node.example.org:4121,node.example.net:4121',
      'svc config set api_token < token.txt',
      'svc config set files_root ~/shared',
    ],
    options: {
      '[value]':
        'the new value, lists with commas or as JSON; reads standard input if omitted or "-", which keeps secrets off the command line',
    },
    run: async (context, { key, value }): Promise<Changed> => {
      // Check the key before prompting for a value.
      const type = await typeOf(context, key);
      const typed = value === undefined || value === '-' ? await context.readSecret(`${key}: `) : value;
      if (key === 'files_root') return setFilesRoot(context, typed);
      const answer = await context.client.configPatch({ [key]: parseValue(typed, type) });
      if (key === 'api_token' && typed !== '' && !isUnguessable(typed)) context.info(SHORT_TOKEN_WARNING);
      return answer;
    },
    text: ({ overridden, restart_required }) =>
      overridden.length > 0
        ? 'Saved. A flag or an environment variable overrides it while it is set.'
        : restart_required.length > 0
          ? 'Saved. It applies after a restart.'
          : 'Saved and applied.',
    quiet: ({ restart_required }) => (restart_required.length > 0 ? 'restart' : 'live'),
    remark: ({ files_root, objects_left = 0 }) =>
      files_root !== undefined &&
      [
        files_root === '' ? 'Objects are off.' : `Objects are stored in ${files_root}.`,
        ...(objects_left > 0
          ? [
              `${pluralize(objects_left, 'object')} remain in the previous folder and are available again if you switch back.`,
            ]
          : []),
      ].join('\n'),
  });
}

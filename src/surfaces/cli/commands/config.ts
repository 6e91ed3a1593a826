/** `svc config`: reads and changes the daemon's configuration. */
import type { Command } from 'commander';
import { SvcError } from '../../../foundation/errors.ts';
import { memberOf } from '../../../foundation/json.ts';
import type { ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { formatFields } from '../text.ts';

/** A value as it is typed: JSON where it is JSON (numbers, booleans, lists), text otherwise. */
function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function showValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export function configCommands(program: Command, contextOf: ContextOf): void {
  const config = program
    .command('config')
    .description('read and change the configuration')
    .addHelpText('after', examples('svc config get', 'svc config set log_level debug'));
  config
    .command('get')
    .argument('[key]', 'one key; all where it is left out')
    .description('show the configuration; secrets are redacted')
    .addHelpText('after', examples('svc config get', 'svc config get listen_addr'))
    .action(async (key: string | undefined, _options, command: Command) => {
      const context = contextOf(command);
      const all: Readonly<Record<string, unknown>> = await context.client.configGet();
      if (key === undefined)
        return context.show(all, {
          text: (c) => formatFields(Object.entries(c).map(([k, v]) => [k, v === '' ? '""' : showValue(v)])),
        });
      if (!Object.hasOwn(all, key))
        throw new SvcError('not_found', { message: `There is no configuration key "${key}".` });
      return context.show(all[key], { text: showValue });
    });
  config
    .command('set')
    .argument('<key>')
    .argument(
      '[value]',
      'the new value; read from standard input where it is left out or "-", to keep secrets off the command line',
    )
    .description('change one key')
    .addHelpText(
      'after',
      examples(
        'svc config set log_level debug',
        `svc config set bootstrap '["node.example.org:4121"]'`,
        'svc config set api_token < token.txt',
      ),
    )
    .action(async (key: string, value: string | undefined, _options, command: Command) => {
      const context = contextOf(command);
      const typed = value === undefined || value === '-' ? await context.readSecret(`${key}: `) : value;
      // A token of digits is still a text: what the schema says decides.
      const isText = memberOf(await context.client.configSchema(), 'properties', key, 'type') === 'string';
      const result = await context.client.configPatch({ [key]: isText ? typed : parseValue(typed) });
      context.show(result, {
        text: ({ overridden, restart_required }) =>
          overridden.length > 0
            ? 'Saved. A flag or the environment decides it as long as it is set there.'
            : restart_required.length > 0
              ? 'Saved. It applies when svcd starts again.'
              : 'Saved. It applies now.',
        quiet: (r) => (r.restart_required.length > 0 ? 'restart' : 'live'),
      });
    });
}

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Command } from 'commander';
import { openingFrame } from '../../../src/capabilities/events/recent-events.ts';
import { PATCHABLE_KEYS } from '../../../src/foundation/config/schema.ts';
import { EVENT_TYPES } from '../../../src/foundation/events.ts';
import { commandPath } from '../../../src/surfaces/cli/words.ts';
import { clientProgram, svcdProgram } from '../../../tools/command-tree.ts';
import { commandsOf } from '../../support/command-tree.ts';

interface Surface {
  readonly client_commands: readonly string[];
  readonly client_options: readonly string[];
  readonly daemon: { readonly options: readonly string[]; readonly commands: readonly string[] };
  readonly events: readonly string[];
  readonly patchable_config: readonly string[];
}

const surface = JSON.parse(readFileSync(new URL('../../vectors/surface.json', import.meta.url), 'utf8')) as Surface;

/** Commands that the contract does not name. */
const ADDED_COMMANDS: readonly string[] = [
  'agents list',
  'agents new-paralism',
  'agents probe',
  'inbound key',
  'inbound unbind',
  'evidence status',
  'evidence on',
  'evidence off',
  'invite',
  'join',
  'contacts',
  'contacts rm',
  'admin status',
  'admin audit',
  'alias add',
  'alias rm',
  'alias list',
  'identity new-paralism',
  'wallet message',
  'wallet register',
  'agents card set',
  'agents card get',
  'agents card rm',
  'agents profile set',
  'agents profile clear',
  'object put',
  'object add',
  'object list',
  'object rm',
  'object locate',
  'object get',
  'send',
  'receive',
  'files list',
  'files rm',
  'files decline',
  'events',
  'trace',
  'completion',
  'backup',
  'restore',
  'panel',
  'panel url',
  'panel sessions',
  'panel rm',
  'serve',
  'run',
  'open',
  'ssh',
  'nc',
  'use',
  'whoami',
  'access confirm',
  'access requests',
  'access allow',
  'access refuse',
  'callers',
  'logs',
  'uninstall',
  'restart',
  'stop',
  'agents topic list',
  'links',
  'peers',
  'traffic',
  'note rm',
  'note queued',
  'note unqueue',
  'netcheck',
  'ping',
  'did',
  'did-document',
  'card',
  'on',
  'hooks list',
  'hooks pause',
  'hooks resume',
  'hooks rm',
  'hooks deliveries',
  'hooks delivery',
  'hooks retry',
  'hooks drop',
  'origin open',
  'origin list',
  'origin rm',
  'entry allow',
  'entry deny',
  'entry list',
  'entry rm',
  'expose list',
  'expose off',
  'expose token add',
  'expose token rm',
  'push list',
  'push rm',
  'mcp',
  'mcp share',
  'mcp use',
  'mcp add',
  'mcp rm',
  'mcp hub',
  'mcp hub add',
  'mcp hub refresh',
  'mcp hub rm',
  'mcp hub changes',
  'mcp hub accept',
  'mcp hub refuse',
  'mcp hub find',
];

const DAEMON_ADDED_COMMANDS: readonly string[] = ['mcp rm', 'service run', 'completion'];

/** Global options that the contract does not name. */
const ADDED_GLOBALS = ['--as', '--full', '--send-token', '--via', '--via-as', '--via-password', '--version'];
const DAEMON_OPTIONS_OF_OUR_OWN = ['--join', '--mcp-channel', '--mcp-permissions', '--mcp-profile', '--version'];

/** Arguments and options of the commands in the contract. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  register: '--ethereum --eth-key --service-tcp --save-master --no-publish',
  publish: '<service> --from --name --brief --url --aid --ttl --protocol --tag -y',
  unpublish: '<service> --aid',
  search: '<service> --aid --filter-protocol --filter-tag',
  info: '<aid>',
  resolve: '<aid>',
  get: '<aid> --header --local-aid --access-token',
  post: '<aid> --header --local-aid --access-token -d',
  'inbound bind': '--addr --aid --replace',
  connect: '<aid> --local-aid --access-token',
  'tunnel open': '<aid> --local-aid --access-token --local-port --idle-timeout',
  'tunnel close': '<id>',
  'tunnel reset': '<id>',
  'note send': '<local> <remote> [body-base64] --msg-type',
  'note list': '<local>',
  'note poll': '<local>',
  'agents get': '<aid>',
  'agents update': '<aid> --service-tcp --replace',
  'agents del': '<aid>',
  'agents publish': '<aid>',
  'agents heartbeat': '<aid>',
  'agents export': '<aid> -o --password',
  'agents import': '<file>',
  'agents topic add': '<aid> <service>',
  'agents topic del': '<aid> <service>',
  'config get': '[key]',
  'config set': '<key> [value]',
  'admin password': '[secret]',
  'admin allow': '[aid] --secret',
  'admin deny': '<aid>',
  'admin del': '<list> <id>',
  update: '--check --confirm',
};

function sorted(names: Iterable<string>): string[] {
  return [...names].sort();
}

function flagsOf(command: Command): string[] {
  return command.options.flatMap(({ short, long }) => [short, long].filter((flag) => flag !== undefined));
}

function wordsOf(command: Command): Set<string> {
  const named = command.registeredArguments.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`));
  return new Set([...named, ...flagsOf(command)]);
}

const client = await clientProgram();
const daemon = svcdProgram();
const commands = new Map(commandsOf(client).map(({ name, command }) => [name, command]));

/** The command for words of the contract, which may name an alias. */
function commandFor(program: Command, words: string): Command | undefined {
  return words
    .split(' ')
    .reduce<Command | undefined>(
      (group, word) => group?.commands.find((one) => one.name() === word || one.aliases().includes(word)),
      program,
    );
}
/** The words of the contract in the spelling of the help. */
const CONTRACT = surface.client_commands.map((name) => {
  const command = commandFor(client, name);
  return command === undefined ? name : commandPath(command).replace(/^svc /, '');
});

test('every command of the contract exists', () => {
  const missing = CONTRACT.filter((name) => !commands.has(name));
  assert.deepEqual(missing, [], 'svc');
  const ours = new Set(commandsOf(daemon).map(({ name }) => name));
  const missingOfDaemon = surface.daemon.commands.filter((name) => !ours.has(name));
  assert.deepEqual(missingOfDaemon, [], 'svcd');
});

test('every command is in the contract or a known addition', () => {
  const named = (known: readonly string[], name: string): boolean =>
    known.some((one) => name === one || name.startsWith(`${one} `) || one.startsWith(`${name} `));
  const extra = [...commands.keys()].filter((name) => !named(CONTRACT, name));
  const own = new Set(ADDED_COMMANDS);
  const unknown = extra.filter((name) => !own.has(name) && !ADDED_COMMANDS.some((o) => o.startsWith(`${name} `)));
  assert.deepEqual(unknown, [], 'commands that neither the contract nor the list of additions names');
  assert.deepEqual(
    ADDED_COMMANDS.filter((name) => !commands.has(name)),
    [],
    'added commands that no longer exist',
  );
  const ours = commandsOf(daemon).map(({ name }) => name);
  const extraOfDaemon = ours.filter((name) => !named(surface.daemon.commands, name));
  assert.deepEqual(extraOfDaemon, DAEMON_ADDED_COMMANDS);
});

test('every argument and option of the contract exists', () => {
  const missing = Object.entries(ARGUMENTS).flatMap(([name, words]) => {
    const command = commandFor(client, name);
    const have = command === undefined ? new Set<string>() : wordsOf(command);
    return words
      .split(' ')
      .filter((word) => !have.has(word))
      .map((word) => `${name} ${word}`);
  });
  assert.deepEqual(missing, []);
});

test('has exactly the global and process options of the contract and known additions', () => {
  const long = (command: Command): string[] => command.options.flatMap((one) => one.long ?? []);
  assert.deepEqual(sorted(long(client)), sorted([...surface.client_options, ...ADDED_GLOBALS]));
  assert.deepEqual(sorted(long(daemon)), sorted([...surface.daemon.options, ...DAEMON_OPTIONS_OF_OUR_OWN]));
});

/** Event types that the contract does not name. */
const ADDED_EVENTS = [
  'path.changed',
  'file.offered',
  'file.answered',
  'access.requested',
  'access.decided',
  'group.removed',
  'group.invited',
  'hook.dead',
  'mailbox.sent',
  'mailbox.expired',
];

test('has exactly the events of the contract and known additions', () => {
  const opening = /^event: (\S+)$/m.exec(openingFrame({ aid: {} }).toString())?.[1] ?? '';
  assert.deepEqual(sorted([opening, ...EVENT_TYPES]), sorted([...surface.events, ...ADDED_EVENTS]));
});

/** Configuration keys that the contract does not name. */
const ADDED_KEYS = ['name'];

test('"config set" changes exactly the keys of the contract and known additions', () => {
  assert.deepEqual(sorted(PATCHABLE_KEYS), sorted([...surface.patchable_config, ...ADDED_KEYS]));
});

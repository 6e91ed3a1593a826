/** The command that a user meant who typed one that does not exist. */
import type { Command } from 'commander';
import { closestWord } from '../../foundation/closest-word.ts';

/** Commands of `svc` by words of other programs. */
const BY_MEANING: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries({
    svcd: 'start up daemon',
    'svcd service': 'service install',
    'svc agents': 'list ls agent',
    'svc agents rm': 'rm del delete remove',
    'svc agents acl': 'acl permissions',
    'svc agents acl allow': 'allow permit',
    'svc agents acl deny': 'deny block ban',
    'svc agents export': 'export',
    'svc agents import': 'import',
    'svc agents profile set': 'profile',
    'svc register': 'new add create init',
    'svc access allow': 'approve accept grant',
    'svc access requests': 'requests',
    'svc alias add': 'label rename name nick',
    'svc chat send': 'message msg dm say',
    'svc config set': 'set settings configure',
    'svc get': 'fetch call curl request',
    'svc group list': 'groups room rooms',
    'svc invite': 'qr pair link share-node',
    'svc logs': 'log',
    'svc mcp hub': 'tools servers',
    'svc mcp share': 'share',
    'svc note send': 'mail notes',
    'svc on': 'hook',
    'svc panel': 'login ui web dashboard',
    'svc peers': 'nodes peer',
    'svc push list': 'webhooks webhook',
    'svc receive': 'download',
    'svc search': 'find discover',
    'svc send': 'upload put',
    'svc serve': 'host',
    'svc status': 'ps state',
    'svc stop': 'down quit kill',
    'svc tunnel open': 'forward proxy port-forward',
    'svc update': 'upgrade',
    'svc whoami': 'id me',
  }).flatMap(([command, words]) => words.split(' ').map((word) => [word, command])),
);

/** Words that mean the same as subcommands. */
const SAME: readonly (readonly string[])[] = [
  ['add', 'new', 'create', 'make', 'open', 'put', 'request', 'set', 'bind'],
  ['show', 'get', 'read', 'status', 'info', 'view', 'head'],
  ['send', 'post', 'write', 'offer'],
  ['allow', 'accept', 'approve', 'join', 'on'],
  ['deny', 'refuse', 'reject', 'decline', 'leave', 'off'],
];

/**
 * The complete command for an unknown word.
 * @param group the command that has no such subcommand
 * @param path the words that lead to it
 */
export function meantCommand(group: Command, path: string, word: string): string | undefined {
  const typed = word.toLowerCase();
  if (group.parent === null && group.name() === 'svc' && Object.hasOwn(BY_MEANING, typed)) return BY_MEANING[typed];
  const names = group
    .createHelp()
    .visibleCommands(group)
    .flatMap((one) => [one.name(), ...one.aliases()]);
  const same = SAME.find((words) => words.includes(typed))?.find((one) => names.includes(one));
  const name = closestWord(word, names) ?? same;
  const found = group.commands.find(
    (one) => one.name() === name || (name !== undefined && one.aliases().includes(name)),
  );
  return found === undefined ? undefined : `${path} ${found.name()}`;
}

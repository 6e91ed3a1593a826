/**
 * A command line for each command of `svc` that works against a fake daemon. New commands are included automatically.
 */
import { clientProgram } from '../../tools/command-tree.ts';
import { commandsOf } from './command-tree.ts';

/** Commands that send no request to a daemon, or only print their input. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'completion',
  'backup',
  'restore',
  // It is about this machine.
  'uninstall',
  'wallet message',
  'wallet register',
  'agents import',
  'mcp add',
  'mcp rm',
  // Commands that run other programs or copy bytes.
  'open',
  'ssh',
  'nc',
  // It waits for the process that replaces the daemon.
  'restart',
]);

/** A valid argument by name. */
function argumentFor(name: string, aid: string): string {
  const known: Readonly<Record<string, string>> = {
    service: 'lang.translate',
    policy: 'deny',
    list: 'allow',
    seq: '1',
    shell: 'bash',
    key: 'log_level',
    secret: 'off',
    path: '/x',
    group: 'ab'.repeat(32),
    'link-or-group': 'ab'.repeat(32),
    object: 'ab'.repeat(32),
    entry: 'ab'.repeat(32),
    id: 'ab'.repeat(8),
    kind: 'note',
    command: 'true',
    delivery: '1',
    change: 'ab'.repeat(16),
  };
  return known[name] ?? (/^(?:aid|agent|local|remote|peer|member|caller|request)$/.test(name) ? aid : 'x');
}

/** Required options of a command. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  'agents update': ['--service-tcp', '127.0.0.1:1', '--replace'],
  'inbound bind': ['--addr', '127.0.0.1:1', '--replace'],
  'agents acl allow': ['--generate'],
  'admin allow': ['--generate'],
  ping: ['--count', '1'],
};

/** Every command with its required arguments, and confirmed. */
export async function commandLines(aid: string): Promise<{ name: string; line: string[] }[]> {
  const lines: { name: string; line: string[] }[] = [];
  for (const { name, command } of commandsOf(await clientProgram())) {
    if (command.commands.length > 0 || LEFT_OUT.has(name)) continue;
    const words = command.registeredArguments.filter(({ required }) => required || name === 'note send');
    const agreed = command.options.some(({ long }) => long === '--yes') ? ['-y'] : [];
    const given = words.map((one) => argumentFor(one.name(), aid));
    lines.push({ name, line: [...name.split(' '), ...given, ...(OPTIONS[name] ?? []), ...agreed] });
  }
  return lines;
}

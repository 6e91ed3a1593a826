/** Writes docs/cli.md, an index of the commands. `--check` compares only. The man pages and `--help` explain each command. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type CommandText, clientProgram, describeCommand, svcdProgram } from './command-tree.ts';

const FILE = 'docs/cli.md';

const HEAD = `# Command line

\`svcd\` is the daemon, and \`svc\` controls it. This page lists the commands, and the subcommands of each group. \`--help\` after
a command shows its arguments, options and examples: \`svc serve --help\`. \`man svc\` and \`man svcd\` show all of them, after
an installation with npm, or from a checkout with \`man docs/man/svc.1\`.

- **Output.** Results go to standard output, errors and progress to standard error. With \`--json\`, both are JSON.
- **Exit codes.** 0 success, 1 failure, 2 wrong usage, 3 daemon not reachable, 4 denied (token or access list), 5 not found.
  [Stability](stability.md) has the guarantees for programs.
- **The daemon.** \`svc\` finds it through \`--api\`, then \`SVC_API\`, then the data directory of this user's daemon, then
  http://127.0.0.1:2121. If \`SVCD_DATA_DIR\` is set, \`svc\` uses only the daemon of that directory and fails with exit
  code 3 if it is not running. \`SVC_TOKEN\` is the API token.
- **The agent.** \`--as\` names the local agent that acts; \`svc use\` sets the default.
- **Completion.** \`source <(svc completion bash)\`, also for \`zsh\`, \`fish\` and \`powershell\`.
`;

/** The command without its arguments: `svc agents acl`. */
function pathOf({ usage }: CommandText): string {
  return usage.replace(/ [<[].*/, '');
}

/** The lowest commands below a command, as words after its path. */
function inner(command: CommandText): string[] {
  const skip = pathOf(command).length + 1;
  const below = (one: CommandText): string[] =>
    one.commands.length === 0 ? [pathOf(one).slice(skip)] : one.commands.flatMap(below);
  return command.commands.flatMap(below);
}

/** A line for each command; a group with the words of its subcommands. */
function index(commands: readonly CommandText[]): string {
  return commands
    .map((command) => {
      const words = inner(command).map((one) => `\`${one}\``);
      return `- \`${command.usage}\`: ${command.about}${words.length === 0 ? '' : ` (${words.join(', ')})`}\n`;
    })
    .join('');
}

const daemon = describeCommand(svcdProgram(), 'svcd');
const client = describeCommand(await clientProgram(), 'svc');
const groups = Map.groupBy(client.commands, ({ group }) => group.replace(/:$/, ''));

const text = [
  HEAD,
  '## svc\n',
  ...[...groups].map(([title, commands]) => `### ${title}\n\n${index(commands)}`),
  `## svcd\n\n${index(daemon.commands)}`,
].join('\n');
if (!process.argv.includes('--check')) writeFileSync(FILE, text);
else if (!existsSync(FILE) || readFileSync(FILE, 'utf8') !== text) {
  console.error(`${FILE} is out of date. Run "npm run docs".`);
  process.exit(1);
}

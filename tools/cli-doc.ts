/** Writes docs/cli.md, an index of the commands. `--check` compares only. The man pages and `--help` explain each command. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type CommandText, clientProgram, describeCommand, svcdProgram, type Word } from './command-tree.ts';

const FILE = 'docs/cli.md';

const HEAD = `# Command line

\`svcd\` is the daemon, and \`svc\` controls it. In a checkout: \`./bin/svcd\` and \`./bin/svc\`. This page lists every command.
\`--help\` after a command shows its arguments, options and examples: \`svc serve --help\`. \`man svc\` and \`man svcd\` show all of
them, after an installation with npm, or from a checkout with \`man docs/man/svc.1\`.

- **Output.** Results go to standard output, errors and progress to standard error.
- **Exit codes.** 0 success, 1 failure, 2 wrong usage, 3 daemon not reachable, 4 denied (token or access list), 5 not found.
  [Stability](stability.md) has the guarantees for programs.
- **The daemon.** \`svc\` finds it through \`--api\`, then \`SVC_API\`, then the data directory of this user's daemon, then
  http://127.0.0.1:2121. If \`SVCD_DATA_DIR\` is set, \`svc\` uses only the daemon of that directory and fails with exit
  code 3 if it is not running. \`SVC_TOKEN\` is the API token.
- **Completion.** \`source <(svc completion bash)\`, also for \`zsh\`, \`fish\` and \`powershell\`.
`;

function lines(words: readonly Word[]): string {
  return words.map(({ typed, meaning }) => `- \`${typed}\`: ${meaning.replaceAll('\n', ' ')}\n`).join('');
}

/** A line for each command, a group before its subcommands. */
function index(commands: readonly CommandText[]): string {
  return commands.map(({ usage, about, commands: inner }) => `- \`${usage}\`: ${about}\n${index(inner)}`).join('');
}

const daemon = describeCommand(svcdProgram(), 'svcd');
const client = describeCommand(await clientProgram(), 'svc');
const groups = Map.groupBy(client.commands, ({ group }) => group.replace(/:$/, ''));

const text = [
  HEAD,
  `## svc\n\nOptions of every command:\n\n${lines(client.options)}`,
  ...[...groups].map(([title, commands]) => `### ${title}\n\n${index(commands)}`),
  `## svcd\n\nOptions:\n\n${lines(daemon.options)}\nCommands:\n\n${index(daemon.commands)}`,
].join('\n');
if (!process.argv.includes('--check')) writeFileSync(FILE, text);
else if (!existsSync(FILE) || readFileSync(FILE, 'utf8') !== text) {
  console.error(`${FILE} is out of date. Run "npm run docs".`);
  process.exit(1);
}

/** Writes docs/cli.md from the commands. `--check` compares only. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type CommandText, clientProgram, describeCommand, svcdProgram } from './command-tree.ts';

const FILE = 'docs/cli.md';

const HEAD = `# Command line

This page is generated from the commands by \`tools/cli-doc.ts\`.

\`svcd\` is the daemon, and \`svc\` controls it. From a checkout: \`npm run -s svcd -- …\` and \`npm run -s svc -- …\`.

Results go to standard output, errors and progress to standard error. \`--json\` prints JSON, \`--quiet\` only the
essential value. Exit codes: 0 success, 1 failure, 2 wrong usage, 3 daemon not reachable, 4 denied (token or access
list), 5 not found. Guarantees for programs: [stability](stability.md).

\`svc\` finds the daemon through \`--api\`, then \`SVC_API\`, then the data directory of this user's daemon, then
http://127.0.0.1:2121. If \`SVCD_DATA_DIR\` is set, \`svc\` uses only the daemon of that directory and fails with exit
code 3 if it is not running. \`SVC_TOKEN\` is the API token.

Shell completion: \`source <(svc completion bash)\`, also for \`zsh\` and \`fish\`. An npm installation includes
\`man svc\` and \`man svcd\`.
`;

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

function section(
  { usage, about, arguments: words, options, examples, commands }: CommandText,
  level: number,
): string[] {
  const rows = [...words, ...options];
  const table = [
    '| Argument or option | Meaning |',
    '|---|---|',
    ...rows.map((w) => `| \`${cell(w.typed)}\` | ${cell(w.meaning)} |`),
    '',
  ];
  return [
    `${'#'.repeat(level)} ${usage}`,
    '',
    about,
    '',
    ...(rows.length === 0 ? [] : table),
    ...(examples.length === 0 ? [] : ['```sh', ...examples, '```', '']),
    ...commands.flatMap((one) => section(one, Math.min(level + 1, 4))),
  ];
}

const page = [
  HEAD,
  ...section(describeCommand(svcdProgram(), 'svcd'), 2),
  ...section(describeCommand(await clientProgram(), 'svc'), 2),
]
  .join('\n')
  .replace(/\n{3,}/g, '\n\n')
  .trimEnd();
const text = `${page}\n`;
if (!process.argv.includes('--check')) writeFileSync(FILE, text);
else if (!existsSync(FILE) || readFileSync(FILE, 'utf8') !== text) {
  console.error(`${FILE} is out of date. Run "npm run docs".`);
  process.exit(1);
}

/** Writes docs/cli.md from the commands themselves; `--check` only compares. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type CommandText, clientProgram, describeCommand, svcdProgram } from './command-tree.ts';

const FILE = 'docs/cli.md';

const HEAD = `# Command line

This page is written from the commands themselves by \`tools/cli-doc.ts\`; change them there.

\`svcd\` is the daemon, \`svc\` drives it. From a checkout: \`npm run -s svcd -- …\` and \`npm run -s svc -- …\`.

Results go to standard output, errors and progress to standard error. \`--json\` prints JSON for machines, \`--quiet\` the
one essential value. Exit codes: 0 success, 1 the operation failed, 2 wrong usage, 3 the daemon is not reachable,
4 refused (token or access list), 5 not found. What programs may rely on: [what stays as it is](stability.md).

\`svc\` finds the daemon through \`--api\`, else \`SVC_API\`, else what the daemon of this user wrote into its data
directory, else http://127.0.0.1:2121. Where \`SVCD_DATA_DIR\` names a data directory, it is the daemon of that one and no
other: without it a command fails with exit code 3. \`SVC_TOKEN\` holds the API token where one is needed.

Completions: \`source <(svc completion bash)\`, and likewise for \`zsh\` and \`fish\`. Installed from npm, \`man svc\` and
\`man svcd\` say what stands here.
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
  console.error(`${FILE} is not what the commands say: run "npm run docs"`);
  process.exit(1);
}

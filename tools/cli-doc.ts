/** Writes docs/cli.md from the commands. `--check` compares only. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type CommandText, clientProgram, describeCommand, svcdProgram } from './command-tree.ts';

const FILE = 'docs/cli.md';

const HEAD = `# Command line

This page is generated from the commands by \`tools/cli-doc.ts\`.

\`svcd\` is the daemon, and \`svc\` controls it. In a checkout: \`./bin/svcd\` and \`./bin/svc\`.

Results go to standard output, errors and progress to standard error. \`--json\` prints JSON, \`--quiet\` only the
essential value. Exit codes: 0 success, 1 failure, 2 wrong usage, 3 daemon not reachable, 4 denied (token or access
list), 5 not found. Guarantees for programs: [stability](stability.md).

\`svc\` finds the daemon through \`--api\`, then \`SVC_API\`, then the data directory of this user's daemon, then
http://127.0.0.1:2121. If \`SVCD_DATA_DIR\` is set, \`svc\` uses only the daemon of that directory and fails with exit
code 3 if it is not running. \`SVC_TOKEN\` is the API token.

Shell completion: \`source <(svc completion bash)\`, also for \`zsh\`, \`fish\` and \`powershell\`. An npm installation includes
\`man svc\` and \`man svcd\`.
`;

/** Options of at least this many commands are explained once. */
const MIN_COMMON = 4;

function allOf(command: CommandText): CommandText[] {
  return [command, ...command.commands.flatMap(allOf)];
}

type Word = CommandText['options'][number];

function wordKey({ typed, meaning }: Word): string {
  return `${typed}\n${meaning}`;
}

/** Options with the same text in many commands. If an option has several texts, the most frequent one. */
function commonOptions(commands: readonly CommandText[]): Word[] {
  const counts = new Map<string, { readonly word: Word; readonly count: number }>();
  for (const word of commands.flatMap(allOf).flatMap(({ options }) => options)) {
    const count = (counts.get(wordKey(word))?.count ?? 0) + 1;
    counts.set(wordKey(word), { word, count });
  }
  const frequent = [...counts.values()].filter(({ count }) => count >= MIN_COMMON);
  const isMostFrequent = ({ word, count }: { readonly word: Word; readonly count: number }): boolean =>
    frequent.every((other) => other.word.typed !== word.typed || other.count <= count);
  return frequent.filter(isMostFrequent).map(({ word }) => word);
}

function lines(words: readonly Word[]): string[] {
  return words.map(({ typed, meaning }) => `- \`${typed}\`: ${meaning.replaceAll('\n', ' ')}`);
}

const programs = [describeCommand(svcdProgram(), 'svcd'), describeCommand(await clientProgram(), 'svc')];
const common = commonOptions(programs);
const commonKeys = new Set(common.map(wordKey));
const shownExamples = new Set<string>();

/** A command, without the examples of its subcommands. */
function section(
  { usage, about, arguments: words, options, examples, commands }: CommandText,
  level: number,
): string[] {
  const inner = commands.flatMap((one) => section(one, Math.min(level + 1, 4)));
  const own = options.filter((one) => !commonKeys.has(wordKey(one)));
  const shared = options.filter((one) => commonKeys.has(wordKey(one))).map(({ typed }) => `\`${typed}\``);
  const left = examples.filter((one) => !shownExamples.has(one));
  for (const example of left) shownExamples.add(example);
  const list = [...lines([...words, ...own]), ...(shared.length === 0 ? [] : [`- ${shared.join(', ')}`])];
  return [
    `${'#'.repeat(level)} ${usage}`,
    '',
    about,
    '',
    ...list,
    '',
    ...(left.length === 0 ? [] : ['```sh', ...left, '```', '']),
    ...inner,
  ];
}

const COMMON = [
  '## Common options',
  '',
  'Many commands have these options. The commands list them without an explanation.',
  '',
  ...lines(common),
  '',
];

const page = [HEAD, ...COMMON, ...programs.flatMap((program) => section(program, 2))]
  .join('\n')
  .replace(/\n{3,}/g, '\n\n')
  .trimEnd();
const text = `${page}\n`;
if (!process.argv.includes('--check')) writeFileSync(FILE, text);
else if (!existsSync(FILE) || readFileSync(FILE, 'utf8') !== text) {
  console.error(`${FILE} is out of date. Run "npm run docs".`);
  process.exit(1);
}

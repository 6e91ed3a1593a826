/** Writes the man pages docs/man/svc.1 and docs/man/svcd.8 from the commands; `--check` only compares. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type CommandText, clientProgram, describeCommand, svcdProgram, type Word } from './command-tree.ts';

interface ManPage {
  readonly file: string;
  readonly name: string;
  /** 1: commands of users; 8: of administrators. */
  readonly section: number;
  readonly program: CommandText;
  /** Paragraphs of DESCRIPTION. */
  readonly description: readonly string[];
  readonly environment: readonly Word[];
  readonly files: readonly Word[];
  readonly exits: readonly Word[];
  readonly seeAlso: string;
}

/** Text as roff prints it: nothing in it is an instruction, no dash is a hyphen. */
export function roff(text: string): string {
  const escaped = text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/[^\x20-\x7e\n]/gu, (c) => `\\[u${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`);
  return escaped.replace(/^(?=[.'])/gm, '\\&');
}

function words(list: readonly Word[]): string[] {
  return list.flatMap(({ typed, meaning }) => ['.TP', `.B ${roff(typed)}`, roff(meaning)]);
}

function exampleLines(examples: readonly string[]): string[] {
  return examples.length === 0 ? [] : ['.PP', '.nf', '.RS 4', ...examples.map(roff), '.RE', '.fi'];
}

/** One command below the program, and those below it. */
function command({ usage, about, arguments: given, options, examples, commands }: CommandText): string[] {
  const isGroup = commands.length > 0;
  return [
    `.SS "${roff(usage).replaceAll('"', '\\(dq')}"`,
    `${roff(about)}.`,
    ...words([...given, ...options]),
    ...(isGroup ? [] : exampleLines(examples)),
    ...commands.flatMap(command),
  ];
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`.SH ${title}`, ...lines];
}

/** The page in the macros of man(7). */
export function manPage(page: ManPage): string {
  const { name, program } = page;
  const lines = [
    `.\\" Written by tools/man-doc.ts from the commands themselves: change them there.`,
    `.TH ${name.toUpperCase()} ${page.section} "" "svcd" "svcd manual"`,
    ...section('NAME', [`${name} \\- ${roff(program.about.replace(/\.$/, ''))}`]),
    ...section('SYNOPSIS', [`.B ${name}`, '[options] [command]']),
    ...section(
      'DESCRIPTION',
      page.description.flatMap((paragraph) => ['.PP', roff(paragraph)]),
    ),
    ...section('OPTIONS', words(program.options)),
    ...section('COMMANDS', program.commands.flatMap(command)),
    ...section('EXAMPLES', exampleLines(program.examples)),
    ...section('EXIT STATUS', words(page.exits)),
    ...section('ENVIRONMENT', words(page.environment)),
    ...section('FILES', words(page.files)),
    ...section('SEE ALSO', [`.BR ${page.seeAlso}`]),
  ];
  return `${lines.join('\n')}\n`;
}

const DATA_DIR = {
  typed: 'SVCD_DATA_DIR',
  meaning: 'The data directory, where no option names one.',
};

export const PAGES: readonly ManPage[] = [
  {
    file: 'docs/man/svc.1',
    name: 'svc',
    section: 1,
    program: describeCommand(await clientProgram(), 'svc'),
    description: [
      'svcd gives AI agents a self-made identity and makes them reachable from anywhere. svc drives the daemon on this machine, or with --via one on another.',
      'Results go to standard output, errors and progress to standard error. Wherever a command takes the AID of an agent, it takes a label of the address book as well (svc alias).',
    ],
    exits: [
      { typed: '0', meaning: 'Success.' },
      { typed: '1', meaning: 'The operation failed.' },
      { typed: '2', meaning: 'Wrong usage.' },
      { typed: '3', meaning: 'The daemon is not reachable.' },
      { typed: '4', meaning: 'Refused: the token, or an access list.' },
      { typed: '5', meaning: 'There is no such thing.' },
    ],
    environment: [
      { typed: 'SVC_API', meaning: 'Where the daemon answers; without it, what the daemon of this user wrote down.' },
      { typed: 'SVC_TOKEN', meaning: 'The API token.' },
      { typed: 'SVC_ACCESS_TOKEN', meaning: 'What a called agent asks for.' },
      { typed: 'SVC_VIA_PASSWORD', meaning: 'The password of the node that --via names.' },
      { typed: 'SVCD_DATA_DIR', meaning: 'The data directory: its daemon is the one that is meant, and no other.' },
      { typed: 'NO_COLOR', meaning: 'Where it is set, terminals get no colours either.' },
    ],
    files: [{ typed: '~/.config/svcd/daemon.json', meaning: 'Where the daemon of this user answers.' }],
    seeAlso: 'svcd (8)',
  },
  {
    file: 'docs/man/svcd.8',
    name: 'svcd',
    section: 8,
    program: describeCommand(svcdProgram(), 'svcd'),
    description: [
      'The daemon holds the identities of agents, keeps them published in a network of signed records, carries calls, tunnels, notes, chat and groups to and from them, and offers all of it over a REST API on 127.0.0.1, as MCP tools, and to svc.',
    ],
    exits: [
      { typed: '0', meaning: 'It was asked to end, and has.' },
      { typed: '1', meaning: 'It could not start, or not end in order.' },
      { typed: '2', meaning: 'Wrong usage, or a wrong configuration.' },
      { typed: '4', meaning: 'The key store is sealed, or others can read it.' },
    ],
    environment: [
      DATA_DIR,
      { typed: 'SVCD_KEY_PASSPHRASE', meaning: 'Opens a sealed key store, and seals an open one.' },
      { typed: 'SVCD_<KEY>', meaning: 'Any key of config.toml, in capitals.' },
    ],
    files: [
      { typed: '~/.config/svcd/config.toml', meaning: 'The configuration.' },
      { typed: '~/.config/svcd/keys/', meaning: 'The operational keys of the agents and the key of the node.' },
      { typed: '~/.config/svcd/svcd.db', meaning: 'Everything else.' },
    ],
    seeAlso: 'svc (1)',
  },
];

if (import.meta.main) {
  const check = process.argv.includes('--check');
  for (const page of PAGES) {
    const text = manPage(page);
    if (!check) {
      mkdirSync(dirname(page.file), { recursive: true });
      writeFileSync(page.file, text);
    } else if (!existsSync(page.file) || readFileSync(page.file, 'utf8') !== text) {
      console.error(`${page.file} is not what the commands say: run "npm run docs"`);
      process.exit(1);
    }
  }
}

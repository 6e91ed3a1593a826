/** What every command of `svc` sends and prints, with example values. Equal sources give equal texts. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Command } from 'commander';
import { clientProgram } from '../../tools/command-tree.ts';
import { testAid } from './agents.ts';
import { runSvc } from './cli-run.ts';
import { commandLines } from './command-lines.ts';
import { commandsOf } from './command-tree.ts';
import { SchemaDaemon, type Values } from './schema-daemon.ts';

const NOW: number = Date.parse('2026-01-01T00:00:00Z');
const MINUTE_MS = 60_000;
/** Commands that run concurrently: some wait. */
const WORKERS = 16;
/** Responses differ in optional members, words, numbers of items, and times. */
const VARIANTS = [0, 1, 2, 3];
const FUTURE = /expire|next|until|estimate/;
/** Options that change nothing here, or wait for something. */
const SKIPPED_OPTIONS = /^--(?:yes|help|watch|follow|wait|as|api|json|quiet|full)$/;
/** The value of an option, by the name of its argument. */
const OPTION_VALUES: readonly (readonly [RegExp, string])[] = [
  [/<(?:n|count|ms|seconds?|port|size)>/, '2'],
  [/<time>/, '7d'],
  [/<(?:aid|agent|peer)(?:\.\.\.)?>/, testAid(2)],
  [/<(?:file|path|dir|folder)>/, '<folder>/file'],
  [/<addr(?:ess)?>/, '127.0.0.1:99'],
];
const AIDS: readonly string[] = Array.from({ length: 9 }, (_, n) => testAid(n));
/** Output that is long, or differs from run to run or between machines. */
const VARYING: readonly (readonly [RegExp, (found: string) => string])[] = [
  [/127\.0\.0\.1:\d{4,5}\b/g, () => '<address>'],
  [/\b(?!(?:ab){32})[0-9a-f]{64,}\b/g, () => '<hex>'],
  [/\baid1\w{58}\b/g, (aid) => (AIDS.includes(aid) ? `<aid ${AIDS.indexOf(aid)}>` : '<aid>')],
  [/\b(?:0x[\dA-Fa-f]{40}|bc1q\w{38})\b/g, () => '<aid>'],
  [/\bNode v[\d.]+/g, () => 'Node <version>'],
  [/\bEAI_AGAIN\b/g, () => 'ENOTFOUND'],
];

function hash(text: string): number {
  return Buffer.from(text).reduce((sum, byte) => (sum * 31 + byte) % 9973, 7);
}

function example(variant: number): Values {
  const turn = (at: readonly string[]): number => at.reduce((sum, key) => sum + (Number(key) || 0), variant);
  const name = (at: readonly string[]): string => at.findLast((key) => !/^\d+$/.test(key)) ?? 'text';
  const isLean = (at: readonly string[]): boolean => turn(at) % 2 === 1;
  return {
    isLean,
    hasPages: variant === 0,
    text: (at) => `${name(at)}-${turn(at)}`,
    aid: (at) => testAid(1 + turn(at)),
    time: (at) => {
      const minutes = (1 + (hash(name(at)) % 3000)) * (1 + turn(at));
      return new Date(NOW + (FUTURE.test(name(at)) && !isLean(at) ? minutes : -minutes) * MINUTE_MS).toISOString();
    },
    number: (least = 0, at) => least + (isLean(at) ? Number(turn(at) === 3) : hash(name(at)) * (1 + turn(at))),
    pick: (count, at) => turn(at) % count,
    // With several agents, most commands would only demand that one is named.
    items: (at) => (at[0] === 'agents' && at.length === 1 ? 1 : at.length > 1 ? 2 : ([3, 0, 1, 2][variant] ?? 0)),
  };
}

/** One line for each option of a command, and another one without a text if the command can clear it. */
function optionLines(command: Command, line: readonly string[]): string[][] {
  return command.options
    .filter(({ long }) => long !== null && long !== undefined && !SKIPPED_OPTIONS.test(long))
    .flatMap(({ long, required, optional, argChoices, flags }) => {
      const usual = argChoices?.[0] ?? OPTION_VALUES.find(([pattern]) => pattern.test(flags))?.[1] ?? 'x';
      if (!required && !optional) return [[...line, long ?? '']];
      const values = /^(?:set|update)$/.test(command.name()) ? [usual, ''] : [usual];
      return values.map((value) => [...line, long ?? '', value]);
    });
}

interface Job {
  readonly line: readonly string[];
  readonly variant: number;
  /** Shows the requests instead of the output. */
  readonly isSent: boolean;
}

async function everyJob(): Promise<Job[]> {
  const commands = new Map(commandsOf(await clientProgram()).map(({ name, command }) => [name, command]));
  return (await commandLines(testAid(1))).flatMap(({ name, line: words }) => {
    const command = commands.get(name);
    const line = name === 'agents export' ? [...words, '-o', '<folder>/agent'] : words;
    const sent = [line, ...(command === undefined ? [] : optionLines(command, line))];
    return [
      ...VARIANTS.map((variant) => ({ line, variant, isSent: false })),
      ...[0, 1].map((variant) => ({ line: ['--quiet', ...line], variant, isSent: false })),
      ...sent.map((one) => ({ line: one, variant: 0, isSent: true })),
    ];
  });
}

/** The requests or the output of a command. */
async function outcome({ line, isSent }: Job, daemon: SchemaDaemon, folder: string): Promise<string> {
  daemon.requests.length = 0;
  mkdirSync(folder);
  const args = line.map((word) => word.replace('<folder>', folder));
  const { code, stdout, stderr } = await runSvc(args, { env: { SVC_API: daemon.api, HOME: folder } });
  const failure = code === 0 ? '' : `exit ${code}\n`;
  const sent = daemon.requests.map((request) => `${request}\n`).join('');
  const text = `${failure}${stderr}${isSent ? sent : stdout}`.replaceAll(folder, '<folder>');
  return masked(text);
}

function masked(text: string): string {
  return VARYING.reduce((shown, [pattern, replacement]) => shown.replace(pattern, replacement), text);
}

/** Outcomes by command line. Variants that print the same as an earlier one are left out. */
export async function transcript(t: TestContext, directory: string): Promise<Map<string, string>> {
  t.mock.timers.enable({ apis: ['Date'], now: NOW });
  const jobs = await everyJob();
  const outcomes = new Map<number, string>();
  const waiting = jobs.entries();
  const work = async (): Promise<void> => {
    const daemons = await Promise.all(VARIANTS.map((variant) => SchemaDaemon.start(t, example(variant))));
    for (const [index, job] of waiting) {
      const daemon = daemons[job.variant];
      if (daemon !== undefined) outcomes.set(index, await outcome(job, daemon, join(directory, String(index))));
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
  const shown = new Map<string, string>();
  const seen = new Set<string>();
  for (const [index, { line, variant, isSent }] of jobs.entries()) {
    const text = outcomes.get(index) ?? '';
    const command = masked(`svc ${line.map((word) => word || "''").join(' ')}`);
    const kind = `${command} ${isSent} ${text.replaceAll(/aid1\w+/g, '').replaceAll(/\d+/g, '')}`;
    if (!seen.has(kind)) shown.set(`${command} ${isSent ? '(sent)' : `(${variant})`}`, text);
    seen.add(kind);
  }
  return shown;
}

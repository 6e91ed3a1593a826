/** `svc logs`, `svc stop`, `svc restart`: the process of the daemon. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ErrorCode, SvcError } from '../../../foundation/errors.ts';
import { memberOf } from '../../../foundation/json.ts';
import { LOG_LEVELS } from '../../../foundation/log.ts';
import { textLine } from '../../../foundation/log-text.ts';
import { MAX_LOG_LINES } from '../../../foundation/recent-log.ts';
import { LOG_LINES } from '../../../operations/process.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { isSvcd } from '../svcd-process.ts';
import { choice, integer, type Typed } from '../takes.ts';
import { safeJson, safeLine } from '../text.ts';

/** Time between two questions, milliseconds. */
const QUESTION_MS = 400;
/** The daemon has to have ended, or to be there again, this long after it was asked, milliseconds. */
const END_LIMIT_MS = 30_000;
/** Where the service's log is, below the home of its user, on systems that keep it in a file. */
const LOG_FILE = join('Library', 'Logs', 'svcd.log');

const LOGS = {
  '-f, --follow': 'go on until interrupted, over restarts of the daemon too',
  '-n, --lines <n>': integer(`so many of the newest lines; ${LOG_LINES} where it is left out`),
  '--level <level>': { ...choice(...LOG_LEVELS), about: 'nothing less important' },
} as const;

type Line = AnswerOf<'nodeLog'>['lines'][number];

function lineText({ at, level, component, message, fields }: Line): string {
  const from = component === null ? {} : { component };
  return textLine(JSON.stringify({ time: at, level, ...from, msg: message, ...fields }));
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    signal?.addEventListener('abort', over, { once: true });
  });
}

/** The last lines of the log that a service left on this machine. @throws SvcError the failure where there is none */
function leftLines({ io }: CliContext, lines: number, failure: SvcError): string {
  const file = join(io.env['HOME'] ?? '', LOG_FILE);
  if (failure.code !== 'daemon_unreachable' || !existsSync(file)) throw failure;
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).map(safeLine).join('\n');
}

type Logs = Typed<'', typeof LOGS>;
type Asked = Partial<Pick<Logs, 'level'>>;

async function showLog(context: CliContext, { follow, lines = LOG_LINES, level }: Logs) {
  const asked = level === undefined ? {} : { level };
  try {
    const first = await context.client.nodeLog({ limit: lines, ...asked });
    if (follow !== true) return first;
    printLines(context, first.lines);
    await followLog(context, first.lines.at(-1), asked);
    return undefined;
  } catch (error) {
    if (!(error instanceof SvcError) || follow === true) throw error;
    context.io.stdout.write(`${leftLines(context, lines, error)}\n`);
    context.note('The daemon does not answer; this is what its service wrote.');
    return undefined;
  }
}

function printLines({ io, options }: CliContext, lines: readonly Line[]): void {
  for (const one of lines)
    io.stdout.write(
      `${options.json === true ? safeJson(one) : options.quiet === true ? one.message : lineText(one)}\n`,
    );
}

/** Failures after which the daemon may come back. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['daemon_unreachable', 'timeout', 'rate_limited']);

/** Prints what comes, over restarts of the daemon too, until the command is interrupted. @throws SvcError what the daemon answers */
async function followLog(context: CliContext, first: Line | undefined, asked: Asked): Promise<void> {
  const { signal } = context.io;
  let last = first;
  let isWaiting = false;
  const isOver = (): boolean => signal?.aborted === true;
  while (!isOver()) {
    await pause(QUESTION_MS, signal);
    try {
      const lines = await linesBehind(context, last, asked);
      printLines(context, lines);
      last = lines.at(-1) ?? last;
      isWaiting = false;
    } catch (error) {
      if (!(error instanceof SvcError) || !PASSING.has(error.code)) throw error;
      if (!isWaiting) context.note(`${error.message} Trying again.`);
      isWaiting = true;
    }
  }
}

/** The lines behind the last one that was shown. Numbers begin again with each start of the daemon, so its line is compared. */
async function linesBehind({ client }: CliContext, last: Line | undefined, asked: Asked) {
  const all = { limit: MAX_LOG_LINES, ...asked };
  if (last === undefined) return (await client.nodeLog(all)).lines;
  const { lines } = await client.nodeLog({ ...all, after_seq: last.seq - 1 });
  const [same] = lines;
  if (same !== undefined && same.seq === last.seq && same.at === last.at && same.message === last.message)
    return lines.slice(1);
  return (await client.nodeLog(all)).lines;
}

/** Waits until something is so of the daemon. @throws SvcError `timeout` */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + END_LIMIT_MS; Date.now() < end; await pause(QUESTION_MS, undefined))
    if (await holds()) return;
  throw new SvcError('timeout', { message: what });
}

async function numberOf({ client }: CliContext): Promise<number | null> {
  try {
    const pid = memberOf(await client.debugHost(), 'pid');
    return typeof pid === 'number' ? pid : null;
  } catch {
    return null;
  }
}

async function stop(context: CliContext) {
  const { pid } = await context.client.nodeStop();
  // Behind a forwarded port or in a container the number is another process's.
  const ended = async () => !isSvcd(pid) && (await numberOf(context)) !== pid;
  await until(`svcd (process ${pid}) has not ended yet; its log may say what it waits for.`, ended);
  return { ok: true as const, pid };
}

async function restart(context: CliContext) {
  const { pid: before } = await context.client.nodeRestart();
  let pid = before;
  await until('svcd is not back yet; "svcd service status" says how it stands.', async () => {
    pid = (await numberOf(context)) ?? before;
    return pid !== before;
  });
  return { ok: true as const, pid };
}

export function processCommands(svc: CommandGroup): void {
  svc.run('logs', 'show the newest lines of the log of the daemon, or follow it', {
    examples: ['svc logs -n 50', 'svc logs -f --level warn'],
    takes: LOGS,
    run: showLog,
    text: ({ lines }) => lines.map(lineText).join('\n'),
    quiet: ({ lines }) => lines.map(({ message }) => message).join('\n'),
  });
  svc.run('stop', 'end the daemon cleanly, and wait until it has ended', {
    progress: 'Stopping',
    run: stop,
    text: () => 'svcd has ended.',
    quiet: ({ pid }) => String(pid),
  });
  svc.run('restart', 'start the daemon anew, where it runs as the installed service', {
    progress: 'Restarting',
    run: restart,
    text: ({ pid }) => `svcd runs again, as process ${pid}.`,
    quiet: ({ pid }) => String(pid),
  });
}

/** `svc logs`, `svc stop`, `svc restart`: the process of the daemon. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../../foundation/data-dir/lock.ts';
import { textLine } from '../../../foundation/display-text.ts';
import { type ErrorCode, SvcError } from '../../../foundation/errors.ts';
import { memberOf } from '../../../foundation/json.ts';
import { LOG_LEVELS } from '../../../foundation/log.ts';
import { MAX_LOG_LINES } from '../../../foundation/recent-log.ts';
import { LOG_LINES } from '../../../operations/process.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { choice, integer, type ParsedOptions } from '../options.ts';
import { safeJson, safeLine } from '../text.ts';

// Tells whether a local process is the daemon.

/**
 * True if the process is svcd. Behind a forwarded port or in a container the same pid belongs to another process, or to
 * none.
 */
function isSvcd(pid: number): boolean {
  if (!isAlive(pid)) return false;
  if (process.platform !== 'linux') return true;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('svcd');
  } catch {
    return false;
  }
}

/** Polling interval, milliseconds. */
const QUESTION_MS = 400;
/** Deadline for a stop or a restart, milliseconds. */
const END_LIMIT_MS = 30_000;
/** Path of the service's log below the home directory, on systems that store it in a file. */
const LOG_FILE = join('Library', 'Logs', 'svcd.log');

const LOGS = {
  '-f, --follow': 'follow until interrupted, across restarts of the daemon',
  '-n, --lines <n>': integer(`number of lines; default ${LOG_LINES}`),
  '--level <level>': { ...choice(...LOG_LEVELS), about: 'minimum level' },
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

/** The last lines of the log of a system service on this machine. @throws SvcError `failure` if there is no log */
function leftLines({ io }: CliContext, lines: number, failure: SvcError): string {
  const file = join(io.env['HOME'] ?? '', LOG_FILE);
  if (failure.code !== 'daemon_unreachable' || !existsSync(file)) throw failure;
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).map(safeLine).join('\n');
}

type Logs = ParsedOptions<'', typeof LOGS>;
type Asked = Partial<Pick<Logs, 'level'>>;

async function showLog(context: CliContext, { follow, lines = LOG_LINES, level }: Logs) {
  const asked = level === undefined ? {} : { level };
  // Read before the first line is printed, after which the reader may end.
  const signal = follow === true ? context.io.signal : undefined;
  try {
    const first = await context.client.nodeLog({ limit: lines, ...asked });
    if (follow !== true) return first;
    printLines(context, first.lines);
    await followLog(context, first.lines.at(-1), asked, signal);
    return undefined;
  } catch (error) {
    if (!(error instanceof SvcError) || follow === true) throw error;
    context.io.stdout.write(`${leftLines(context, lines, error)}\n`);
    context.info('The daemon does not respond. These lines are from the log of its service.');
    return undefined;
  }
}

function printLines({ io, options }: CliContext, lines: readonly Line[]): void {
  for (const one of lines)
    io.stdout.write(
      `${options.json === true ? safeJson(one) : options.quiet === true ? one.message : lineText(one)}\n`,
    );
}

/** Errors after which the daemon may recover. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['daemon_unreachable', 'timeout', 'rate_limited']);

/** Prints new lines until interrupted, across restarts of the daemon. @throws SvcError other errors of the daemon */
async function followLog(
  context: CliContext,
  first: Line | undefined,
  asked: Asked,
  signal: AbortSignal | undefined,
): Promise<void> {
  let last = first;
  let isWaiting = false;
  const isOver = (): boolean => signal?.aborted === true;
  while (!isOver()) {
    await pause(QUESTION_MS, signal);
    try {
      const lines = await linesAfter(context, last, asked);
      printLines(context, lines);
      last = lines.at(-1) ?? last;
      isWaiting = false;
    } catch (error) {
      if (!(error instanceof SvcError) || !PASSING.has(error.code)) throw error;
      if (!isWaiting) context.info(`${error.message} Retrying.`);
      isWaiting = true;
    }
  }
}

/** The lines after the last one shown. Line numbers restart with the daemon, so the line itself is compared. */
async function linesAfter({ client }: CliContext, last: Line | undefined, asked: Asked) {
  const all = { limit: MAX_LOG_LINES, ...asked };
  if (last === undefined) return (await client.nodeLog(all)).lines;
  const { lines } = await client.nodeLog({ ...all, after_seq: last.seq - 1 });
  const [same] = lines;
  if (same !== undefined && same.seq === last.seq && same.at === last.at && same.message === last.message)
    return lines.slice(1);
  return (await client.nodeLog(all)).lines;
}

/** Polls until a condition holds. @throws SvcError `timeout` */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + END_LIMIT_MS; performance.now() < end; await pause(QUESTION_MS, undefined))
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

/** Stops the daemon and waits for its end. @throws SvcError `timeout` */
export async function stop(context: CliContext) {
  const { pid } = await context.client.nodeStop();
  // Behind a forwarded port or in a container, this pid belongs to another process.
  const ended = async () => !isSvcd(pid) && (await numberOf(context)) !== pid;
  await until(`svcd (pid ${pid}) did not stop in time. Its log may show why.`, ended);
  return { ok: true as const, pid };
}

async function restart(context: CliContext) {
  const { pid: before } = await context.client.nodeRestart();
  let pid = before;
  await until('svcd did not start again in time. See "svcd service status".', async () => {
    pid = (await numberOf(context)) ?? before;
    return pid !== before;
  });
  return { ok: true as const, pid };
}

export function processCommands(svc: CommandGroup): void {
  svc.run('logs', 'show the newest log lines of the daemon, or follow its log', {
    examples: ['svc logs -n 50', 'svc logs -f --level warn'],
    options: LOGS,
    run: showLog,
    text: ({ lines }) => lines.map(lineText).join('\n'),
    quiet: ({ lines }) => lines.map(({ message }) => message).join('\n'),
  });
  svc.run('stop', 'stop the daemon', {
    progress: 'Stopping',
    run: stop,
    text: () => 'svcd stopped.',
    quiet: ({ pid }) => String(pid),
  });
  svc.run('restart', 'restart the daemon if it runs as a system service', {
    progress: 'Restarting',
    run: restart,
    text: ({ pid }) => `svcd restarted with pid ${pid}.`,
    quiet: ({ pid }) => String(pid),
  });
}

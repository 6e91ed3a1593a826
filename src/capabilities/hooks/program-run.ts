/**
 * One run of a hook's program, which survives the daemon. A fixed shell script starts the program in a separate process
 * group and writes its exit code and the end of its output to a folder, where the next daemon finds them if this one was
 * killed meanwhile. See docs/decisions/0105-hooks.md. On Windows, `windows-run.ts` takes the part of the script.
 *
 * The folder contains:
 * - `item.json`: the standard input of the program
 * - `alive`: a FIFO whose write end the script and the program inherit as descriptor 3. It has a writer while one of
 *   them runs, so no process ID can be mistaken
 * - `stop`: a FIFO for signals to the group, which its own watcher sends. No process ID is needed here either
 * - `mark`: a random text that follows the last byte of each output of the program
 * - `begun` if the shell had a process for the program
 * - `output` with the end of the output and marks, and `status` with the exit code, after the program has exited
 * - `answer`: the standard output of a program that answers a call, with marks; `output` has its standard error only
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, constants, existsSync, openSync, readSync, writeSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { MAX_HOOK_ANSWER_BYTES, MAX_HOOK_OUTPUT_BYTES } from '../../foundation/domain/hooks.ts';
import { codeOf } from '../../foundation/errors.ts';
import { PRIVATE_DIRECTORY_MODE, PRIVATE_FILE_MODE } from '../../foundation/files.ts';
import { shellCommand, startable } from '../../foundation/programs.ts';
import { GONE_MS, LOOK_MS, type RunningProgram, WindowsRun } from './windows-run.ts';

const run = promisify(execFile);

const SHELL = '/bin/sh';
/**
 * Bytes that the script reads at a time. A process that the program left behind can hold its output open, so the
 * end of the output is no sign of its exit. When the program has exited, the script writes marks after its last
 * byte, enough to fill the current and the next block, and the readers stop at a block with a mark.
 */
const BLOCK_BYTES = 256 * 1024;
const MARK_CHARS = 32;
/** Blocks of the longest answer, and one with a mark. Too long an answer ends its program, which gets SIGPIPE. */
const MAX_ANSWER_BLOCKS = Math.ceil(MAX_HOOK_ANSWER_BYTES / BLOCK_BYTES) + 2;

/**
 * `exec` starts programs only, no commands of the shell. `kill -KILL 0` ends what the program left in the group. The
 * program and everything it starts receive signals as usual; the other processes of the script ignore SIGTERM, so that
 * the result of a program that ends cleanly is stored. `stop` is open before the program starts, so no signal is lost.
 */
const PROGRAM = `( trap : TERM; (true 2>/dev/null >"$dir/begun"; exec "$@"); echo $? >"$dir/code"; trap '' TERM; marks; marks >&2 )`;
const ANSWER = `( trap '' TERM; n=0
while [ $n -lt ${MAX_ANSWER_BLOCKS} ] && take block && cat "$dir/block" >>"$dir/answer" && ! has_mark block; do n=$((n + 1)); done ) 2>/dev/null`;
const OUTPUT = `( trap '' TERM; last=block0 next=block1
while take $next && ! has_mark $next; do swap=$last last=$next next=$swap; done
cat "$dir/$last" "$dir/$next" >"$dir/output" )`;
const script = (program: string): string => `dir=$1 mark=$2
shift 2
trap : TERM
{ ( trap '' TERM; while read -r name; do kill "-$name" 0; done ) <&4 4<&- >/dev/null 2>&1 3>&- & } 4<>"$dir/stop"
marks() { yes "$mark" 2>/dev/null | head -c ${2 * BLOCK_BYTES} 2>/dev/null; }
take() { head -c ${BLOCK_BYTES} >"$dir/$1" && [ -s "$dir/$1" ]; }
has_mark() { [ -f "$dir/code" ] && case $(cat "$dir/$1") in *"$mark"*) ;; *) false ;; esac; }
${program} 2>&1 | ${OUTPUT}
[ -f "$dir/code" ] && mv "$dir/code" "$dir/status"
kill -KILL 0`;
const SCRIPT = script(PROGRAM);
/** The standard error takes the way around the answer, through descriptor 4. */
const ANSWER_SCRIPT = script(`{ ${PROGRAM} 2>&4 4>&- | ${ANSWER}; } 4>&1`);

/** Milliseconds from SIGTERM to SIGKILL. */
export const GRACE_MS = 5000;

export interface Program {
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** The command is one text for the shell of the system. */
  readonly shell?: boolean;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Its standard input. */
  readonly item: string;
  /** Its standard output is an answer, see `answerOf`. */
  readonly answers?: boolean;
}

/** The result of a program. */
export interface ProgramResult {
  /** Null if it has none: it was killed, or the machine stopped. */
  readonly exitCode: number | null;
  /** The end of its output. */
  readonly output: string;
}

export class ProgramRun implements RunningProgram {
  readonly ended: Promise<void>;
  readonly #end: () => void;
  readonly #dir: string;
  readonly #clock: Clock;
  readonly #child: ChildProcess | null;
  readonly #alive: Socket;
  #timer: Timer | null = null;

  private constructor(dir: string, clock: Clock, aliveFile: number, child: ChildProcess | null) {
    this.#dir = dir;
    this.#clock = clock;
    this.#child = child;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#end = (): void => {
      this.#timer?.cancel();
      this.#alive.destroy();
      resolve();
    };
    this.#alive = new Socket({ fd: aliveFile, readable: true, writable: false });
    this.#alive
      .on('error', this.#end)
      .once('close', this.#end)
      // A program may write to it.
      .resume();
    if (child === null) this.#look();
    else child.once('exit', () => this.#scriptEnded());
  }

  /**
   * Starts a program.
   * @param dir its folder, which is created
   * @throws the error of the system, for example if the folder of the program does not exist
   */
  static async start(
    this: void,
    dir: string,
    clock: Clock,
    program: Program,
    platform: string = process.platform,
  ): Promise<RunningProgram> {
    const { command, shell = false, folder, environment, item, answers = false } = program;
    const start = shell ? shellCommand(command.join(' '), environment) : startable(command, environment);
    await rm(dir, { recursive: true, force: true });
    await mkdir(dir, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
    const alive = join(dir, 'alive');
    const mark = randomBytes(MARK_CHARS / 2).toString('hex');
    await Promise.all([
      writeFile(join(dir, 'item.json'), item, { mode: PRIVATE_FILE_MODE }),
      writeFile(join(dir, 'mark'), mark, { mode: PRIVATE_FILE_MODE }),
    ]);
    if (platform === 'win32') return WindowsRun.start(dir, clock, { startable: start, folder, environment, answers });
    await run('mkfifo', ['-m', '600', alive, join(dir, 'stop')]);
    const reader = openReader(alive);
    const passed: number[] = [];
    try {
      // Each of these may fail, for example without a free descriptor.
      const writer = openSync(alive, constants.O_WRONLY);
      passed.push(writer);
      const input = openSync(join(dir, 'item.json'), 'r');
      passed.push(input);
      const child = spawn(
        SHELL,
        ['-c', answers ? ANSWER_SCRIPT : SCRIPT, 'svc-hook', dir, mark, start.file, ...start.args],
        {
          cwd: folder,
          env: environment,
          detached: true,
          stdio: [input, 'ignore', 'ignore', writer],
        },
      );
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve).on('error', reject);
      });
      return new ProgramRun(dir, clock, reader, child);
    } catch (error) {
      closeSync(reader);
      throw error;
    } finally {
      for (const file of passed) closeSync(file);
    }
  }

  /** Takes over a program that an earlier daemon started. Null if it is not running. */
  static takeOver(dir: string, clock: Clock, platform: string = process.platform): RunningProgram | null {
    if (platform === 'win32') return WindowsRun.takeOver(dir, clock);
    let reader: number;
    try {
      reader = openReader(join(dir, 'alive'));
    } catch {
      return null;
    }
    if (!isFinished(dir) && hasWriter(reader)) return new ProgramRun(dir, clock, reader, null);
    closeSync(reader);
    return null;
  }

  signal(name: 'TERM' | 'KILL'): void {
    if (name === 'KILL') this.#after(GONE_MS, this.#end);
    const child = this.#child;
    const { pid } = child ?? {};
    try {
      // The system does not reuse the ID before the script was reaped, which is when `exitCode` or `signalCode` is set.
      if (pid !== undefined && child?.exitCode === null && child.signalCode === null) process.kill(-pid, `SIG${name}`);
      else signalByWatcher(join(this.#dir, 'stop'), name);
    } catch {
      // No process of the group is left.
    }
  }

  /** Someone killed the script if there is no result. The program may still run. */
  #scriptEnded(): void {
    if (isFinished(this.#dir)) this.#end();
    else this.signal('KILL');
  }

  #look(): void {
    if (isFinished(this.#dir)) this.#end();
    else this.#after(LOOK_MS, () => this.#look());
  }

  #after(ms: number, task: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(ms, task);
  }
}

function openReader(fifo: string): number {
  return openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
}

/** Whether a FIFO has a writer: without one, reading finds the end. */
function hasWriter(reader: number): boolean {
  try {
    return readSync(reader, new Uint8Array(1)) > 0;
  } catch (error) {
    return codeOf(error) === 'EAGAIN';
  }
}

function isFinished(dir: string): boolean {
  return existsSync(join(dir, 'status'));
}

/** @throws the error of the system if the watcher has exited */
function signalByWatcher(fifo: string, name: string): void {
  const file = openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    writeSync(file, `${name}\n`);
  } finally {
    closeSync(file);
  }
}

/** The result of a completed run. */
export async function resultOf(dir: string): Promise<ProgramResult> {
  const [status, output] = await Promise.all([
    readFile(join(dir, 'status'), 'utf8').catch(() => ''),
    written(dir, 'output'),
  ]);
  const exitCode = /^\d+\n$/.test(status) ? Number(status) : null;
  return { exitCode, output: output.text.subarray(-MAX_HOOK_OUTPUT_BYTES).toString() };
}

/** False if a completed run has no result because the shell found no process for the program. */
export function hasBegun(dir: string): boolean {
  return existsSync(join(dir, 'begun'));
}

/** The answer of a completed run. Null if there is none, or if it is longer than the limit. */
export async function answerOf(dir: string): Promise<Buffer | null> {
  const { text, isWhole } = await written(dir, 'answer');
  return isWhole && text.length <= MAX_HOOK_ANSWER_BYTES ? text : null;
}

/** The output of a program until it exited. `isWhole`: it is followed by a mark. */
async function written(dir: string, name: string): Promise<{ readonly text: Buffer; readonly isWhole: boolean }> {
  const read = (file: string): Promise<Buffer> => readFile(join(dir, file)).catch(() => Buffer.alloc(0));
  const [all, mark] = await Promise.all([read(name), read('mark')]);
  const end = mark.length === 0 ? -1 : all.indexOf(mark);
  return { text: end === -1 ? all : all.subarray(0, end), isWhole: end !== -1 };
}

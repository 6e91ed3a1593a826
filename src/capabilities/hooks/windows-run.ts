/**
 * One run of a program on Windows, which has no `/bin/sh`, FIFO or process group. A separate process of Node replaces the
 * shell script of `program-run.ts`, with the same files. Differences:
 * - a lock that ends with this process replaces the FIFO `alive`
 * - a file named `stop` replaces the FIFO. It kills the whole tree of processes, because Windows has no SIGTERM
 * - processes that the program left behind keep running: Windows does not record their tree after its exit
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { acquireLock, LOCK_FILE_NAME } from '../../foundation/data-dir/lock.ts';
import { MAX_HOOK_ANSWER_BYTES, MAX_HOOK_OUTPUT_BYTES } from '../../foundation/domain/hooks.ts';
import { PRIVATE_FILE_MODE } from '../../foundation/files.ts';
import { scriptCommand } from '../../foundation/package-file.ts';
import type { Startable } from '../../foundation/programs.ts';

/** A program that runs. */
export interface RunningProgram {
  /** Resolves when the program has exited. */
  readonly ended: Promise<void>;
  /** Signals the program and everything that it started. Windows has no SIGTERM: either name kills it. */
  signal(name: 'TERM' | 'KILL'): void;
}

/** Milliseconds between checks for the result of a program of an earlier daemon: its exit is no event of this one. */
export const LOOK_MS = 1000;
/** Milliseconds after SIGKILL until a run counts as ended, although one of its processes still runs. */
export const GONE_MS = 2000;

/** How the other process starts the program. */
const PLAN = 'run.json';
const STOP = 'stop';

/** Milliseconds between looks for `stop`, which Windows usually reports sooner. */
const STOP_LOOK_MS = 1000;
/**
 * A process that the program left behind can hold its output open, so the end of the output is no sign of its exit. All
 * output of the program is in the pipes when it exits, and each turn reads them: ten turns without a byte are its end.
 */
const DRAIN_TURNS = 10;
const DRAIN_TURN_MS = 10;

/** Codes of a shell for programs that it cannot find or start. */
const NOT_FOUND = 127;
const NOT_STARTED = 126;

export const RUNNER = `
const fs = require('node:fs'), path = require('node:path');
const { spawn, spawnSync } = require('node:child_process');
const dir = process.argv[1], at = (name) => path.join(dir, name);
const lock = new (require('node:sqlite').DatabaseSync)(at('${LOCK_FILE_NAME}'));
lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
if (fs.existsSync(at('${STOP}'))) process.exit();
const { file, args, windowsVerbatimArguments, answers } = JSON.parse(fs.readFileSync(at('${PLAN}'), 'utf8'));
const isWindows = process.platform === 'win32';
const answer = [], output = [];
let child, bytes = 0, answered = 0, kept = 0, isStopped = false, open = 2, isOver = false;
const write = (name, content) => fs.writeFileSync(at(name), content, { mode: ${PRIVATE_FILE_MODE} });
const finish = (code) => {
  if (isOver) return;
  isOver = true;
  write('output', Buffer.concat(output));
  if (answers) write('answer', Buffer.concat(answered > ${MAX_HOOK_ANSWER_BYTES} ? answer : [...answer, fs.readFileSync(at('mark'))]));
  if (code !== null && !isStopped) {
    write('code', code + '\\n');
    fs.renameSync(at('code'), at('status'));
  }
  lock.close();
  process.exit();
};
const failed = (error) => {
  output.push(Buffer.from(error.message + '\\n'));
  finish(error.code === 'ENOENT' ? ${NOT_FOUND} : ${NOT_STARTED});
};
const end = () => {
  if (child?.pid === undefined) return;
  const taskkill = path.join(process.env.SystemRoot ?? 'C:\\\\Windows', 'System32', 'taskkill.exe');
  if (isWindows) {
    spawnSync(taskkill, ['/pid', String(child.pid), '/t', '/f'], { stdio: 'ignore', windowsHide: true });
    child.kill('SIGKILL');
  } else try { process.kill(-child.pid, 'SIGKILL'); } catch {}
};
const look = () => {
  if (isStopped || !fs.existsSync(at('${STOP}'))) return;
  isStopped = true;
  end();
};
const keep = (chunk) => {
  output.push(chunk);
  for (kept += chunk.length; kept - output[0].length >= ${MAX_HOOK_OUTPUT_BYTES}; ) kept -= output.shift().length;
};
const keepAnswer = (chunk) => {
  if (answered > ${MAX_HOOK_ANSWER_BYTES}) return;
  answer.push(chunk);
  answered += chunk.length;
  if (answered > ${MAX_HOOK_ANSWER_BYTES}) end();
};
const exited = (code) => {
  const limit = bytes + ${MAX_HOOK_ANSWER_BYTES};
  let seen = bytes, quiet = 0;
  const drain = () => {
    quiet = bytes === seen ? quiet + 1 : 0;
    seen = bytes;
    if (open === 0 || quiet > ${DRAIN_TURNS} || bytes > limit) finish(code);
    else setTimeout(drain, ${DRAIN_TURN_MS});
  };
  drain();
};
try {
  const stdio = [fs.openSync(at('item.json')), 'pipe', 'pipe'];
  child = spawn(file, args, { stdio, windowsHide: true, windowsVerbatimArguments, detached: !isWindows });
  child.on('error', failed).once('exit', exited);
  if (child.pid !== undefined) write('begun', '');
  for (const [stream, take] of [[child.stdout, answers ? keepAnswer : keep], [child.stderr, keep]])
    stream.on('data', (chunk) => { bytes += chunk.length; take(chunk); }).on('error', () => {}).once('close', () => open--);
} catch (error) {
  failed(error);
}
try { fs.watch(dir, look).on('error', () => {}); } catch {}
setInterval(look, ${STOP_LOOK_MS});
look();
`;

export class WindowsRun implements RunningProgram {
  readonly ended: Promise<void>;
  readonly #end: () => void;
  readonly #dir: string;
  readonly #clock: Clock;
  #timer: Timer | null = null;
  #limit: Timer | null = null;

  private constructor(dir: string, clock: Clock, child: ChildProcess | null) {
    this.#dir = dir;
    this.#clock = clock;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#end = (): void => {
      this.#timer?.cancel();
      this.#limit?.cancel();
      resolve();
    };
    if (child === null) this.#look();
    else child.once('exit', this.#end);
  }

  /**
   * Starts a program. Its folder has the files that `ProgramRun.start` describes.
   * @throws the error of the system, for example if the folder of the program does not exist
   */
  static async start(
    dir: string,
    clock: Clock,
    { startable, folder: cwd, environment: env, answers }: WindowsProgram,
  ): Promise<WindowsRun> {
    await writeFile(join(dir, PLAN), JSON.stringify({ ...startable, answers }), { mode: PRIVATE_FILE_MODE });
    const [node, ...args] = scriptCommand('program', RUNNER);
    const child = spawn(node, [...args, dir], { cwd, env, detached: true, stdio: 'ignore', windowsHide: true });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve).on('error', reject);
    });
    return new WindowsRun(dir, clock, child);
  }

  /** Takes over a program that an earlier daemon started. Null if it is not running. */
  static takeOver(dir: string, clock: Clock): WindowsRun | null {
    if (!existsSync(dir)) return null;
    const lock = acquireLock(dir);
    if (lock === null) return new WindowsRun(dir, clock, null);
    // One that the system starts only now must not start the program.
    writeFileSync(join(dir, STOP), '');
    lock.release();
    return null;
  }

  signal(name: 'TERM' | 'KILL'): void {
    if (name === 'KILL') this.#limit ??= this.#clock.after(GONE_MS, this.#end);
    try {
      writeFileSync(join(this.#dir, STOP), '');
    } catch {
      // The run is over, and its folder was removed.
    }
  }

  #look(): void {
    const lock = acquireLock(this.#dir);
    lock?.release();
    if (lock !== null) this.#end();
    else this.#timer = this.#clock.after(LOOK_MS, () => this.#look());
  }
}

interface WindowsProgram {
  readonly startable: Startable;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly answers: boolean;
}

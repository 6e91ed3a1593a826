/**
 * Machines of a temporary network: network namespaces inside a user namespace, so that no privileges are needed. A process keeps each namespace open until its input ends.
 */
import { type ChildProcess, type ChildProcessByStdio, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { userInfo } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { runOk } from '../programs.ts';

/** Directories of `ip` and `nft` in Debian, which are not in the PATH of ordinary users. */
const SYSTEM_PROGRAMS = '/usr/sbin:/sbin';

type Keeper = ChildProcessByStdio<Writable, Readable, null>;

function withSystemPrograms(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env['PATH'] ?? ''}:${SYSTEM_PROGRAMS}` };
}

/** `nsenter` arguments for the namespaces of a process. */
function into(pid: number, kinds: readonly string[]): string[] {
  return ['-t', String(pid), '--preserve-credentials', ...kinds];
}

/** Starts a process that keeps namespaces open until its input ends. Fails if the system does not allow them. */
async function keep(program: string, args: readonly string[]): Promise<Keeper> {
  const child = spawn(program, [...args, 'cat'], { stdio: ['pipe', 'pipe', 'ignore'], env: withSystemPrograms() });
  child.stdin.on('error', () => {});
  child.stdin.write('\n');
  const isReady = await Promise.race([
    once(child.stdout, 'data').then(() => true),
    once(child, 'exit').then(() => false),
    once(child, 'error').then(() => false),
  ]);
  if (!isReady) throw new Error(`${program} ${args.join(' ')} failed`);
  return child;
}

/** Root keeps its user namespace, so that servers can change to another user. */
function shellNamespaces(): readonly string[] {
  return userInfo().uid === 0 ? ['-n'] : ['-U', '-n'];
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** One machine. */
export class Machine {
  readonly name: string;
  readonly #keeper: Keeper;
  readonly #children: ChildProcess[] = [];

  private constructor(name: string, keeper: Keeper) {
    this.name = name;
    this.#keeper = keeper;
  }

  /** @param world the machine whose user namespace it joins; null for the first machine, which creates it */
  static async start(name: string, world: Machine | null): Promise<Machine> {
    const keeper = await (world === null
      ? keep('unshare', ['-rn'])
      : keep('nsenter', [...into(world.pid, ['-U']), 'unshare', '-n']));
    return new Machine(name, keeper);
  }

  get pid(): number {
    const { pid } = this.#keeper;
    if (pid === undefined) throw new Error(`${this.name} has not been started`);
    return pid;
  }

  /** Runs a program that must succeed. @returns its output */
  async run(program: string, args: readonly string[], input = ''): Promise<string> {
    return await runOk('nsenter', [...into(this.pid, ['-U', '-n']), program, ...args], {
      input,
      env: withSystemPrograms(),
    });
  }

  /** Configures interfaces, addresses and routes, one `ip` command per line. */
  async ip(lines: readonly string[]): Promise<void> {
    await this.run('ip', ['-batch', '-'], `${lines.join('\n')}\n`);
  }

  /** Applies nftables rules. */
  async nft(rules: string): Promise<void> {
    await this.run('nft', ['-f', '-'], rules);
  }

  /** Sets values under `/proc/sys`. */
  async set(name: string, value: number): Promise<void> {
    await this.run('tee', [`/proc/sys/${name}`], String(value));
  }

  /** Starts a local module with a message channel. It stops with the machine. */
  fork(module: string, args: readonly string[] = []): ChildProcess {
    const child = fork(module, args, {
      execPath: 'nsenter',
      execArgv: [...into(this.pid, ['-U', '-n']), process.execPath],
      env: withSystemPrograms(),
    });
    this.#children.push(child);
    return child;
  }

  /** Starts a program that stops with the machine. */
  spawn(program: string, args: readonly string[]): ChildProcess {
    const inside = [...into(this.pid, ['-U', '-n']), program, ...args];
    const child = spawn('nsenter', inside, { stdio: 'ignore', env: withSystemPrograms() });
    this.#children.push(child);
    return child;
  }

  /** The command with which another process runs a program here, like `shell`. */
  inside(program: string, args: readonly string[]): { readonly command: string; readonly args: string[] } {
    return { command: 'nsenter', args: [...into(this.pid, shellNamespaces()), program, ...args] };
  }

  /** Starts a program with piped input and output. It stops with the machine. */
  converse(program: string, args: readonly string[]): ChildProcessByStdio<Writable, Readable, null> {
    const inside = [...into(this.pid, ['-U', '-n']), program, ...args];
    const child = spawn('nsenter', inside, { stdio: ['pipe', 'pipe', 'inherit'], env: withSystemPrograms() });
    child.stdin.on('error', () => {});
    this.#children.push(child);
    return child;
  }

  /**
   * Starts a shell that reads commands from its input and stops at the first error; stderr goes to its output. Root
   * stays root of the whole machine, so that servers can change to another user.
   */
  shell(directory: string, env: NodeJS.ProcessEnv): ChildProcessByStdio<Writable, Readable, null> {
    const { command, args } = this.inside('bash', ['-c', 'exec bash -e 2>&1']);
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], cwd: directory, env });
    child.stdin.on('error', () => {});
    this.#children.push(child);
    return child;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map(end));
    await end(this.#keeper);
  }
}

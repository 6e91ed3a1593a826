/**
 * The transport of a wrapped server's process. Wrappers such as `npx` and `sh -c` start the server as a child of their
 * own, so the process gets a group, and the whole group ends with it.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { PassThrough, type Stream } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { type JSONRPCMessage, serializeMessage } from '@modelcontextprotocol/server';
import { ExactLines } from './exact-lines.ts';

/** How long a server may take to end after its stdin was closed, and again after SIGTERM, milliseconds. */
export const END_GRACE_MS = 2_000;
const POLL_MS = 20;

interface TreeOptions {
  readonly command: string;
  readonly args: string[];
  readonly env: Record<string, string>;
  readonly graceMs?: number | undefined;
}

/** Signals a process group. Returns false if it has no member. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}

/** Waits until a process group is empty. Returns false if it is not by then. */
async function isEmptyAfter(pid: number, ms: number): Promise<boolean> {
  const giveUpAt = performance.now() + ms;
  while (signalGroup(pid, 0)) {
    if (performance.now() >= giveUpAt) return false;
    await pause(POLL_MS);
  }
  return true;
}

/** Processes that run. What ends this process without a signal must not leave them behind. */
const running = new Set<ProcessTree>();
process.once('exit', () => {
  for (const tree of running) tree.kill();
});

/**
 * It extends the transport of the SDK, which tells by its class and its `_dispose` that it may start a second process to
 * find out which revisions the server knows.
 */
export class ProcessTree extends StdioClientTransport {
  readonly #options: TreeOptions;
  readonly #lines = new ExactLines();
  readonly #stderr = new PassThrough();
  #child: ChildProcess | null = null;
  #ending: Promise<void> | null = null;

  constructor(options: TreeOptions) {
    super({ ...options, stderr: 'pipe' });
    this.#options = options;
  }

  override get stderr(): Stream {
    return this.#stderr;
  }

  override get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** @throws what Node gives for a program that cannot be run */
  override async start(): Promise<void> {
    const { command, args, env } = this.#options;
    const isWindows = process.platform === 'win32';
    // On Windows programs such as npx are scripts, which take a shell.
    const child = spawn(command, args, { env, detached: !isWindows, shell: isWindows, windowsHide: true });
    this.#child = child;
    child.stdin.on('error', (error) => this.onerror?.(error));
    child.stdout.on('error', (error) => this.onerror?.(error)).on('data', (chunk: Buffer) => this.#take(chunk));
    child.stderr.on('error', (error) => this.onerror?.(error)).pipe(this.#stderr);
    child.once('close', () => {
      running.delete(this);
      this.onclose?.();
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve).on('error', reject);
    });
    running.add(this);
  }

  override send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (stdin === null || stdin === undefined || !stdin.writable) return Promise.reject(new Error('not connected'));
    // Also if it fails: then the process is gone.
    return new Promise((resolve) => void stdin.write(serializeMessage(message), () => resolve()));
  }

  override close(): Promise<void> {
    return (this.#ending ??= this.#end());
  }

  /** Closes stdin, then asks the group to end, then kills it. */
  async #end(): Promise<void> {
    const child = this.#child;
    const { pid } = child ?? {};
    if (child === null || pid === undefined) return;
    const { graceMs = END_GRACE_MS } = this.#options;
    child.stdin?.end();
    if (process.platform === 'win32') this.kill();
    else if (!(await isEmptyAfter(pid, graceMs))) {
      signalGroup(pid, 'SIGTERM');
      if (!(await isEmptyAfter(pid, graceMs))) this.kill();
    }
    // A process that left the group may still hold the pipes.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
  }

  /** Ends it at once. */
  kill(): void {
    const { pid } = this;
    if (pid === null) return;
    if (process.platform === 'win32') spawnSync('taskkill', ['/pid', String(pid), '/t', '/f'], { stdio: 'ignore' });
    else signalGroup(pid, 'SIGKILL');
  }

  #take(chunk: Buffer): void {
    try {
      this.#lines.append(chunk);
      for (let message = this.#lines.readMessage(); message !== null; message = this.#lines.readMessage())
        this.onmessage?.(message);
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error('the server wrote no message'));
      this.close().catch(() => {});
    }
  }
}

// The SDK ends its second process by this method, which is private in its declarations.
Reflect.set(ProcessTree.prototype, '_dispose', function dispose(this: ProcessTree): Promise<void> {
  return this.close();
});

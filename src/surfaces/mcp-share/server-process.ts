/** One process of a wrapped stdio MCP server, for one caller, with the caller's AID in its environment. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { PassThrough, type Stream } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import { onExit } from '../../foundation/child-exit.ts';
import { detach } from '../../foundation/detached.ts';
import type { ProgramEnvironment } from '../../foundation/environment.ts';
import { findProgram, startable } from '../../foundation/programs.ts';
import { answerTo, MessageLines, type OddMessage } from '../mcp/message-reader.ts';
import { lineOf, RPC, type RpcMessage, rpcError } from './messages.ts';

// The transport of a wrapped server's process. Wrappers such as `npx` and `sh -c` start the server as a child
// process, so the process gets its own process group, and the whole group is stopped.

/** Grace period after closing the server's stdin, and again after SIGTERM, in milliseconds. */
const END_GRACE_MS = 2_000;
const POLL_MS = 20;
/** Characters of the output that are kept for an error message. */
const MAX_TEXT_CHARS = 80;

interface TreeOptions {
  readonly command: string;
  readonly args: string[];
  readonly env: Record<string, string>;
  readonly graceMs?: number | undefined;
  readonly log: (text: string) => void;
  readonly output: OutputNotes;
}

/** Notes about the output of a server, also of the process with which the SDK tries it first. */
export interface OutputNotes {
  /** The first characters of its standard output. */
  text: string;
  /** The owner knows that it writes other text to its standard output. */
  isNoisy: boolean;
}

/** Signals a process group. Returns false if it is empty. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}

/** Waits until a process group is empty. Returns false after the timeout. */
async function isEmptyAfter(pid: number, ms: number): Promise<boolean> {
  const giveUpAt = performance.now() + ms;
  while (signalGroup(pid, 0)) {
    if (performance.now() >= giveUpAt) return false;
    await pause(POLL_MS);
  }
  return true;
}

/** Running processes. They must not outlive this process, even if it exits without a signal. */
const running = new Set<ProcessTree>();
process.once('exit', () => {
  for (const tree of running) tree.kill();
});

/**
 * Extends the transport of the SDK. By the class and its `_dispose`, the SDK knows that it may start a second process
 * to find out which revisions the server supports.
 */
class ProcessTree extends StdioClientTransport {
  readonly #options: TreeOptions;
  readonly #lines = new MessageLines({ onOdd: (odd) => this.#odd(odd), skipsText: true });
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

  /** @throws the error of Node for a program that cannot be run */
  override async start(): Promise<void> {
    const { command, args, env } = this.#options;
    const isWindows = process.platform === 'win32';
    // On Windows, programs such as npx are batch files.
    const program = isWindows ? (findProgram(command, env) ?? command) : command;
    const { file, args: words, ...how } = startable([program, ...args], env);
    const child = spawn(file, words, { ...how, env, detached: !isWindows, windowsHide: true });
    this.#child = child;
    const spawned = new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve).on('error', reject);
    });
    // Without free descriptors, Node starts no process and has no streams.
    const streams: Partial<typeof child> = child;
    if (streams.stdin === undefined) return await spawned;
    child.stdin.on('error', (error) => this.onerror?.(error));
    child.stdout.on('error', (error) => this.onerror?.(error)).on('data', (chunk: Buffer) => this.#take(chunk));
    child.stderr.on('error', (error) => this.onerror?.(error)).pipe(this.#stderr);
    onExit(child, () => {
      this.onclose?.();
      // Ends what the server left in its group.
      detach(this.close());
    });
    await spawned;
    running.add(this);
  }

  override send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (stdin === null || stdin === undefined || !stdin.writable) return Promise.reject(new Error('not connected'));
    // Resolves even if the write fails, because the process has exited then.
    return new Promise((resolve) => void stdin.write(lineOf(message), () => resolve()));
  }

  override close(): Promise<void> {
    return (this.#ending ??= this.#end());
  }

  /** Closes stdin, then terminates the group, then kills it. */
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
    // A process that left the group may still have the pipes open.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
    running.delete(this);
  }

  /** Kills it immediately. */
  kill(): void {
    const { pid } = this;
    if (pid === null) return;
    if (process.platform === 'win32') spawnSync('taskkill', ['/pid', String(pid), '/t', '/f'], { stdio: 'ignore' });
    else signalGroup(pid, 'SIGKILL');
  }

  #take(chunk: Buffer): void {
    const { output } = this.#options;
    if (output.text.length < MAX_TEXT_CHARS)
      output.text = `${output.text}${chunk.toString('utf8', 0, MAX_TEXT_CHARS)}`.slice(0, MAX_TEXT_CHARS);
    this.#lines.append(chunk);
    for (let message = this.#lines.readMessage(); message !== null; message = this.#lines.readMessage())
      this.onmessage?.(message);
  }

  /** The side that waits gets an error. Other output, such as a log in JSON, is reported once. */
  #odd(odd: OddMessage): void {
    const { id, kind, why } = odd;
    if (kind === 'response' && (typeof id === 'string' || typeof id === 'number')) {
      const text = `The MCP server sent a response that cannot be passed on. ${why}`;
      return this.onmessage?.(parseJSONRPCMessage(rpcError(id, RPC.serverGone, text)));
    }
    if (kind === 'request') this.#child?.stdin?.write(`${JSON.stringify(answerTo(odd))}\n`);
    const { output, log } = this.#options;
    if (output.isNoisy) return;
    output.isNoisy = true;
    log(
      'svc: The server writes to its standard output what is no MCP message. That is ignored. Let it log to standard error.\n',
    );
  }
}

// The SDK stops its second process with this method, which its declarations mark as private.
Reflect.set(ProcessTree.prototype, '_dispose', function dispose(this: ProcessTree): Promise<void> {
  return this.close();
});

/** The environment variable with the caller's AID. */
const CALLER_VARIABLE = 'SVC_CALLER_AID' satisfies keyof ProgramEnvironment;

/** How to run a wrapped server. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Receives the server's stderr. */
  readonly log: (text: string) => void;
  /** Grace period for stopping, in milliseconds. Default: `END_GRACE_MS`. */
  readonly graceMs?: number | undefined;
}

interface Hooks {
  readonly onMessage: (message: JSONRPCMessage) => void;
  /** Called once when the process has exited. */
  readonly onEnd: () => void;
}

/**
 * The owner's environment without variables of svcd: secrets, and names that a server could mistake for the caller's.
 */
export function serverEnvironment(own: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept = Object.entries(own).filter(([name]) => !/^SVCD?_/i.test(name));
  return Object.fromEntries(kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/**
 * The transport of a server's process, which is not started yet.
 * @param caller null if the server is only inspected
 */
export function stdioTransport(
  what: ServerCommand,
  caller: string | null,
  output: OutputNotes = { text: '', isNoisy: false },
): ProcessTree {
  const { command, args, environment, graceMs, log } = what;
  const env = caller === null ? { ...environment } : { ...environment, [CALLER_VARIABLE]: caller };
  const transport = new ProcessTree({ command, args: [...args], env, graceMs, log, output });
  transport.stderr.on('data', (chunk: Buffer) => log(chunk.toString()));
  return transport;
}

export class ServerProcess {
  readonly #transport: ProcessTree;
  readonly #onEnd: () => void;
  #alive = true;
  #read: Promise<void> = Promise.resolve();

  private constructor(transport: ProcessTree, { onMessage, onEnd }: Hooks) {
    this.#transport = transport;
    this.#onEnd = onEnd;
    // oxlint-disable-next-line prefer-add-event-listener -- a transport of the SDK is no EventTarget
    transport.onmessage = onMessage;
    // oxlint-disable-next-line prefer-add-event-listener -- as above
    transport.onclose = () => this.#gone();
  }

  /** @throws the error of Node for a program that cannot be run */
  static async start(what: ServerCommand, caller: string, hooks: Hooks): Promise<ServerProcess> {
    const transport = stdioTransport(what, caller);
    const started = new ServerProcess(transport, hooks);
    await transport.start();
    return started;
  }

  /** Sends a message. It is dropped if the process has exited, which `onEnd` reports. */
  send(message: RpcMessage): void {
    if (this.#alive) this.#read = this.#transport.send(parseJSONRPCMessage(message)).catch(() => {});
  }

  /** Settles when the process has read all messages so far or has exited. */
  get read(): Promise<void> {
    return this.#read;
  }

  /** Closes stdin, then terminates the process, then kills it. Settles when it has exited. */
  async end(): Promise<void> {
    await this.#transport.close();
    this.#gone();
  }

  #gone(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#onEnd();
  }
}

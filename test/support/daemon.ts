/** A real `svcd` process on loopback with a temporary data directory. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LIMIT_MS } from './eventually.ts';

/** The IPC message of a ready daemon. */
interface ReadyMessage {
  readonly type: 'ready';
  readonly api_addr: string;
  readonly dht_addr: string;
  readonly quic_addr: string;
}

export interface DaemonOptions {
  /** Bootstrap nodes, `host:port`. */
  readonly bootstrap?: readonly string[];
  /** An existing data directory, which is not removed. */
  readonly dataDir?: string;
  /** Lines for config.toml. */
  readonly config?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The program and its first arguments. Default: the `svcd` of this checkout. */
  readonly command?: readonly [string, ...string[]];
}

/** A response of the API. */
export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON, or text. */
  readonly body: unknown;
}

function isReady(message: unknown): message is ReadyMessage {
  return typeof message === 'object' && message !== null && 'type' in message && message.type === 'ready';
}

export class TestDaemon {
  readonly dataDir: string;
  readonly api: string;
  readonly dhtAddress: string;
  readonly quicAddress: string;
  readonly process: ChildProcess;
  readonly #output: string[];
  readonly #ownsDir: boolean;
  /** Resolves after the process exited and its output was read. */
  readonly #closed: Promise<unknown>;

  private constructor(dataDir: string, ownsDir: boolean, child: ChildProcess, ready: ReadyMessage, output: string[]) {
    this.dataDir = dataDir;
    this.#ownsDir = ownsDir;
    this.process = child;
    this.#closed = once(child, 'close');
    this.api = `http://${ready.api_addr}`;
    this.dhtAddress = ready.dht_addr;
    this.quicAddress = ready.quic_addr;
    this.#output = output;
  }

  /** Starts a daemon and waits until it is ready. Fails with its output if it exits first. */
  static async start(options: DaemonOptions = {}): Promise<TestDaemon> {
    const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'svcd-e2e-'));
    if (options.config !== undefined) writeFileSync(join(dataDir, 'config.toml'), options.config, { mode: 0o600 });
    const bootstrap = options.bootstrap?.length ? ['--bootstrap', options.bootstrap.join(',')] : [];
    const fixed = ['--data-dir', dataDir, '--listen', '127.0.0.1:0', '--api-addr', '127.0.0.1:0', '--no-open-browser'];
    const [program, ...first] = options.command ?? [process.execPath, 'bin/svcd'];
    const child = spawn(program, [...first, ...fixed, ...bootstrap, ...(options.args ?? [])], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, SVCD_MDNS: 'false', ...options.env },
    });
    const output: string[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => output.push(text));
    const ready = await new Promise<ReadyMessage>((resolve, reject) => {
      const timer = setTimeout(() => {
        // The child process would keep the test process running.
        child.kill('SIGKILL');
        reject(new Error(`svcd did not start:\n${output.join('')}`));
      }, LIMIT_MS);
      child.on('message', (message) => {
        if (!isReady(message)) return;
        clearTimeout(timer);
        resolve(message);
      });
      // Not on exit, because output may still follow.
      child.once('close', (code, signal) => {
        clearTimeout(timer);
        reject(new Error(`svcd ended with ${code ?? signal}:\n${output.join('')}`));
      });
    });
    return new TestDaemon(dataDir, options.dataDir === undefined, child, ready, output);
  }

  /** The output so far. */
  get output(): string {
    return this.#output.join('');
  }

  async request(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<ApiAnswer> {
    const write = method !== 'GET' && method !== 'HEAD';
    const response = await fetch(this.api + path, {
      method,
      headers: { ...(write ? { 'content-type': 'application/json' } : {}), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = response.headers.get('content-type')?.includes('application/json') === true;
    return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text };
  }

  /** A request that must succeed. @returns its body */
  async call<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.request(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body as T;
  }

  /** Creates and registers an agent. @returns its AID */
  async newAgent(serviceTcp?: string): Promise<string> {
    const { operational_private_key_hex, delegation_proof_hex } = await this.call<Record<string, string>>(
      'POST',
      '/identity/generate',
    );
    const registration = {
      operational_private_key_hex,
      delegation_proof_hex,
      ...(serviceTcp === undefined ? {} : { service_tcp: serviceTcp }),
    };
    return (await this.call<{ aid: string }>('POST', '/agents', registration)).aid;
  }

  /** Kills the process and waits until it exited and its output was read. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill(signal);
    await this.#closed;
    return this.process.exitCode;
  }

  /** Stops the daemon, and removes its data directory unless the test provided it. */
  async stop(): Promise<void> {
    await this.kill('SIGTERM');
    if (this.#ownsDir) rmSync(this.dataDir, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

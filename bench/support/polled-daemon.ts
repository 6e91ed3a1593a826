/** Starts and polls a daemon: svcd, or A2AL's Go daemon. Both take the same flags and requests. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { quietPort } from '../../test/support/programs.ts';

/** Maximum start time, milliseconds. */
const START_LIMIT_MS = 30_000;
/** Milliseconds between two health checks. */
const LOOK_MS = 1;

/** Milliseconds per CPU time tick on Linux. */
const TICK_MS = 10;
const MIB = 1024 * 1024;

/** A program and its first arguments. */
export type Command = readonly [string, ...string[]];

export interface PolledOptions {
  /** `host:port` of the bootstrap nodes. */
  readonly bootstrap?: readonly string[];
  /** An existing data directory. */
  readonly dataDir?: string;
  /** Fixed ports of its API and its records, for restarts. Any port by default. */
  readonly ports?: readonly [number, number];
  /** More lines for config.toml. */
  readonly config?: string;
}

export class PolledDaemon {
  readonly dataDir: string;
  readonly api: string;
  /** Address of its record network, `host:port`. */
  readonly dhtAddress: string;
  readonly process: ChildProcess;
  readonly #ownsDir: boolean;

  private constructor([program, ...first]: Command, options: PolledOptions, ports: readonly [number, number]) {
    this.#ownsDir = options.dataDir === undefined;
    this.dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'a2al-'));
    if (options.config !== undefined) writeFileSync(join(this.dataDir, 'config.toml'), options.config, { mode: 0o600 });
    const [api, dht] = ports.map((port) => `127.0.0.1:${port}`);
    this.api = `http://${api}`;
    this.dhtAddress = String(dht);
    const args = ['--data-dir', this.dataDir, '--api-addr', String(api), '--listen', this.dhtAddress];
    const bootstrap = options.bootstrap?.length ? ['--bootstrap', options.bootstrap.join(',')] : [];
    this.process = spawn(program, [...first, ...args, '--no-open-browser', ...bootstrap], {
      stdio: 'ignore',
      env: { ...process.env, SVCD_MDNS: 'false' },
    });
  }

  /** Starts a daemon and returns once `/health` responds. @throws Error if it exits before that */
  static async start(command: Command, options: PolledOptions = {}): Promise<PolledDaemon> {
    const daemon = new PolledDaemon(command, options, options.ports ?? (await PolledDaemon.anyPorts()));
    const limit = performance.now() + START_LIMIT_MS;
    while (!(await daemon.#answers())) {
      if (daemon.process.exitCode !== null)
        throw new Error(`${command.join(' ')} ended with ${daemon.process.exitCode}`);
      if (performance.now() > limit) throw new Error(`${command.join(' ')} does not answer`);
      await delay(LOOK_MS);
    }
    return daemon;
  }

  /** Free ports. */
  static async anyPorts(): Promise<readonly [number, number]> {
    return [await quietPort(), await quietPort()];
  }

  async #answers(): Promise<boolean> {
    try {
      return (await fetch(`${this.api}/health`)).ok;
    } catch {
      return false;
    }
  }

  /** Sends a request that must succeed and returns its body, with the type that the caller names. */
  async call<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(this.api + path, {
      method,
      headers: method === 'GET' ? {} : { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  /** Creates and registers an agent; returns its AID. */
  async newAgent(serviceTcp?: string): Promise<string> {
    const identity = await this.call<Record<string, string>>('POST', '/identity/generate', {});
    const { operational_private_key_hex, delegation_proof_hex, aid = '' } = identity;
    const service = serviceTcp === undefined ? {} : { service_tcp: serviceTcp };
    await this.call('POST', '/agents', { operational_private_key_hex, delegation_proof_hex, ...service });
    return aid;
  }

  /** CPU time so far, milliseconds (Linux). */
  cpuMs(): number {
    const [, text = ''] = readFileSync(`/proc/${this.process.pid}/stat`, 'utf8').split(') ');
    const ticks = text.split(' ').slice(11, 15).map(Number);
    return ticks.reduce((sum, one) => sum + one, 0) * TICK_MS;
  }

  /** Resident memory, MiB (Linux). */
  residentMib(): number {
    const pages = Number(readFileSync(`/proc/${this.process.pid}/statm`, 'utf8').split(' ')[1]);
    return (pages * 4096) / MIB;
  }

  /** Stops the process. Keeps a data directory that was passed in. */
  async stop(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const exited = once(this.process, 'exit');
      this.process.kill();
      await exited;
    }
    if (this.#ownsDir) rmSync(this.dataDir, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

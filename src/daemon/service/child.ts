/** The daemon as a child process of the supervisor. */

import { type ChildProcess, spawn } from 'node:child_process';
import { Agent, get } from 'node:http';
import type { Clock } from '../../foundation/clock.ts';
import { isReady, isRestart, isSwitch, MANAGED_VARIABLE, STOP_MESSAGE } from './managed.ts';

/** Time limit for stopping before the daemon is killed, in milliseconds. The daemon's own limit is shorter. */
const STOP_LIMIT_MS = 20_000;
/** Timeout of a health check, in milliseconds. */
const PROBE_TIMEOUT_MS = 5_000;

export interface ChildOptions {
  /** The Node executable. */
  readonly node: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

export class DaemonChild {
  /** Resolves with the exit code; 1 if a signal ended it. */
  readonly ended: Promise<number>;
  /** Resolves with the version that the daemon requests; null for a restart of the same version. */
  readonly asked: Promise<string | null>;
  readonly #process: ChildProcess;
  readonly #clock: Clock;
  readonly #ready: Promise<string>;
  #isOver = false;

  constructor({ node, program, args, environment }: ChildOptions, clock: Clock) {
    const child = spawn(node, [program, ...args], {
      env: { ...environment, [MANAGED_VARIABLE]: '1' },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      windowsHide: true,
    });
    this.#process = child;
    this.#clock = clock;
    this.ended = new Promise((resolve) => {
      const end = (code: number | null): void => {
        this.#isOver = true;
        resolve(code ?? 1);
      };
      child.on('error', () => end(1));
      child.once('exit', end);
    });
    const [asked, ready] = [Promise.withResolvers<string | null>(), Promise.withResolvers<string>()];
    child.on('message', (message: unknown) => {
      if (isSwitch(message)) asked.resolve(message.version);
      if (isRestart(message)) asked.resolve(null);
      if (isReady(message)) ready.resolve(message.api_addr);
    });
    this.asked = asked.promise;
    this.#ready = ready.promise;
  }

  /** False after it has exited. */
  get isRunning(): boolean {
    return !this.#isOver;
  }

  /** The address of its API when it is ready; null if it exits before or exceeds `limitMs`. */
  ready(limitMs: number): Promise<string | null> {
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const timer = this.#clock.after(limitMs, () => resolve(null));
    return Promise.race([this.#ready, this.ended.then(() => null), late]).finally(() => timer.cancel());
  }

  /** True if the API responds, even with an authorization error. */
  async answers(address: string): Promise<boolean> {
    try {
      const status = await statusOf(`http://${address}/health`);
      return this.isRunning && (status === 200 || status === 401);
    } catch {
      return false;
    }
  }

  /** Stops it cleanly, or kills it after the time limit. */
  async stop(): Promise<number> {
    const timer = this.#clock.after(STOP_LIMIT_MS, () => this.#process.kill('SIGKILL'));
    if (this.isRunning) {
      // Windows has no signals; `kill` would terminate it immediately.
      if (process.platform === 'win32') this.#process.send(STOP_MESSAGE, () => {});
      else this.#process.kill('SIGTERM');
    }
    const code = await this.ended;
    timer.cancel();
    return code;
  }
}

/** Unlike the global agent, this agent ignores NODE_USE_ENV_PROXY, because the daemon is on this machine. */
const direct = new Agent();

function statusOf(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent: direct, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    }).on('error', reject);
  });
}

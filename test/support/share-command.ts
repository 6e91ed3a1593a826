/** A running `svc mcp share`. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import type { TestDaemon } from './daemon.ts';
import { eventually } from './eventually.ts';

/** Its output after the start. */
export interface SharedServer {
  readonly aid: string;
  readonly tools: string[];
  readonly allowed: string[];
  readonly service_tcp: string;
  readonly default_before?: string;
}

export class ShareCommand {
  readonly #child: ChildProcess;
  #output = '';
  #log = '';

  constructor(daemon: TestDaemon, ...args: readonly string[]) {
    const env = { ...process.env, SVC_API: daemon.api };
    this.#child = spawn(process.execPath, ['bin/svc', '--json', 'mcp', 'share', '--print-master', ...args], { env });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#log += text));
  }

  /** Its stderr so far, including that of the server. */
  get log(): string {
    return this.#log;
  }

  async reported(): Promise<SharedServer> {
    await eventually('it is shared', () => {
      assert.equal(this.#child.exitCode, null, this.#log);
      return this.#output.endsWith('}\n');
    });
    return JSON.parse(this.#output);
  }

  /** Stops it with a signal. @returns its exit code */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode;
    const ended = new Promise<number | null>((resolve) => this.#child.once('exit', resolve));
    this.#child.kill(signal);
    return ended;
  }
}

/** A daemon that is killed and restarted with its data. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type DaemonOptions, TestDaemon } from './daemon.ts';
import { ready } from './network.ts';
import type { Random } from './random.ts';

/** Longest interval between two kills, milliseconds. */
const CALM_MS = 600;

export class Mortal {
  daemon: TestDaemon;
  readonly #options: DaemonOptions;

  private constructor(daemon: TestDaemon, options: DaemonOptions) {
    this.daemon = daemon;
    this.#options = options;
  }

  static async start(bootstrap: string, options: DaemonOptions = {}): Promise<Mortal> {
    const dataDir = mkdtempSync(join(realpathSync(tmpdir()), 'svcd-mortal-'));
    const all = { ...options, dataDir, bootstrap: [bootstrap] };
    const mortal = new Mortal(await TestDaemon.start(all), all);
    await ready(mortal.daemon);
    return mortal;
  }

  async die(): Promise<void> {
    await this.daemon.kill('SIGKILL');
    this.daemon = await TestDaemon.start(this.#options);
  }

  /** Stops the daemon cleanly. Its data stays until `stop`. */
  async rest(): Promise<void> {
    await this.daemon.stop();
  }

  async stop(): Promise<void> {
    await this.daemon.stop();
    rmSync(this.daemon.dataDir, { recursive: true, force: true });
  }

  /** The response to a request. Null if the daemon died or refused. */
  async ask<T>(method: string, path: string, body?: object): Promise<T | null> {
    try {
      return await this.daemon.call<T>(method, path, body);
    } catch {
      return null;
    }
  }

  /** Like `ask`, for a tool. */
  async tool<T = object>(name: string, args: object): Promise<T | null> {
    return this.ask<T>('POST', '/mcp/call', { tool: name, args });
  }

  async publishedAgent(): Promise<string> {
    const aid = await this.daemon.newAgent();
    await this.daemon.call('POST', `/agents/${aid}/publish`);
    return aid;
  }
}

/** Kills the daemons in random order. Resolves after the given number of kills. */
export async function killSome(mortals: readonly Mortal[], kills: number, random: Random): Promise<void> {
  for (let i = 0; i < kills; i++) {
    await delay(random.below(CALM_MS));
    await random.pick(mortals).die();
  }
}

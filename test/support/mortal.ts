/** A daemon that is killed and started again on what it has left. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type DaemonOptions, TestDaemon } from './daemon.ts';
import { ready } from './network.ts';
import type { Random } from './random.ts';

/** Longest time between two kills, milliseconds. */
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

  /** Ends the daemon in order; what it has left stays until `stop`. */
  async rest(): Promise<void> {
    await this.daemon.stop();
  }

  async stop(): Promise<void> {
    await this.daemon.stop();
    rmSync(this.daemon.dataDir, { recursive: true, force: true });
  }

  /** The answer of a request, or null where the daemon died meanwhile or said no. */
  async ask<T>(method: string, path: string, body?: object): Promise<T | null> {
    try {
      return await this.daemon.call<T>(method, path, body);
    } catch {
      return null;
    }
  }

  /** As `ask`, a tool. */
  async tool<T = object>(name: string, args: object): Promise<T | null> {
    return this.ask<T>('POST', '/mcp/call', { tool: name, args });
  }

  async publishedAgent(): Promise<string> {
    const aid = await this.daemon.newAgent();
    await this.daemon.call('POST', `/agents/${aid}/publish`);
    return aid;
  }
}

/** Kills one of these again and again; resolves when it has had enough. */
export async function killSome(mortals: readonly Mortal[], kills: number, random: Random): Promise<void> {
  for (let i = 0; i < kills; i++) {
    await delay(random.below(CALM_MS));
    await random.pick(mortals).die();
  }
}

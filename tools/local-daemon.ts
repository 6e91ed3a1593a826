/** A daemon of this or another checkout on loopback, with its own data directory, for demos and measurements. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

interface LocalDaemonOptions {
  readonly dataDir: string;
  /** The checkout that it runs from. */
  readonly checkout: string;
  /** The Node that it runs on. */
  readonly node: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** The environment without svcd's settings and npm's additions. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SVCD?_|npm_)/i.test(name)));
}

export class LocalDaemon implements AsyncDisposable {
  readonly #process: ChildProcess;
  /** URL of its API. */
  readonly api: string;
  /** Its address in the record network. */
  readonly dht: string;

  private constructor(child: ChildProcess, api: string, dht: string) {
    this.#process = child;
    this.api = api;
    this.dht = dht;
  }

  /** @param known a daemon of the network to join; null for the first daemon */
  static async start(options: LocalDaemonOptions, known: LocalDaemon | null): Promise<LocalDaemon> {
    const { dataDir, checkout, node, env = plainEnvironment() } = options;
    const bootstrap = known === null ? [] : ['--bootstrap', known.dht];
    const addresses = ['--listen', '127.0.0.1:0', '--api-addr', '127.0.0.1:0'];
    const child = spawn(node, ['bin/svcd', '--data-dir', dataDir, ...addresses, '--no-open-browser', ...bootstrap], {
      cwd: checkout,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...env, SVCD_MDNS: 'false', SVCD_LOG_LEVEL: 'warn' },
    });
    const [ready]: { api_addr: string; dht_addr: string }[] = await Promise.race([
      once(child, 'message') as Promise<{ api_addr: string; dht_addr: string }[]>,
      once(child, 'exit').then(() => []),
    ]);
    if (ready === undefined)
      throw new Error(`svcd did not start with the data directory ${dataDir}. Its errors are above.`);
    return new LocalDaemon(child, `http://${ready.api_addr}`, ready.dht_addr);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGTERM');
    await exited;
  }
}

/** A proxy in its own machine, controlled by a test. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Machine } from '../namespaces.ts';
import type { ProxyCommand, ProxyReport, ProxySettings } from './proxy-process.ts';

const PROCESS = fileURLToPath(new URL('proxy-process.ts', import.meta.url));

export class Proxy {
  readonly #child: ChildProcess;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(machine: Machine, settings: ProxySettings): Promise<Proxy> {
    const proxy = new Proxy(machine.fork(PROCESS));
    await proxy.#do({ do: 'start', ...settings });
    return proxy;
  }

  /** One command at a time, because answers do not name their command. */
  async #do(command: ProxyCommand): Promise<ProxyReport> {
    const answered = this.#last.then(async (): Promise<ProxyReport> => {
      const ended = once(this.#child, 'exit').then(() => Promise.reject(new Error('the proxy ended')));
      const answer = once(this.#child, 'message');
      this.#child.send(command);
      const [report]: ProxyReport[] = await Promise.race([answer, ended]);
      if (report === undefined) throw new Error('no answer');
      return report;
    });
    this.#last = answered.catch(() => {});
    return await answered;
  }

  /** Its requests so far, and the certificate of its authority. */
  async report(): Promise<ProxyReport> {
    return await this.#do({ do: 'report' });
  }

  /** Changes the password for new connections. */
  async setCredentials(credentials: string): Promise<void> {
    await this.#do({ do: 'credentials', credentials });
  }

  /** Closes all connections through it. */
  async cut(): Promise<void> {
    await this.#do({ do: 'cut' });
  }

  /** Counts a text in everything that it can read. */
  async watch(text: string): Promise<void> {
    await this.#do({ do: 'watch', text });
  }
}

/** Real daemons on lab machines, controlled by a test. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Exit } from '../../../src/foundation/domain/exit.ts';
import { eventually } from '../eventually.ts';
import type { LabCommand, LabReply } from './daemon-process.ts';
import type { Machine } from './namespaces.ts';

const PROCESS = fileURLToPath(new URL('daemon-process.ts', import.meta.url));

/** The part of `GET /status` that tests use. */
export interface LabStatus {
  readonly network_ready: boolean;
  readonly nat_type: number;
  readonly exit: Exit;
  readonly helpers: readonly string[];
  readonly relayed: { readonly bytes: number };
}

interface LabOptions {
  /** Address of the record network. */
  readonly listen?: string;
  /** An existing data directory. Default: a temporary one. */
  readonly dataDir?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export class LabDaemon implements AsyncDisposable {
  readonly #child: ChildProcess;
  /** Pid of the daemon itself. */
  pid = 0;
  #asked = 0;
  /** Pending commands by number. */
  readonly #waiting = new Map<number, (reply: LabReply) => void>();

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (reply: LabReply) => {
      this.#waiting.get(reply.id ?? 0)?.(reply);
      this.#waiting.delete(reply.id ?? 0);
    });
    child.once('exit', () => {
      for (const answer of this.#waiting.values()) answer({ error: 'the process exited' });
    });
  }

  /**
   * @param config lines of its configuration file
   */
  static async start(
    machine: Machine,
    bootstrap: readonly string[],
    config = '',
    { listen = '0.0.0.0:4121', ...options }: LabOptions = {},
  ): Promise<LabDaemon> {
    const daemon = new LabDaemon(machine.fork(PROCESS));
    const { pid = 0 } = await daemon.#do({ do: 'start', bootstrap, config, listen, ...options });
    daemon.pid = pid;
    return daemon;
  }

  async #do(command: LabCommand): Promise<LabReply> {
    const id = ++this.#asked;
    const answer = new Promise<LabReply>((resolve) => {
      this.#waiting.set(id, resolve);
    });
    this.#child.send({ ...command, id });
    const reply = await answer;
    if (reply.error !== undefined) throw new Error(reply.error);
    return reply;
  }

  /** Sends an API request. */
  async ask(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const { status = 0, body: answer } = await this.#do({ do: 'ask', method, path, body });
    return { status, body: answer };
  }

  /** A request that must succeed. @returns its body @throws Error with the log */
  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.ask(method, path, body);
    if (answer.status < 300) return answer.body as T;
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}\n${await this.output()}`);
  }

  /** Waits for a state of the node. Fails with the last state and the log. */
  async until(what: string, holds: (status: LabStatus) => boolean): Promise<LabStatus> {
    let last: LabStatus | null = null;
    const check = async (): Promise<LabStatus | false> => {
      last = await this.call<LabStatus>('GET', '/status');
      return holds(last) && last;
    };
    return await eventually(what, check).catch(async (cause: unknown) => {
      throw new Error(`${what}: ${JSON.stringify(last)}\n${await this.output()}`, { cause });
    });
  }

  /** Registers a new agent with a service. @returns its AID @param service default: an echo service */
  async register(service?: string): Promise<string> {
    return (await this.#do({ do: 'serve', ...(service === undefined ? {} : { service }) })).text ?? '';
  }

  /** Publishes a new agent with a service. @returns its AID @param service default: an echo service */
  async serve(service?: string): Promise<string> {
    const aid = await this.register(service);
    await this.call('POST', `/agents/${aid}/publish`);
    return aid;
  }

  /** Publishes a new agent that answers calls. @returns its AID */
  async serveWeb(): Promise<string> {
    const { text: aid = '' } = await this.#do({ do: 'serve', echoes: 'requests' });
    await this.call('POST', `/agents/${aid}/publish`);
    return aid;
  }

  async echo(address: string, text: string): Promise<string | undefined> {
    return (await this.#do({ do: 'echo', address, text })).text;
  }

  /** Starts to send bytes to an address on its machine, across all failures. Resolves when the first are echoed. */
  async pump(address: string): Promise<void> {
    await this.#do({ do: 'pump', address });
    await this.flows();
  }

  /** Waits until newly pumped bytes are echoed. */
  async flows(): Promise<{ readonly connections: number; readonly disorder: number }> {
    const { connections = 0, disorder = 0 } = await this.#do({ do: 'flows' });
    return { connections, disorder };
  }

  /** Waits until a new connection to an address on its machine returns bytes. */
  async reaches(address: string): Promise<void> {
    await this.#do({ do: 'reaches', address });
  }

  /** Stops or continues its process, or ends it and waits for its exit. */
  async signal(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#do({ do: 'signal', signal });
  }

  /** Opens a connection to an address on its machine for `say`. */
  async hold(address: string): Promise<void> {
    await this.#do({ do: 'hold', address });
  }

  /** Writes to the held connection and returns the response. */
  async say(text: string): Promise<string | undefined> {
    return (await this.#do({ do: 'say', text })).text;
  }

  /** Sends bytes to an address on its machine, and waits until all were echoed correctly. */
  async pour(address: string, bytes: number): Promise<void> {
    await this.#do({ do: 'pour', address, bytes });
  }

  /** Its output so far. */
  async output(): Promise<string> {
    return (await this.#do({ do: 'output' })).text ?? '';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || !this.#child.connected) return;
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }
}

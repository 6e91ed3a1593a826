/** One process of a wrapped stdio MCP server, for one caller, with the caller's AID in its environment. */
import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import type { RpcMessage } from './messages.ts';
import { ProcessTree } from './process-tree.ts';

/** The environment variable with the caller's AID. */
const CALLER_VARIABLE = 'SVC_CALLER_AID';

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
export function stdioTransport(what: ServerCommand, caller: string | null): ProcessTree {
  const { command, args, environment, graceMs, log } = what;
  const env = caller === null ? { ...environment } : { ...environment, [CALLER_VARIABLE]: caller };
  const transport = new ProcessTree({ command, args: [...args], env, graceMs });
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

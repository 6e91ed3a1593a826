/** One process of a wrapped MCP server that speaks over stdio: for one caller, who it is told of. */
import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import type { RpcMessage } from './messages.ts';
import { ProcessTree } from './process-tree.ts';

/** The variable of its environment that names the caller. */
const CALLER_VARIABLE = 'SVC_CALLER_AID';

/** How a wrapped server is run. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Takes what the server writes to stderr. */
  readonly log: (text: string) => void;
  /** How long it may take to end, milliseconds; `END_GRACE_MS` if it is left out. */
  readonly graceMs?: number | undefined;
}

interface Hooks {
  readonly onMessage: (message: JSONRPCMessage) => void;
  /** The process is gone; called once. */
  readonly onEnd: () => void;
}

/** The environment of the owner without what is for svcd: secrets, and names that a server could take for the caller's. */
export function serverEnvironment(own: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept = Object.entries(own).filter(([name]) => !/^SVCD?_/i.test(name));
  return Object.fromEntries(kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** The transport of a server's process; nothing runs before it is started. @param caller null where it is only looked at */
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

  /** @throws what Node gives for a program that cannot be run */
  static async start(what: ServerCommand, caller: string, hooks: Hooks): Promise<ServerProcess> {
    const transport = stdioTransport(what, caller);
    const started = new ServerProcess(transport, hooks);
    await transport.start();
    return started;
  }

  /** Hands a message over. One for a process that is gone goes nowhere, which `onEnd` has told of. */
  send(message: RpcMessage): void {
    if (this.#alive) this.#read = this.#transport.send(parseJSONRPCMessage(message)).catch(() => {});
  }

  /** Settles when the process has read all messages so far, or never will. */
  get read(): Promise<void> {
    return this.#read;
  }

  /** Closes its stdin, then asks it to end, then ends it; settles when it is gone. */
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

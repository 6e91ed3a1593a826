/** One process of a wrapped MCP server that speaks over stdio: for one caller, who it is told of. */
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import { detach } from '../../foundation/detached.ts';
import { keepLargeIntegers } from './exact-lines.ts';
import { MAX_SHARED_MESSAGE_BYTES } from './limits.ts';
import type { RpcMessage } from './messages.ts';

/** The variable of its environment that names the caller. */
const CALLER_VARIABLE = 'SVC_CALLER_AID';

/** How a wrapped server is run. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Takes what the server writes to stderr. */
  readonly log: (text: string) => void;
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
export function stdioTransport(what: ServerCommand, caller: string | null): StdioClientTransport {
  const transport = keepLargeIntegers(
    new StdioClientTransport({
      command: what.command,
      args: [...what.args],
      env: caller === null ? { ...what.environment } : { ...what.environment, [CALLER_VARIABLE]: caller },
      stderr: 'pipe',
      maxBufferSize: MAX_SHARED_MESSAGE_BYTES,
    }),
  );
  transport.stderr?.on('data', (chunk: Buffer) => what.log(chunk.toString()));
  return transport;
}

export class ServerProcess {
  readonly #transport: StdioClientTransport;
  readonly #onEnd: () => void;
  #alive = true;

  private constructor(transport: StdioClientTransport, { onMessage, onEnd }: Hooks) {
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

  /** Hands a message over; one for a process that is gone goes nowhere, which `onEnd` has told of. */
  send(message: RpcMessage): void {
    if (this.#alive) detach(this.#transport.send(parseJSONRPCMessage(message)).catch(() => {}));
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

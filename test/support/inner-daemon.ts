/** A daemon in the process of the test, on loopback, with a temporary data directory and its own network. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { Daemon } from '../../src/daemon/daemon.ts';

/** Separates it from nodes of other tests. */
const NETWORK = `test-${randomUUID()}`;

export interface InnerDaemonOptions {
  readonly dataDir: string;
  /** The bootstrap node. */
  readonly bootstrap?: string;
  readonly environment?: NodeJS.ProcessEnv;
}

export interface InnerAnswer {
  readonly status: number;
  readonly text: string;
  /** Undefined if the response is not JSON. */
  readonly body: unknown;
}

export class InnerDaemon {
  readonly #daemon: Daemon;

  private constructor(daemon: Daemon) {
    this.#daemon = daemon;
  }

  static async start({ dataDir, bootstrap, environment = {} }: InnerDaemonOptions): Promise<InnerDaemon> {
    const flags = { listen_addr: '127.0.0.1:0' };
    const args = {
      dataDir,
      configFile: join(dataDir, 'config.toml'),
      flags: bootstrap === undefined ? flags : { ...flags, bootstrap },
    };
    const quiet = { SVCD_LOG_LEVEL: 'error', SVCD_MDNS: 'false', SVCD_NETWORK: NETWORK, SVCD_API_ADDR: '127.0.0.1:0' };
    return new InnerDaemon(await Daemon.start(args, { ...quiet, ...environment }));
  }

  get api(): string {
    return `http://${this.#daemon.addresses().api_addr}`;
  }

  get dhtAddress(): string {
    return this.#daemon.addresses().dht_addr;
  }

  /** The operations as MCP tools. */
  get tools(): Daemon['tools'] {
    return this.#daemon.tools;
  }

  /** Sends a request on its own connection, so that none stays open. */
  async ask(method: string, path: string, body?: unknown): Promise<InnerAnswer> {
    const call = request(this.api + path, {
      method,
      agent: false,
      headers: method === 'GET' ? {} : { 'content-type': 'application/json' },
    });
    call.end(body === undefined ? undefined : JSON.stringify(body));
    const [response]: IncomingMessage[] = await once(call, 'response');
    if (response === undefined) throw new Error('no answer');
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    const isJson = response.headers['content-type']?.startsWith('application/json') === true;
    return { status: response.statusCode ?? 0, text, body: isJson ? JSON.parse(text) : undefined };
  }

  /** The body of a response that must be a success. */
  async call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const { status, text, body: answer } = await this.ask(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return Object(answer);
  }

  /** Creates and registers an agent. @returns its AID */
  async newAgent(serviceTcp?: string): Promise<string> {
    const { operational_private_key_hex, delegation_proof_hex } = await this.call('POST', '/identity/generate');
    const service = serviceTcp === undefined ? {} : { service_tcp: serviceTcp };
    const registered = await this.call('POST', '/agents', {
      operational_private_key_hex,
      delegation_proof_hex,
      ...service,
    });
    return String(registered['aid']);
  }

  /** Idempotent. */
  stop(): Promise<void> {
    return this.#daemon.stop('the test is over');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

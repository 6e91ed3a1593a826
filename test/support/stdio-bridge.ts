/** An MCP server over stdio behind an HTTP address, for a judge that only supports HTTP. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

type Message = Record<string, unknown>;

const SESSION_HEADER = 'mcp-session-id';

/** The first request on stdio selects the protocol: this one is of a 2026 client. */
const OPENING = {
  jsonrpc: '2.0',
  method: 'tools/list',
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'bridge', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};

/** The only request allowed before a session of the older protocols. Its response shows that the process is ready. */
const GREETING = { jsonrpc: '2.0', method: 'ping' };

/** A process and its pending requests. */
class StdioServer {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting = new Map<number, (answer: Message) => void>();
  #lastId = 0;

  constructor(args: readonly string[]) {
    this.#child = spawn(process.execPath, args, {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: { ...process.env, SVCD_MDNS: 'false' },
    });
    // A stopped server does not respond, which the judge reports.
    this.#child.stdin.on('error', () => {});
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const answer = JSON.parse(line) as Message;
      const id = Number(answer['id']);
      this.#waiting.get(id)?.(answer);
      this.#waiting.delete(id);
    });
  }

  /** With a unique ID, because judges reuse IDs. */
  async request(message: Message): Promise<Message> {
    const id = ++this.#lastId;
    const answered = new Promise<Message>((resolve) => this.#waiting.set(id, resolve));
    this.notify({ ...message, id });
    return { ...(await answered), id: message['id'] };
  }

  notify(message: Message): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

export class StdioBridge {
  readonly url: string;
  readonly #http: Server;
  readonly #stop: () => Promise<void>;
  /** Starts processes for the next sessions, because judges wait for responses but not for a start. */
  readonly prepare: (sessions: number) => Promise<void>;

  private constructor(http: Server, prepare: (sessions: number) => Promise<void>, stop: () => Promise<void>) {
    const address = http.address();
    if (address === null || typeof address === 'string') throw new Error('the bridge has no port');
    this.url = `http://127.0.0.1:${address.port}/mcp/`;
    this.#http = http;
    this.prepare = prepare;
    this.#stop = stop;
  }

  /** @param args Node arguments for the process of the next session */
  static async start(args: () => readonly string[]): Promise<StdioBridge> {
    const servers = new Map<string, Promise<StdioServer>>();
    const spare: StdioServer[] = [];
    const begin = async (greeting: Message): Promise<StdioServer> => {
      const server = new StdioServer(args());
      await server.request(greeting);
      return server;
    };
    const open = async (session: string): Promise<StdioServer> =>
      session === '' ? await begin(OPENING) : (spare.pop() ?? (await begin(GREETING)));
    /** One session per `initialize`. Requests without a session (2026 protocol) share a process. */
    const serverFor = (session: string): Promise<StdioServer> => {
      const server = servers.get(session) ?? open(session);
      servers.set(session, server);
      return server;
    };
    const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      if (request.method !== 'POST') return void response.writeHead(405).end();
      const message = JSON.parse(Buffer.concat(chunks).toString()) as Message;
      const named = request.headers[SESSION_HEADER];
      const session = message['method'] === 'initialize' ? randomUUID() : typeof named === 'string' ? named : '';
      if (session !== '') response.setHeader(SESSION_HEADER, session);
      const server = await serverFor(session);
      if (message['id'] === undefined) {
        server.notify(message);
        return void response.writeHead(202).end();
      }
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(await server.request(message)));
    };
    const http = createServer((request, response) => {
      serve(request, response).catch(() => response.destroy());
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    const prepare = async (sessions: number): Promise<void> => {
      await serverFor('');
      while (spare.length < sessions) spare.push(await begin(GREETING));
    };
    return new StdioBridge(http, prepare, async () => {
      await Promise.all([...servers.values(), ...spare].map(async (server) => (await server).stop()));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#http.closeAllConnections();
    this.#http.close();
    await this.#stop();
  }
}

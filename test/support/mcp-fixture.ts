/**
 * An MCP server that uses every feature, built with the official SDK: over stdio, or over Streamable HTTP if a port is
 * given. `--legacy` supports only revisions with sessions, `--modern` only revisions without. Over HTTP, `--silent`
 * sends no keep-alives; `/changed` notifies all streams that the tools changed, `/listening` returns the number of
 * sessions with a stream, and `/ping` responds.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import {
  acceptedContent,
  createMcpHandler,
  inputRequired,
  isLegacyRequest,
  localhostAllowedHostnames,
  Server,
  validateHostHeader,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { memberOf } from '../../src/foundation/json.ts';

/** Duration of a step of a tool with progress, milliseconds. */
const STEP_MS = 30;

const OBJECT = { type: 'object' } as const;

const TOOLS = ['echo', 'who', 'count', 'fail', 'hang', 'until', 'ask', 'input', 'sample', 'die', 'big', 'change'].map(
  (name) => ({
    name,
    description: `The tool ${name}.`,
    inputSchema: OBJECT,
  }),
);

function text(value: unknown) {
  return { content: [{ type: 'text' as const, text: typeof value === 'string' ? value : JSON.stringify(value) }] };
}

export function fixture(): Server {
  const capabilities = {
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    prompts: {},
    logging: {},
    completions: {},
  };
  const server = new Server(
    { name: 'fixture', title: 'Fixture', version: '1.0.0' },
    { capabilities, instructions: 'Ask.' },
  );
  server.setRequestHandler('tools/list', () => ({ tools: TOOLS }));
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const { mcpReq } = context;
    const args = params.arguments ?? {};
    const progressToken = memberOf(mcpReq, '_meta', 'progressToken');
    const isAsked = typeof progressToken === 'string' || typeof progressToken === 'number';
    const tell = async (progress: number): Promise<void> => {
      const told = { method: 'notifications/progress', params: { progressToken, progress, total: 3 } } as const;
      if (isAsked) await mcpReq.notify(told);
    };
    switch (params.name) {
      case 'echo':
        return text(args);
      case 'who':
        return text({
          meta: memberOf(params, '_meta') ?? memberOf(mcpReq, '_meta'),
          env: process.env['SVC_CALLER_AID'] ?? null,
        });
      case 'count': {
        const { seen } = args;
        for (const progress of [1, 2, 3]) {
          await tell(progress);
          // The SDK client drops progress in the same chunk as the response, so a test can confirm its arrival.
          const isHeard = (): boolean => !isAsked || typeof seen !== 'string' || existsSync(join(seen, `${progress}`));
          do await pause(STEP_MS);
          while (!isHeard());
        }
        await mcpReq.log('info', 'counted');
        return text('3');
      }
      case 'fail':
        return { ...text('it failed'), isError: true };
      case 'hang':
        process.stderr.write('hanging\n');
        return new Promise((resolve) =>
          mcpReq.signal.addEventListener('abort', () => {
            process.stderr.write('given up\n');
            resolve(text('given up'));
          }),
        );
      case 'ask': {
        const answer = await mcpReq.elicitInput({
          message: 'What is your name?',
          requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
        });
        return text(answer);
      }
      case 'input': {
        const input = acceptedContent(mcpReq.inputResponses, 'name');
        if (input !== undefined) return text(input);
        const requestedSchema = { type: 'object' as const, properties: { name: { type: 'string' as const } } };
        return inputRequired({
          inputRequests: { name: inputRequired.elicit({ message: 'Your name?', requestedSchema }) },
          requestState: 'asked',
        });
      }
      case 'sample': {
        const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'hello' } }];
        return text(await mcpReq.requestSampling({ messages, maxTokens: 10 }));
      }
      case 'until':
        // Lets a test end it, independently of the daemons.
        process.stderr.write('waiting\n');
        await tell(1);
        while (!existsSync(String(args['file']))) await pause(STEP_MS);
        return text('it is there');
      case 'die':
        process.kill(process.pid, 'SIGKILL');
        return text('dead');
      case 'big':
        return text('x'.repeat(Number(args['size'] ?? 0)));
      default:
        await server.sendToolListChanged();
        return text('changed');
    }
  });
  server.setRequestHandler('resources/list', () => ({ resources: [{ uri: 'note:1', name: 'one' }] }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'note:{id}', name: 'notes' }],
  }));
  server.setRequestHandler('resources/read', ({ params }) => ({
    contents: [{ uri: params.uri, text: `the note ${params.uri}` }],
  }));
  server.setRequestHandler('prompts/list', () => ({ prompts: [{ name: 'greet', arguments: [{ name: 'who' }] }] }));
  server.setRequestHandler('prompts/get', ({ params }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Greet ${params.arguments?.['who']}` } }],
  }));
  server.setRequestHandler('completion/complete', () => ({ completion: { values: ['a', 'b'] } }));
  return server;
}

async function serveHttp(port: number, isSilent: boolean): Promise<void> {
  const quiet = isSilent ? { keepAliveMs: 0 } : {};
  const modern = createMcpHandler(fixture, { legacy: 'reject', ...quiet });
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const servers = new Set<Server>();
  let listening = 0;
  const legacy = async (request: Request, parsedBody: unknown): Promise<Response> => {
    const known = sessions.get(request.headers.get('mcp-session-id') ?? '');
    if (known !== undefined) return known.handleRequest(request, { parsedBody });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
      ...quiet,
    });
    const server = fixture();
    servers.add(server);
    await server.connect(transport);
    return transport.handleRequest(request, { parsedBody });
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const isLocal = validateHostHeader(request.headers.host, localhostAllowedHostnames()).ok;
    if (!isLocal) return void response.writeHead(403).end();
    const body = Buffer.concat(await request.toArray());
    if (request.url === '/ping') return void response.writeHead(204).end();
    if (request.url === '/listening') return void response.end(String(listening));
    if (request.url === '/changed') {
      modern.notify.toolsChanged();
      await Promise.all([...servers].map((server) => server.sendToolListChanged()));
      return void response.writeHead(204).end();
    }
    const web = new Request(`http://localhost${request.url}`, {
      method: request.method ?? 'GET',
      headers: Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
      ...(request.method === 'POST' ? { body } : {}),
    });
    const parsedBody: unknown = body.length === 0 ? undefined : JSON.parse(body.toString());
    const isLegacy = await isLegacyRequest(web, parsedBody);
    const answer = isLegacy ? await legacy(web, parsedBody) : await modern.fetch(web, { parsedBody });
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders();
    if (isLegacy && request.method === 'GET' && answer.ok) {
      listening++;
      response.once('close', () => listening--);
    }
    if (answer.body === null) return void response.end();
    const stream = Readable.fromWeb(answer.body);
    stream.on('error', () => response.destroy());
    response.once('close', () => stream.destroy());
    stream.pipe(response);
  };
  createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  }).listen(port, '127.0.0.1');
}

if (import.meta.main) {
  const args = new Set(process.argv.slice(2));
  const port = Number(process.argv[2]);
  if (port > 0) await serveHttp(port, args.has('--silent'));
  else if (args.has('--legacy')) await fixture().connect(new StdioServerTransport());
  else serveStdio(fixture, args.has('--modern') ? { legacy: 'reject' } : {});
}

/** An MCP server with one tool, built with the official SDK, on the given port. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { detach } from '../../src/foundation/detached.ts';

const handler = createMcpHandler(() => {
  const server = new Server({ name: 'notes', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({
    tools: [{ name: 'look_up', description: 'Looks something up in my notes.', inputSchema: { type: 'object' } }],
  }));
  server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text', text: 'nothing about it' }] }));
  return server;
});

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = await request.toArray();
  const answer = await handler.fetch(
    new Request(`http://localhost${request.url}`, {
      method: request.method ?? 'POST',
      headers: Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      ...(request.method === 'POST' ? { body: Buffer.concat(chunks) } : {}),
    }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) response.end();
  else Readable.fromWeb(answer.body).pipe(response);
}

createServer((request, response) => detach(serve(request, response))).listen(Number(process.argv[2]), '127.0.0.1');

/**
 * A child process: a web service. `POST /` answers a small call. `GET /events` opens an event stream and stays silent.
 * `GET /bytes` returns the number of bytes in its query with a known length, `/chunks` in chunks. `PUT` discards its
 * body. Sends its port over IPC.
 */
import { createServer, type RequestListener, type ServerResponse } from 'node:http';

const CHUNK = Buffer.alloc(64 * 1024, 'x');
const ANSWER = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { parts: [{ text: 'x'.repeat(150) }] } });

function give(response: ServerResponse, bytes: number): void {
  let left = bytes;
  const more = (): void => {
    while (left > 0) {
      const size = Math.min(left, CHUNK.length);
      left -= size;
      if (!response.write(size === CHUNK.length ? CHUNK : CHUNK.subarray(0, size)))
        return void response.once('drain', more);
    }
    response.end();
  };
  more();
}

const serve: RequestListener = (request, response) => {
  const { pathname, search } = new URL(request.url ?? '/', 'http://service.invalid');
  request.resume();
  if (pathname === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"state":"working"}\n\n');
    return;
  }
  const bytes = Number(search.slice(1));
  if (pathname === '/bytes') return give(response.writeHead(200, { 'content-length': bytes }), bytes);
  if (pathname === '/chunks') return give(response.writeHead(200), bytes);
  request.once('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER));
};

const server = createServer({ noDelay: true, requestTimeout: 0 }, serve);
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', 4096, () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.send?.({ port: address.port });
});
process.on('disconnect', () => process.exit(0));

/** A child process of the benchmarks: a plain web service, or a plain proxy with one hop. Sends its port over IPC. */
import { Agent, createServer, request as httpRequest, type RequestListener } from 'node:http';

const BODY = JSON.stringify({ answer: 'x'.repeat(200) });
/** Longer responses, by path. */
const LONG: Readonly<Record<string, Buffer>> = {
  '/1KB': Buffer.alloc(1024, 'x'),
  '/1MB': Buffer.alloc(1024 * 1024, 'x'),
};

const service: RequestListener = (request, response) => {
  request.resume();
  response.setHeader('content-type', 'application/json');
  response.end(LONG[request.url ?? ''] ?? BODY);
};

/** Forwards to the port in the first argument, over keep-alive connections. */
function proxy(port: number): RequestListener {
  const agent = new Agent({ keepAlive: true });
  return (request, response) => {
    const { method = 'GET', url = '/', headers } = request;
    const upstream = httpRequest({ host: '127.0.0.1', port, method, path: url, headers, agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(upstream);
  };
}

const target = Number(process.argv[2] ?? 0);
const server = createServer(target === 0 ? service : proxy(target));
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.send?.({ port: address.port });
});
process.on('disconnect', () => process.exit(0));

import assert from 'node:assert/strict';
import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import {
  ConnectionLimit,
  MAX_LOCAL_CONNECTIONS,
  MAX_LOCAL_WAITING,
  MAX_PIPELINED,
  MAX_REMOTE_CONNECTIONS,
  MAX_REMOTE_CONNECTIONS_PER_ADDRESS,
} from '../../../src/surfaces/rest/connections.ts';
import { createHttpServer, type RequestHandler } from '../../../src/surfaces/rest/listener.ts';
import { speak } from './support.ts';

async function listen(t: TestContext, handler: RequestHandler, headTimeoutMs = 10_000): Promise<number> {
  const server: Server = createHttpServer(handler, { headTimeoutMs, timeoutCheckMs: 10 });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const ok: RequestHandler = (_request, response) => void response.end('ok');

test('a slow request head times out with an error response', async (t) => {
  const port = await listen(t, ok, 50);
  const answer = await speak('127.0.0.1', port, 'GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
  assert.match(answer, /^HTTP\/1\.1 408 /);
  assert.match(answer, /"error":"timeout"/);
});

test('an oversized head and invalid HTTP get an error response in the usual form', async (t) => {
  const port = await listen(t, ok);
  const large = await speak('127.0.0.1', port, `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
  assert.match(large, /^HTTP\/1\.1 431 [\s\S]*"error":"too_large"/);
  const noHttp = await speak('127.0.0.1', port, '\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n');
  assert.match(noHttp, /^HTTP\/1\.1 400 [\s\S]*"error":"invalid_request"/);
  const noHost = await speak('127.0.0.1', port, 'GET / HTTP/1.1\r\n\r\n');
  assert.match(noHost, /^HTTP\/1\.1 400 /);
  const smuggled =
    'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
  assert.match(await speak('127.0.0.1', port, smuggled), /^HTTP\/1\.1 400 /);
});

test('cookies of other ports of this machine are cleared if they make a head too large', async (t) => {
  const port = await listen(t, ok);
  const cookies = Array.from({ length: 180 }, (_, i) => `x.${i}=${'c'.repeat(4000)}`).join('; ');
  const head = 'Host: 127.0.0.1\r\nSec-Fetch-Dest: document\r\n';
  const refused = await speak('127.0.0.1', port, `GET / HTTP/1.1\r\n${head}Cookie: ${cookies}\r\n\r\n`);
  assert.match(refused, /^HTTP\/1\.1 431 [\s\S]*\r\nClear-Site-Data: "cookies"\r\n[\s\S]*Reload the page/);
  // Headers that pages of other sites control clear nothing.
  for (const other of [
    `GET /?${'x'.repeat(20_000)} HTTP/1.1\r\n${head}Cookie: a=b\r\n\r\n`,
    `GET / HTTP/1.1\r\n${head}X: ${'x'.repeat(20_000)}\r\n\r\n`,
  ])
    assert.doesNotMatch(await speak('127.0.0.1', port, other), /clear-site-data/i);
});

test('garbage after a request does not affect its response', async (t) => {
  const port = await listen(t, (_request, response) => {
    response.writeHead(200, { 'content-length': 6 });
    response.write('abc');
    setImmediate(() => response.end('def'));
  });
  const answer = await speak('127.0.0.1', port, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n\x00junk\r\n\r\n');
  assert.ok(!answer.includes('invalid_request'), answer);
});

test('CONNECT is not served', async (t) => {
  const port = await listen(t, ok);
  assert.equal(await speak('127.0.0.1', port, 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n'), '');
});

test('an unexpected upgrade header is ignored', async (t) => {
  const port = await listen(t, ok);
  const head = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n';
  assert.match(await speak('127.0.0.1', port, head), /^HTTP\/1\.1 200 /);
});

test('an idle connection serves several requests', async (t) => {
  const port = await listen(t, ok);
  const answer = await new Promise<string>((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\n'));
    socket.on('data', (chunk) => {
      const first = text === '';
      text += chunk.toString();
      if (first) socket.write('GET /2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
  });
  assert.equal(answer.match(/HTTP\/1\.1 200/g)?.length, 2);
});

function socketFrom(address: string): Socket {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: address });
  return socket;
}

async function close(socket: Socket): Promise<void> {
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.destroy();
  await closed;
}

/** A request on a connection. With `bodyBytes`, its body is incomplete. */
function ask(limit: ConnectionLimit, socket: Socket, bodyBytes = 0): [IncomingMessage, ServerResponse] {
  const request = new IncomingMessage(socket);
  if (bodyBytes > 0) request.headers['content-length'] = String(bodyBytes);
  const response = new ServerResponse(request);
  assert.ok(limit.asked(request, response));
  return [request, response];
}

test('one stranger gets few connections, and all strangers leave room for local programs', async () => {
  const limit = new ConnectionLimit();
  const take = (address: string): Socket => {
    const socket = socketFrom(address);
    limit.take(socket);
    ask(limit, socket);
    return socket;
  };
  const first = Array.from({ length: MAX_REMOTE_CONNECTIONS_PER_ADDRESS }, () => take('198.51.100.1'));
  assert.ok(first.every((socket) => !socket.destroyed));
  assert.ok(take('198.51.100.1').destroyed);
  assert.ok(!take('198.51.100.2').destroyed);
  const [one] = first;
  assert.ok(one);
  await close(one);
  assert.ok(!take('198.51.100.1').destroyed);
  for (let i = limit.open; i < MAX_REMOTE_CONNECTIONS; i++) assert.ok(!take(`203.0.113.${i}`).destroyed);
  assert.ok(take('192.0.2.1').destroyed);
  assert.ok(!take('127.0.0.1').destroyed);
  assert.equal(limit.open, MAX_REMOTE_CONNECTIONS + 1);
});

test('local programs have a separate limit', () => {
  const limit = new ConnectionLimit();
  const take = (): Socket => {
    const socket = socketFrom('127.0.0.1');
    limit.take(socket);
    ask(limit, socket);
    return socket;
  };
  for (let i = 0; i < MAX_LOCAL_CONNECTIONS; i++) take();
  assert.ok(take().destroyed);
});

test('the IPv6 network of one subscriber counts as one stranger', () => {
  const limit = new ConnectionLimit();
  const take = (address: string): Socket => {
    const socket = socketFrom(address);
    limit.take(socket);
    ask(limit, socket);
    return socket;
  };
  for (let i = 0; i < MAX_REMOTE_CONNECTIONS_PER_ADDRESS; i++) assert.ok(!take(`2001:db8::${i}`).destroyed);
  assert.ok(take('2001:db8::ffff:1').destroyed);
  assert.ok(!take('2001:db8:0:1::1').destroyed);
});

test('the connection that has waited longest for a complete request is evicted, never one being served', () => {
  const limit = new ConnectionLimit();
  const take = (): Socket => {
    const socket = socketFrom('127.0.0.1');
    limit.take(socket);
    return socket;
  };
  const [served, sent, silent, sending, answered] = [take(), take(), take(), take(), take()];
  ask(limit, served);
  ask(limit, sent, 10)[0].emit('end');
  ask(limit, sending, 10);
  const [, response] = ask(limit, answered);
  const rest = Array.from({ length: MAX_LOCAL_CONNECTIONS - 5 }, () => {
    const socket = take();
    ask(limit, socket);
    return socket;
  });
  response.emit('close');
  const gone = (): boolean[] => [silent, sending, answered, sent, served].map((socket) => socket.destroyed);
  const come = (): void => void ask(limit, take());
  come();
  assert.deepEqual(gone(), [true, false, false, false, false]);
  come();
  assert.deepEqual(gone(), [true, true, false, false, false]);
  come();
  assert.deepEqual(gone(), [true, true, true, false, false]);
  assert.ok(take().destroyed);
  assert.deepEqual(gone(), [true, true, true, false, false]);
  assert.ok(rest.every((socket) => !socket.destroyed));
  assert.equal(limit.open, MAX_LOCAL_CONNECTIONS);
});

test('local programs have a limit on connections without a request', () => {
  const limit = new ConnectionLimit();
  const sockets = Array.from({ length: MAX_LOCAL_WAITING + 1 }, () => {
    const socket = socketFrom('127.0.0.1');
    limit.take(socket);
    return socket;
  });
  assert.deepEqual(
    sockets.flatMap((socket, i) => (socket.destroyed ? [i] : [])),
    [0],
  );
});

test('a connection that was served before is evicted later', () => {
  const limit = new ConnectionLimit();
  const take = (): Socket => {
    const socket = socketFrom('127.0.0.1');
    limit.take(socket);
    return socket;
  };
  const kept = take();
  ask(limit, kept)[1].emit('close');
  for (let i = 0; i < 3 * MAX_LOCAL_WAITING; i++) take();
  assert.equal(kept.destroyed, false);
});

test('strangers are evicted by their own address first, then by idle time', () => {
  const limit = new ConnectionLimit();
  const take = (address: string): Socket => {
    const socket = socketFrom(address);
    limit.take(socket);
    return socket;
  };
  const local = take('127.0.0.1');
  const other = take('203.0.113.1');
  const own = Array.from({ length: MAX_REMOTE_CONNECTIONS_PER_ADDRESS }, () => take('198.51.100.1'));
  take('198.51.100.1');
  assert.deepEqual([other.destroyed, own[0]?.destroyed, own[1]?.destroyed], [false, true, false]);
  for (let i = 0; !other.destroyed; i++) {
    assert.ok(i < MAX_REMOTE_CONNECTIONS);
    take(`192.0.2.${i}`);
  }
  assert.equal(own[1]?.destroyed, false);
  assert.equal(local.destroyed, false);
});

test('a WebSocket counts as being served until it closes', () => {
  const limit = new ConnectionLimit();
  const socket = socketFrom('127.0.0.1');
  limit.take(socket);
  const [, response] = ask(limit, socket);
  response.statusCode = 101;
  response.emit('close');
  for (let i = 0; i <= MAX_LOCAL_CONNECTIONS; i++) limit.take(socketFrom('127.0.0.1'));
  assert.equal(socket.destroyed, false);
});

test('a connection has a limit on pipelined requests', () => {
  const limit = new ConnectionLimit();
  const socket = socketFrom('127.0.0.1');
  limit.take(socket);
  const asked = Array.from({ length: MAX_PIPELINED }, () => ask(limit, socket));
  const late = new IncomingMessage(socket);
  assert.equal(limit.asked(late, new ServerResponse(late)), false);
  asked[0]?.[1].emit('close');
  ask(limit, socket);
});

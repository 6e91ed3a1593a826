/** The proof of the caller that a bound service receives, and protection from services that misread requests. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { callerProof } from '../../../src/capabilities/calls/caller-proof.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { callWorld, PROOF_KEY, textOf, webService } from '../../support/call-world.ts';
import { TestClock } from '../../support/test-clock.ts';

/** A raw TCP service. `answer` receives the data of a connection so far and its socket. */
async function rawService(t: TestContext, answer: (text: string, socket: Socket) => void) {
  const connections: { text: string }[] = [];
  const server = createServer((socket) => {
    const connection = { text: '' };
    connections.push(connection);
    socket
      .on('error', () => {})
      .on('data', (data: Buffer) => {
        connection.text += data.toString('latin1');
        answer(connection.text, socket);
      });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return {
    connections,
    bound: { scheme: 'http', host: '127.0.0.1', port, acceptsCalls: true, verifyCertificate: true } as const,
  };
}

test('a call carries a proof of the caller and the request that no caller can forge', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  const seen: IncomingHttpHeaders[] = [];
  const service = await webService(t, (request, response) => {
    seen.push(request.headers);
    response.end();
  });
  world.bound.set(world.remote, service.bound);
  const forged = callerProof(new Uint8Array(32), {
    caller: world.remote,
    called: world.remote,
    method: 'GET',
    target: '/a?b',
    at: unixSeconds(clock),
  });
  for (const name of ['Svc-Caller-Proof', 'svc_caller_proof'])
    await textOf(await world.call({ method: 'POST', path: '/a?b', headers: [name, forged] }));
  for (const headers of seen) {
    const text = ['v1', unixSeconds(clock), world.local, world.remote, 'POST', '/a?b'].join('\n');
    const mac = createHmac('sha256', PROOF_KEY).update(text).digest('hex');
    assert.equal(headers['svc-caller-proof'], `t=${unixSeconds(clock)},v1=${mac}`);
    assert.equal(headers['svc_caller_proof'], undefined);
  }
  assert.equal(seen.length, 2);
});

test('an invalid status text is removed, and the response arrives', async (t) => {
  const world = await callWorld(t);
  const service = await rawService(t, (_text, socket) =>
    socket.end('HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi', 'latin1'),
  );
  world.bound.set(world.remote, service.bound);
  const answer = await world.call();
  assert.deepEqual([answer.status, answer.statusText, await textOf(answer)], [200, '', 'hi']);
  const plain = await world.caller.upgrade(
    world.local,
    world.remote,
    { method: 'GET', path: '/', headers: [], body: null },
    ['websocket'],
  );
  assert.deepEqual([plain.status, plain.statusText], [200, 'OK']);
});

test('a connection is closed after a body that the service may not have read', async (t) => {
  const world = await callWorld(t);
  // Reads heads only, as many servers do for GET. The body then looks like the next request.
  const service = await rawService(t, (text, socket) => {
    const heads = text.split('\r\n\r\n').slice(0, -1);
    if (heads.length === 0) return;
    const closes = /^connection: close$/im.test(heads[0] ?? '');
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    if (closes) socket.end();
  });
  world.bound.set(world.remote, service.bound);
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'DELETE']) {
    await textOf(await world.call({ method, path: '/with', body: Buffer.from('body') }));
    await textOf(await world.call({ path: '/after' }));
  }
  const last = service.connections.map(({ text }) => text.slice(text.lastIndexOf(' /')));
  assert.equal(last.filter((text) => /^ \/with .*^connection: close\r\n\r\nbody$/ims.test(text)).length, 4);
  for (const { text } of service.connections) assert.doesNotMatch(text, /\/with.*\/after/s);
});

test('a service that responds before it has read the body gets no further request on that connection', async (t) => {
  const world = await callWorld(t);
  // The response starts after the request head and ends after the body, so the connection could be reused.
  const service = await rawService(t, (text, socket) => {
    if (text.endsWith('\r\n\r\n')) socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 1\r\n\r\n');
    if (text.includes('second') || text.includes('/after')) socket.write('x');
  });
  world.bound.set(world.remote, service.bound);
  const body = new PassThrough();
  const answer = await world.call({ method: 'POST', path: '/early', body });
  assert.equal(answer.status, 413);
  body.end('second');
  assert.equal(await textOf(answer), 'x');
  await textOf(await world.call({ path: '/after' }));
  assert.ok(service.connections.every(({ text }) => !(text.includes('/early') && text.includes('/after'))));
});

test('callers never share a connection to a service', async (t) => {
  const world = await callWorld(t);
  const ports: (number | undefined)[] = [];
  const service = await webService(t, (request, response) => {
    ports.push(request.socket.remotePort);
    response.end();
  });
  world.bound.set(world.remote, service.bound);
  const other = world.near.host();
  const request = { method: 'GET', path: '/', headers: [], body: null };
  for (const caller of [world.local, other.aid, world.local, other.aid])
    await textOf(await world.caller.request(caller, world.remote, request));
  assert.equal(ports[0], ports[2]);
  assert.equal(ports[1], ports[3]);
  assert.notEqual(ports[0], ports[1]);
});

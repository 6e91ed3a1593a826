/** A program that took over the port of a service learns nothing about calls. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type RequestListener, request } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { serviceProof } from '../../../src/foundation/service-proof.ts';
import { answerChallenge } from '../../../src/surfaces/proven-caller.ts';
import { callWorld, PROOF_KEY, textOf, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { TestClock } from '../../support/test-clock.ts';

const CHALLENGE = /^OPTIONS \* HTTP\/1\.1\r\nHost: localhost\r\nSvc-Service-Challenge: ([0-9a-f]{64})\r\n\r\n$/;

/** A program with a key, and its requests other than challenges. */
async function program(t: TestContext, key: Uint8Array, serve?: RequestListener) {
  const asked: string[] = [];
  const service = await webService(t, (incoming, outgoing) => {
    if (answerChallenge(incoming, outgoing, key)) return;
    asked.push(`${incoming.method} ${incoming.url}`);
    if (serve === undefined) outgoing.end(`served ${incoming.url}`);
    else serve(incoming, outgoing);
  });
  return { ...service, asked, bound: { ...service.bound, provesItself: true } };
}

/** A raw service that runs `answer` on each connection, and the data that it received. */
async function impostor(t: TestContext, answer: (socket: Socket, heard: string) => void) {
  const heard: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.on('data', (chunk: Buffer) => {
      heard.push(chunk.toString('latin1'));
      answer(socket, chunk.toString('latin1'));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const bound = { scheme: 'http', host: '127.0.0.1', port, acceptsCalls: true, verifyCertificate: true } as const;
  return { heard, bound: { ...bound, provesItself: true } };
}

test('a program that proves its identity gets the calls over one connection', async (t) => {
  const world = await callWorld(t);
  const { bound, asked, connections } = await program(t, PROOF_KEY);
  world.bound.set(world.remote, bound);
  for (const path of ['/a', '/b']) assert.equal(await textOf(await world.call({ path })), `served ${path}`);
  const body = Buffer.alloc(100_000, 'x');
  const headers = ['Content-Length', `${body.length}`];
  assert.equal(await textOf(await world.call({ method: 'POST', path: '/c', headers, body })), 'served /c');
  assert.deepEqual(asked, ['GET /a', 'GET /b', 'POST /c']);
  assert.equal(connections.size, 1);
});

test('a program with another key or none receives only a challenge', async (t) => {
  const world = await callWorld(t);
  const other = await program(t, new Uint8Array(32));
  world.bound.set(world.remote, other.bound);
  await assert.rejects(world.call({ method: 'POST', path: '/secret' }), { code: 'inbound_unreachable' });
  assert.deepEqual(other.asked, []);

  const proofOf = (heard: string, port: number): string =>
    serviceProof(PROOF_KEY, CHALLENGE.exec(heard)?.[1] ?? '', port);
  const answers: Record<string, (socket: Socket, heard: string, port: number) => void> = {
    'a normal web server': (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'),
    'a page': (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
    'its own challenge': (socket, heard) =>
      socket.write(`HTTP/1.1 204 No Content\r\nSvc-Service-Proof: v1=${CHALLENGE.exec(heard)?.[1]}\r\n\r\n`),
    'the proof of another port': (socket, heard, port) =>
      socket.write(`HTTP/1.1 204 No Content\r\nSvc-Service-Proof: ${proofOf(heard, port + 1)}\r\n\r\n`),
    'data after the proof': (socket, heard, port) =>
      socket.write(`HTTP/1.1 204 No Content\r\nSvc-Service-Proof: ${proofOf(heard, port)}\r\n\r\nHTTP/1.1 200 OK\r\n`),
    'an endless head': (socket) => socket.write(`HTTP/1.1 204 No Content\r\nA: ${'a'.repeat(5000)}`),
    'good bye': (socket) => socket.end(),
    'a reset': (socket) => socket.resetAndDestroy(),
  };
  for (const [what, answer] of Object.entries(answers)) {
    const taken = await impostor(t, (socket, heard) => answer(socket, heard, taken.bound.port));
    world.bound.set(world.remote, taken.bound);
    await assert.rejects(world.call({ path: '/secret' }), { code: 'inbound_unreachable' }, what);
    assert.equal(taken.heard.length, 1, what);
    assert.match(taken.heard[0] ?? '', CHALLENGE, what);
  }
  // A correct proof, written by hand: the proof is sufficient.
  const right = await impostor(t, (socket, heard) =>
    CHALLENGE.test(heard)
      ? socket.write(`HTTP/1.1 204 No Content\r\nSvc-Service-Proof: ${proofOf(heard, right.bound.port)}\r\n\r\n`)
      : socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
  );
  world.bound.set(world.remote, right.bound);
  assert.equal(await textOf(await world.call()), 'ok');
});

test('a silent program times out, and its connection is closed', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  let closed = false;
  const silent = await impostor(t, (socket) => void socket.once('close', () => (closed = true)));
  world.bound.set(world.remote, silent.bound);
  const failed = assert.rejects(world.call(), { code: 'inbound_unreachable' });
  await eventually('the challenge', () => silent.heard.length === 1);
  clock.advance(10_000);
  await failed;
  await eventually('the connection is closed', () => closed);
});

test('a program gives no proof for a malformed challenge', async (t) => {
  const { bound, asked } = await program(t, PROOF_KEY);
  const status = await new Promise((resolve, reject) => {
    const headers = { 'svc-service-challenge': '00' };
    request({ port: bound.port, headers }, (answer) => resolve([answer.statusCode, answer.resume().headers]))
      .on('error', reject)
      .end();
  });
  assert.ok(Array.isArray(status));
  assert.equal(status[0], 400);
  assert.equal(Reflect.get(Object(status[1]), 'svc-service-proof'), undefined);
  assert.deepEqual(asked, []);
});

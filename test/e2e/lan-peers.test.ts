/** Two nodes on one machine move their links to TCP without losing a byte. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { dial, endOf, TcpServer } from '../support/tcp.ts';

const MOVED_TO_TCP = 'new links to a LAN peer use TCP';
const MIB = 1024 * 1024;
const DEBUG = { env: { SVCD_LOG_LEVEL: 'debug' } };

/** Another daemon; both nodes know each other. */
async function startPeer(near: TestDaemon, env: Record<string, string> = {}): Promise<TestDaemon> {
  const far = await TestDaemon.start({ env: { ...DEBUG.env, ...env }, bootstrap: [near.dhtAddress] });
  await Promise.all([ready(near), ready(far)]);
  return far;
}

/** Sends bytes through a connection to an echo service, and returns the hash of the echo. */
async function echoed(client: Socket, data: Buffer): Promise<string> {
  const hash = createHash('sha256');
  let left = data.length;
  const { promise, resolve } = Promise.withResolvers<void>();
  const onData = (chunk: Buffer): void => {
    hash.update(chunk);
    left -= chunk.length;
    if (left <= 0) resolve();
  };
  client.on('data', onData);
  client.write(data);
  await promise;
  client.off('data', onData);
  return hash.digest('hex');
}

const hashOf = (data: Buffer): string => createHash('sha256').update(data).digest('hex');

test('a tunnel moves to TCP in the middle of a transfer, and calls move too', async () => {
  await using echo = await TcpServer.start((socket) => void socket.pipe(socket));
  await using near = await TestDaemon.start(DEBUG);
  await using far = await startPeer(near);
  await using web = await EchoService.start();
  const aid = await far.newAgent(`127.0.0.1:${echo.port}`);
  await far.call('POST', `/agents/${aid}/publish`);
  const { listen } = await near.call<{ listen: string }>('POST', `/tunnel/${aid}`);
  // It starts over QUIC, and is in use when the TCP connection is ready.
  const first = await dial(listen);
  const data = randomBytes(4 * MIB);
  while (!near.output.includes(MOVED_TO_TCP)) assert.equal(await echoed(first, data), hashOf(data));
  assert.equal(await echoed(first, data), hashOf(data));
  const clients = await Promise.all(Array.from({ length: 20 }, () => dial(listen)));
  const pieces = clients.map(() => randomBytes(MIB));
  const answers = await Promise.all(clients.map((client, i) => echoed(client, pieces[i] ?? Buffer.alloc(0))));
  assert.deepEqual(answers, pieces.map(hashOf));
  for (const client of [first, ...clients]) {
    client.end();
    assert.equal(await endOf(client), 'end');
  }
  const called = await far.newAgent(web.address);
  await far.call('POST', `/agents/${called}/publish`);
  for (let i = 0; i < 5; i++) {
    const answer = await near.request('POST', `/aid/${called}/${i}`, { text: 'x'.repeat(100_000) });
    assert.equal(answer.status, 200);
    const { method, url, body } = answer.body as { method: string; url: string; body: string };
    assert.deepEqual([method, url, body.length], ['POST', `/${i}`, 100_011]);
  }
});

test('a process killed there resets its clients', async () => {
  await using near = await TestDaemon.start(DEBUG);
  await using far = await startPeer(near);
  await using echo = await TcpServer.start((socket) => void socket.pipe(socket));
  const called = await far.newAgent(`127.0.0.1:${echo.port}`);
  await far.call('POST', `/agents/${called}/publish`);
  const { listen } = await near.call<{ listen: string }>('POST', `/tunnel/${called}`);
  const client = await dial(listen);
  while (!near.output.includes(MOVED_TO_TCP)) await echoed(client, randomBytes(64));
  const late = await dial(listen);
  await echoed(late, randomBytes(64));
  const ended = Promise.all([client, late].map(endOf));
  await far.kill();
  assert.deepEqual(await ended, ['ECONNRESET', 'ECONNRESET']);
});

test('a node with LAN TCP disabled stays on QUIC when a peer offers TCP', async () => {
  await using near = await TestDaemon.start(DEBUG);
  await using far = await startPeer(near, { SVCD_LAN_TCP: 'false' });
  await using echo = await TcpServer.start((socket) => void socket.pipe(socket));
  const aid = await far.newAgent(`127.0.0.1:${echo.port}`);
  await far.call('POST', `/agents/${aid}/publish`);
  const { listen } = await near.call<{ listen: string }>('POST', `/tunnel/${aid}`);
  for (let i = 0; i < 5; i++) {
    const client = await dial(listen);
    await echoed(client, randomBytes(64));
    client.end();
    assert.equal(await endOf(client), 'end');
  }
  await eventually('the peer has offered TCP', () => near.output.includes('the peer declines a faster transport'));
  assert.equal(near.output.includes(MOVED_TO_TCP), false);
  assert.equal(far.output.includes(MOVED_TO_TCP), false);
});

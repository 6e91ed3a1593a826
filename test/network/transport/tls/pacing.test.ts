import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { WebSocket, WebSocketServer } from 'ws';
import {
  KEEP_ALIVE_MS,
  LOST_MS,
  MAX_QUEUEING_MS,
  MAX_UNSENT_BYTES,
  PacedSocket,
  WEB_SOCKET_OPTIONS,
} from '../../../../src/network/transport/tls/pacing.ts';
import { type CarriedDatagram, closingEntry, encodeEntry } from '../../../../src/network/transport/tls/wire.ts';
import { eventually } from '../../../support/eventually.ts';
import { TestClock } from '../../../support/test-clock.ts';

const REMOTE = { host: '203.0.113.7', port: 4121 };

function datagram(number: number, bytes = 3): CarriedDatagram {
  return { number, remote: REMOTE, datagram: new Uint8Array(bytes).fill(number) };
}

/** A paced socket, and the plain WebSocket of the remote side. */
async function pair(t: TestContext) {
  const clock = new TestClock();
  const http = createServer().listen(0, '127.0.0.1');
  await once(http, 'listening');
  const server = new WebSocketServer({ server: http, ...WEB_SOCKET_OPTIONS });
  const remote = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}`, WEB_SOCKET_OPTIONS);
  const [[accepted]] = (await Promise.all([once(server, 'connection'), once(remote, 'open')])) as [
    [WebSocket],
    unknown,
  ];
  const received: CarriedDatagram[] = [];
  let ends = 0;
  const events = {
    onEntries: (entries: readonly CarriedDatagram[]) => void received.push(...entries),
    onEnd: () => void ends++,
  };
  const paced = new PacedSocket(accepted, events, { clock });
  const messages: Buffer[] = [];
  remote.on('message', (message: Buffer) => void messages.push(message));
  t.after(() => {
    paced.terminate();
    remote.terminate();
    server.close();
    http.close();
    assert.equal(clock.timers, 0);
  });
  return { clock, paced, socket: accepted, remote, messages, received, ends: () => ends };
}

/** Waits for the first pong. */
async function measured(paced: PacedSocket): Promise<void> {
  await eventually('the first pong', () => paced.minRttMs !== null);
}

test('datagrams of one turn leave as one message, in order', async (t) => {
  const { paced, messages } = await pair(t);
  for (const number of [1, 2, 3]) assert.ok(paced.send(datagram(number)));
  await eventually('the message', () => messages.length > 0);
  assert.deepEqual(messages, [Buffer.concat([1, 2, 3].map((number) => encodeEntry(datagram(number))))]);
  assert.ok(paced.send(datagram(4)));
  await eventually('the second message', () => messages.length > 1);
  assert.deepEqual(messages[1], encodeEntry(datagram(4)));
  assert.equal(paced.usage.sent, 4);
});

test('a message has at most 64 KiB', async (t) => {
  const { paced, messages } = await pair(t);
  const count = 100;
  for (let i = 0; i < count; i++) assert.ok(paced.send(datagram(1, 1500)));
  const total = count * encodeEntry(datagram(1, 1500)).length;
  await eventually('the whole batch', () => messages.reduce((sum, { length }) => sum + length, 0) === total);
  assert.equal(messages.length, Math.ceil(total / (64 * 1024)));
});

test('entries of a message are received', async (t) => {
  const { remote, received, paced } = await pair(t);
  remote.send(Buffer.concat([encodeEntry(datagram(1)), encodeEntry(closingEntry(2))]));
  await eventually('the entries', () => received.length === 2);
  assert.deepEqual(received[0]?.remote, REMOTE);
  assert.deepEqual(received[1], { number: 2, remote: null, datagram: new Uint8Array() });
  assert.equal(paced.usage.received, 2);
});

test('while a ping is unanswered for longer than a round trip and the margin, datagrams are dropped', async (t) => {
  const { clock, paced, remote, messages } = await pair(t);
  await measured(paced);
  remote.pause();
  assert.ok(paced.send(datagram(1)));
  await turn();
  clock.advance(MAX_QUEUEING_MS);
  assert.ok(paced.send(datagram(2)), 'within the margin');
  clock.advance(1);
  assert.ok(!paced.maySend);
  assert.ok(!paced.send(datagram(3)));
  assert.ok(paced.send(closingEntry(9)), 'closing entries are not dropped');
  assert.equal(paced.usage.dropped, 1);
  remote.resume();
  await eventually('room', () => paced.maySend);
  assert.ok(paced.send(datagram(4)));
  await eventually('the last datagram', () => Buffer.concat(messages).includes(encodeEntry(datagram(4))));
  assert.ok(!Buffer.concat(messages).includes(encodeEntry(datagram(3))));
});

test('the minimum round trip follows a path that became longer', async (t) => {
  const { clock, paced, remote, socket } = await pair(t);
  await measured(paced);
  assert.equal(paced.minRttMs, 0);
  remote.pause();
  paced.send(datagram(1));
  await turn();
  clock.advance(80);
  const pong = once(socket, 'pong');
  remote.resume();
  await pong;
  assert.equal(paced.minRttMs, 40);
});

test('a remote side that does not read costs a bounded number of bytes', async (t) => {
  const { paced, remote, socket } = await pair(t);
  await measured(paced);
  remote.pause();
  for (let round = 0; round < 400; round++) {
    for (let i = 0; i < 40; i++) paced.send(datagram(1, 1500));
    await turn();
  }
  assert.ok(paced.usage.dropped > 0);
  assert.ok(socket.bufferedAmount <= MAX_UNSENT_BYTES + 64 * 1024, `${socket.bufferedAmount} bytes`);
});

test('a remote side that pings and does not read is cut off', async (t) => {
  const { remote, paced, socket, ends } = await pair(t);
  await measured(paced);
  remote.pause();
  while (paced.maySend) {
    paced.send(datagram(1, 1500));
    await turn();
  }
  for (let i = 0; i < 2000; i++) remote.ping(Buffer.alloc(100));
  await eventually('the end', () => ends() === 1);
  assert.equal(socket.readyState, socket.CLOSED);
});

test('an idle connection is kept alive, and a silent one is lost', async (t) => {
  const { clock, paced, socket, remote, ends } = await pair(t);
  await measured(paced);
  let pings = 0;
  remote.on('ping', () => void pings++);
  clock.advance(KEEP_ALIVE_MS - 1);
  await turn();
  assert.equal(pings, 0);
  const pong = once(socket, 'pong');
  clock.advance(1);
  await pong;
  assert.equal(pings, 1);
  remote.pause();
  clock.advance(KEEP_ALIVE_MS + LOST_MS - 1);
  assert.equal(ends(), 0);
  clock.advance(1);
  assert.equal(ends(), 1);
  assert.ok(!paced.send(datagram(1)));
});

test('an invalid message ends the connection', async (t) => {
  for (const message of ['text', Buffer.from([1, 2, 3]), Buffer.alloc(64 * 1024 + 1)]) {
    const { remote, ends, received } = await pair(t);
    remote.on('error', () => {});
    remote.send(message);
    await eventually('the end', () => ends() === 1);
    assert.deepEqual(received, []);
  }
});

test('batched datagrams leave before the connection closes, and close reports no end', async (t) => {
  const { paced, messages, remote, ends } = await pair(t);
  paced.send(datagram(1));
  paced.close();
  paced.close();
  assert.ok(!paced.send(datagram(2)));
  await once(remote, 'close');
  assert.deepEqual(messages, [encodeEntry(datagram(1))]);
  assert.equal(ends(), 0);
});

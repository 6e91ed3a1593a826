import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../../src/foundation/clock.ts';
import { detach } from '../../../../src/foundation/detached.ts';
import {
  type DatagramSocket,
  longTermKey,
  TurnAllocation,
} from '../../../../src/network/reachability/turn/allocation.ts';
import {
  ATTRIBUTE,
  attributeOf,
  decodeErrorCode,
  decodeStun,
  encodeStun,
  encodeXorAddress,
  FAILURE,
  hasValidIntegrity,
  STUN,
  type StunMessage,
  SUCCESS,
  uint32,
} from '../../../../src/network/reachability/turn/stun.ts';
import { eventually } from '../../../support/eventually.ts';
import { needs } from '../../../support/needs.ts';
import { quietPort } from '../../../support/programs.ts';
import { TestClock } from '../../../support/test-clock.ts';

const CREDENTIALS = { username: 'svc', password: 'a password' };
const KEY = longTermKey(CREDENTIALS, 'lab');
const RELAYED = { host: '203.0.113.20', port: 50_000 };
const HOST = '127.0.0.1';

/** @param end called before the socket closes */
async function bound(t: TestContext, end: () => void = () => {}): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind(0, HOST);
  await once(socket, 'listening');
  t.after(async () => {
    end();
    await new Promise<void>((resolve) => socket.close(resolve));
  });
  return socket;
}

type Attributes = StunMessage['attributes'];
const text = (words: string): Uint8Array => new TextEncoder().encode(words);

/** A scripted server that accepts requests with the current nonce. */
function scripted(refuses: (method: number) => number | null) {
  const received: number[] = [];
  const world = { nonce: 'first', received, forge: false, isSilent: false };
  const receive = (bytes: Uint8Array, send: (answer: Uint8Array) => void): void => {
    const message = decodeStun(bytes);
    if (message === null) return;
    const { type, transaction } = message;
    received.push(type);
    if (world.isSilent) return;
    const answer = (kind: number, attributes: Attributes, key: Uint8Array | null = KEY) =>
      send(encodeStun({ type: type | kind, transaction, attributes }, key));
    const refuse = (code: number) =>
      answer(
        FAILURE,
        [
          [ATTRIBUTE.errorCode, Uint8Array.of(0, 0, Math.floor(code / 100), code % 100)],
          [ATTRIBUTE.realm, text('lab')],
          [ATTRIBUTE.nonce, text(world.nonce)],
        ],
        null,
      );
    if (!hasValidIntegrity(bytes, KEY)) return refuse(401);
    if (Buffer.from(attributeOf(message, ATTRIBUTE.nonce) ?? []).toString() !== world.nonce) return refuse(438);
    const code = refuses(type);
    if (code !== null) return refuse(code);
    answer(
      SUCCESS,
      [
        [ATTRIBUTE.xorRelayedAddress, encodeXorAddress(RELAYED)],
        [ATTRIBUTE.lifetime, uint32(600)],
      ],
      world.forge ? null : KEY,
    );
  };
  return { world, receive };
}

async function startServer(t: TestContext, refuses: (method: number) => number | null = () => null) {
  const socket = await bound(t);
  const { world, receive } = scripted(refuses);
  socket.on('message', (bytes, from) => receive(bytes, (answer) => socket.send(answer, from.port, from.address)));
  return Object.assign(world, { port: socket.address().port });
}

async function allocation(t: TestContext, port: number, credentials = CREDENTIALS) {
  const socket = await bound(t, () => made.close());
  const made: TurnAllocation = new TurnAllocation({
    clock: systemClock,
    socket,
    server: { host: HOST, port },
    credentials,
    received: () => {},
  });
  return { made, socket };
}

test('an allocation is requested, a stale nonce is replaced, and the allocation is released at the end', async (t) => {
  const server = await startServer(t);
  const { made } = await allocation(t, server.port);
  assert.deepEqual(await made.open(), RELAYED);
  server.nonce = 'second';
  await made.permit('203.0.113.9');
  const { allocate, createPermission, refresh } = STUN;
  assert.deepEqual(server.received, [allocate, allocate, createPermission, createPermission]);
  made.close();
  await eventually('it is released', () => server.received.at(-1) === refresh);
});

test('the error explains the refusal', async (t) => {
  const words: Readonly<Record<number, RegExp>> = {
    403: /forbids/,
    437: /no matching allocation/,
    486: /quota/,
    508: /capacity/,
    599: /599/,
  };
  for (const [code, message] of Object.entries(words)) {
    const server = await startServer(t, () => Number(code));
    const { made } = await allocation(t, server.port);
    await assert.rejects(made.open(), { code: 'connect_failed', message });
  }
});

test('a wrong password is not retried, and responses without integrity are ignored', async (t) => {
  const server = await startServer(t);
  const { made } = await allocation(t, server.port, { ...CREDENTIALS, password: 'another' });
  await assert.rejects(made.open(), { code: 'connect_failed', message: /credentials/ });
  assert.equal(server.received.length, 2);
  server.forge = true;
  const { made: other } = await allocation(t, server.port);
  await assert.rejects(other.open(), { code: 'timeout' });
});

/** An allocation at an in-memory server, with the clock of the test. */
async function memoryAllocation(refuses: (method: number) => number | null = () => null) {
  const { world, receive } = scripted(refuses);
  const clock = new TestClock();
  const server = { host: '192.0.2.1', port: 3478 };
  const events = new EventEmitter();
  const socket: DatagramSocket = {
    on: (event, received) => events.on(event, received),
    send: (bytes) =>
      receive(bytes, (answer) =>
        queueMicrotask(() => events.emit('message', answer, { address: server.host, port: server.port })),
      ),
  };
  const made = new TurnAllocation({ clock, socket, server, credentials: CREDENTIALS, received: () => {} });
  await made.open();
  const state = { isLost: false };
  detach(
    made.lost.then(() => {
      state.isLost = true;
    }),
  );
  const refreshes = () => world.received.filter((type) => type === STUN.refresh).length;
  const pass = (minutes: number) => clock.run(minutes * 60_000);
  return { made, clock, world, state, refreshes, pass };
}

test('an allocation that the server lost is detected at the next refresh', async () => {
  let code: number | null = null;
  const { made, clock, world, state, refreshes, pass } = await memoryAllocation((method) =>
    method === STUN.refresh ? code : null,
  );
  await pass(6);
  assert.deepEqual([refreshes(), state.isLost], [1, false]);
  code = 437;
  await pass(5);
  assert.deepEqual([refreshes(), state.isLost], [2, true]);
  made.close();
  await pass(20);
  assert.deepEqual([refreshes(), clock.timers, world.received.at(-1)], [2, 0, STUN.refresh]);
});

test('a refresh to a silent server is retried until the allocation expires', async () => {
  const { world, state, refreshes, pass } = await memoryAllocation();
  world.isSilent = true;
  await pass(9.5);
  assert.equal(state.isLost, false);
  assert.ok(refreshes() > 10, 'the refresh was retried');
  await pass(1);
  assert.equal(state.isLost, true);
});

test('a server that answers again in time keeps the allocation', async () => {
  const { world, state, pass } = await memoryAllocation();
  world.isSilent = true;
  await pass(8);
  world.isSilent = false;
  await pass(30);
  assert.equal(state.isLost, false);
});

/** The server from Debian's coturn package, with nonces that become stale after a second. */
async function coturn(t: TestContext): Promise<number> {
  const port = await quietPort();
  const account = ['--user=svc:a password', '--realm=lab', '--lt-cred-mech', '--stale-nonce=1'];
  const quiet = ['--no-cli', '--no-tls', '--no-dtls', '--no-tcp', '--log-file=/dev/null', '--pidfile=/dev/null', '-n'];
  const where = [`--listening-ip=${HOST}`, `--relay-ip=${HOST}`, `--listening-port=${port}`, '--allow-loopback-peers'];
  const child: ChildProcess = spawn('turnserver', [...where, ...account, ...quiet], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return port;
}

test('coturn relays datagrams in both directions, and its stale nonces are replaced', {
  skip: needs('turnserver'),
}, async (t) => {
  const port = await coturn(t);
  const peer = await bound(t);
  peer.on('message', (datagram, { port: back, address }) => peer.send(datagram, back, address));
  const socket = await bound(t, () => made.close());
  const back: string[] = [];
  let stale = 0;
  socket.on('message', (bytes) => {
    const message = decodeStun(bytes);
    if (message !== null && decodeErrorCode(attributeOf(message, ATTRIBUTE.errorCode)) === 438) stale++;
  });
  const made: TurnAllocation = new TurnAllocation({
    clock: systemClock,
    socket,
    server: { host: HOST, port },
    credentials: CREDENTIALS,
    received: (datagram) => back.push(Buffer.from(datagram).toString()),
  });
  await eventually('the server is listening', () =>
    made.open().then(
      () => true,
      () => false,
    ),
  );
  await eventually('a nonce is stale', async () => {
    await made.permit(HOST);
    return stale > 0;
  });
  await eventually('the datagram returns', () => {
    made.send(text('there and back'), { host: HOST, port: peer.address().port });
    return back.includes('there and back');
  });
});

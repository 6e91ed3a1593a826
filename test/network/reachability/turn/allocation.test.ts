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

/** @param end what is done before it is closed */
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

/** What a server does that takes requests with the present nonce, and answers as the test says. */
function scripted(refuses: (method: number) => number | null) {
  const heard: number[] = [];
  const world = { nonce: 'first', heard, forge: false, isSilent: false };
  const hear = (bytes: Uint8Array, say: (answer: Uint8Array) => void): void => {
    const message = decodeStun(bytes);
    if (message === null) return;
    const { type, transaction } = message;
    heard.push(type);
    if (world.isSilent) return;
    const answer = (kind: number, attributes: Attributes, key: Uint8Array | null = KEY) =>
      say(encodeStun({ type: type | kind, transaction, attributes }, key));
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
  return { world, hear };
}

async function startServer(t: TestContext, refuses: (method: number) => number | null = () => null) {
  const socket = await bound(t);
  const { world, hear } = scripted(refuses);
  socket.on('message', (bytes, from) => hear(bytes, (answer) => socket.send(answer, from.port, from.address)));
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

test('an address is asked for, a stale nonce is replaced, and it is given back at the end', async (t) => {
  const server = await startServer(t);
  const { made } = await allocation(t, server.port);
  assert.deepEqual(await made.open(), RELAYED);
  server.nonce = 'second';
  await made.permit('203.0.113.9');
  const { allocate, createPermission, refresh } = STUN;
  assert.deepEqual(server.heard, [allocate, allocate, createPermission, createPermission]);
  made.close();
  await eventually('it is given back', () => server.heard.at(-1) === refresh);
});

test('refusals say what they mean', async (t) => {
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

test('a wrong password is not tried for ever, and what nobody proves grants nothing', async (t) => {
  const server = await startServer(t);
  const { made } = await allocation(t, server.port, { ...CREDENTIALS, password: 'another' });
  await assert.rejects(made.open(), { code: 'connect_failed', message: /credentials/ });
  assert.equal(server.heard.length, 2);
  server.forge = true;
  const { made: other } = await allocation(t, server.port);
  await assert.rejects(other.open(), { code: 'timeout' });
});

/** An allocation at a server in memory, whose time passes as the test says. */
async function lasting(refuses: (method: number) => number | null = () => null) {
  const { world, hear } = scripted(refuses);
  const clock = new TestClock();
  const server = { host: '192.0.2.1', port: 3478 };
  const events = new EventEmitter();
  const socket: DatagramSocket = {
    on: (event, heard) => events.on(event, heard),
    send: (bytes) =>
      hear(bytes, (answer) =>
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
  const refreshes = () => world.heard.filter((type) => type === STUN.refresh).length;
  const pass = (minutes: number) => clock.run(minutes * 60_000);
  return { made, clock, world, state, refreshes, pass };
}

test('an allocation that the server has forgotten is lost as soon as it is to be renewed', async () => {
  let code: number | null = null;
  const { made, clock, world, state, refreshes, pass } = await lasting((method) =>
    method === STUN.refresh ? code : null,
  );
  await pass(6);
  assert.deepEqual([refreshes(), state.isLost], [1, false]);
  code = 437;
  await pass(5);
  assert.deepEqual([refreshes(), state.isLost], [2, true]);
  made.close();
  await pass(20);
  assert.deepEqual([refreshes(), clock.timers, world.heard.at(-1)], [2, 0, STUN.refresh]);
});

test('a server that says nothing is asked again until the allocation has run out', async () => {
  const { world, state, refreshes, pass } = await lasting();
  world.isSilent = true;
  await pass(9.5);
  assert.equal(state.isLost, false);
  assert.ok(refreshes() > 10, 'again and again');
  await pass(1);
  assert.equal(state.isLost, true);
});

test('a server that answers again in time keeps the allocation', async () => {
  const { world, state, pass } = await lasting();
  world.isSilent = true;
  await pass(8);
  world.isSilent = false;
  await pass(30);
  assert.equal(state.isLost, false);
});

/** The server of Debian's package coturn. Its nonces are stale after a second. */
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

test('coturn carries datagrams both ways, and its stale nonces are replaced', {
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
  await eventually('it listens', () =>
    made.open().then(
      () => true,
      () => false,
    ),
  );
  await eventually('a nonce is stale', async () => {
    await made.permit(HOST);
    return stale > 0;
  });
  await eventually('it comes back', () => {
    made.send(text('there and back'), { host: HOST, port: peer.address().port });
    return back.includes('there and back');
  });
});

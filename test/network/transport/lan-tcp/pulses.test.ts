/** Detects if TCP is blocked: a stalled peer loses no stream, and a black hole is noticed. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { GREETING_TIMEOUT_MS } from '../../../../src/network/transport/lan-tcp/greeting.ts';
import { MAX_CHANNELS, PULSE_MS, PULSE_SILENCE_MS } from '../../../../src/network/transport/lan-tcp/lan-tcp-dialer.ts';
import { eventually } from '../../../support/eventually.ts';
import { LeapClock } from '../../../support/leap-clock.ts';
import { settle } from '../../../support/link-world.ts';
import { TcpServer } from '../../../support/tcp.ts';
import { failure, readAll } from '../world.ts';
import { HOST, LanPeers } from './world.ts';

/** All connections: the spare ones and one in use. */
const ALL = 5;

/** LAN peers with a proxy that can drop all TCP data, while the other peer answers over QUIC or not. */
async function withBlackHole(t: TestContext) {
  const clock = new LeapClock();
  const is = { blocked: false, closed: false, there: true, dialed: 0 };
  const ports: number[] = [];
  const proxy = await TcpServer.start((socket) => {
    is.dialed++;
    if (is.closed) return void socket.destroy();
    const on = connect({ host: HOST, port: ports[0] ?? 0, allowHalfOpen: true });
    on.on('error', () => {});
    socket.on('data', (chunk: Buffer) => (is.blocked ? undefined : on.write(chunk)));
    on.on('data', (chunk: Buffer) => (is.blocked ? undefined : socket.write(chunk)));
    on.on('close', () => socket.destroy());
    socket.on('close', () => on.destroy());
  });
  t.after(() => proxy[Symbol.asyncDispose]());
  const pair = await LanPeers.start(t, {
    clock,
    change: async (answer) => {
      if (!is.there) throw new Error('no answer');
      ports.push(answer.port);
      return { ...answer, port: proxy.port };
    },
  });
  const ours = await pair.stream();
  ours.write('!');
  const theirs = await pair.incoming();
  // No greeting may be pending when the clock leaps.
  await eventually('the spare connections are ready', () => pair.remote.accepted === ALL);
  return { clock, is, pair, ours, theirs };
}

/** Time until a pulse is sent and has timed out. */
const MISSED_MS: number = PULSE_MS + PULSE_SILENCE_MS + 200;

test('pulses are answered while a stream is open, and none are sent on an idle connection', async (t) => {
  const { clock, pair, ours, theirs } = await withBlackHole(t);
  for (let i = 0; i < 10; i++) {
    clock.pass(PULSE_MS);
    const before = pair.to.state.received;
    await eventually('a pulse was answered', () => pair.to.state.received > before);
  }
  ours.end('fine');
  assert.equal(String(await readAll(theirs)), '!fine');
  theirs.end();
  await readAll(ours);
  await eventually('the connection is idle', () => pair.to.state.isReady);
  await settle();
  const { sent } = pair.to.state;
  clock.pass(3 * PULSE_MS);
  await settle();
  assert.equal(pair.to.state.sent, sent);
  assert.equal(pair.asked.length, 1);
});

test('if TCP is blocked but QUIC is not, streams fail and new ones use QUIC', async (t) => {
  const { clock, is, pair, ours } = await withBlackHole(t);
  const seen = failure(ours);
  is.blocked = true;
  clock.pass(MISSED_MS);
  await eventually('the request over QUIC is sent', () => pair.answered.length === 2);
  await settle();
  clock.pass(GREETING_TIMEOUT_MS + 200);
  assert.equal(await seen, 'connection_lost');
  assert.equal(pair.local.open(pair.to), null);
});

test('a stalled peer loses no stream', async (t) => {
  const { clock, is, pair, ours, theirs } = await withBlackHole(t);
  is.blocked = true;
  is.there = false;
  clock.pass(MISSED_MS);
  await eventually('the request over QUIC is sent', () => pair.asked.length === 2);
  await settle();
  clock.pass(10 * PULSE_MS);
  await settle();
  assert.equal(ours.destroyed, false);
  is.blocked = false;
  is.there = true;
  ours.end('still here');
  assert.equal(String(await readAll(theirs)), '!still here');
});

/** Lets two greetings time out: of a new connection, and of the one dialed after a request over QUIC. */
async function missTwoGreetings({ clock, is, pair }: Awaited<ReturnType<typeof withBlackHole>>): Promise<void> {
  const { dialed } = is;
  clock.pass(GREETING_TIMEOUT_MS + 200);
  await eventually('the request over QUIC is sent', () => pair.answered.length === 2);
  await eventually('another connection is dialed', () => is.dialed > dialed);
  clock.pass(GREETING_TIMEOUT_MS + 200);
}

test('a black hole is detected even if a new connection is being opened when it begins', async (t) => {
  const world = await withBlackHole(t);
  const { clock, is, pair, ours } = world;
  const seen = failure(ours);
  is.blocked = true;
  assert.notEqual(pair.local.open(pair.to), null);
  await eventually('the next connection is dialed', () => {
    clock.pass(10);
    return is.dialed > ALL;
  });
  // The greeting times out before any pulse.
  await missTwoGreetings(world);
  assert.equal(await seen, 'connection_lost');
});

test('a black hole is detected even without an idle connection to probe', async (t) => {
  const world = await withBlackHole(t);
  const { clock, is, pair, ours } = world;
  const seen = failure(ours);
  is.closed = true;
  await eventually('no more connections open', () => {
    clock.pass(10);
    return pair.local.open(pair.to) === null;
  });
  is.closed = false;
  is.blocked = true;
  const before = is.dialed;
  clock.pass(PULSE_MS + 200);
  await eventually('a connection is dialed', () => is.dialed > before);
  await missTwoGreetings(world);
  assert.equal(await seen, 'connection_lost');
});

test('if all connections are in use, a probe does not stop the use of LAN TCP', async (t) => {
  const { clock, is, pair, ours } = await withBlackHole(t);
  const open = () =>
    eventually('a connection', () => {
      clock.pass(10);
      return pair.local.open(pair.to) ?? undefined;
    });
  for (let i = 1; i < MAX_CHANNELS; i++) {
    (await open()).write('!');
    await pair.incoming();
  }
  const before = is.dialed;
  // No further, so that its greeting does not time out.
  await eventually('one more connection is dialed', () => {
    clock.pass(100);
    return is.dialed > before;
  });
  ours.destroy();
  await open();
  assert.equal(pair.asked.length, 1);
});

/** Whether TCP still gets through: who stands still loses nothing, and what is swallowed is noticed. */
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
import { HOST, Neighbours } from './world.ts';

/** Channels ahead, and the one in use. */
const ALL = 5;

/** Neighbours with something between them that may swallow what TCP carries, while the other one answers over QUIC or not. */
async function swallowing(t: TestContext) {
  const clock = new LeapClock();
  const is = { swallowed: false, closed: false, there: true, dialled: 0 };
  const ports: number[] = [];
  const between = await TcpServer.start((socket) => {
    is.dialled++;
    if (is.closed) return void socket.destroy();
    const on = connect({ host: HOST, port: ports[0] ?? 0, allowHalfOpen: true });
    on.on('error', () => {});
    socket.on('data', (chunk: Buffer) => (is.swallowed ? undefined : on.write(chunk)));
    on.on('data', (chunk: Buffer) => (is.swallowed ? undefined : socket.write(chunk)));
    on.on('close', () => socket.destroy());
    socket.on('close', () => on.destroy());
  });
  t.after(() => between[Symbol.asyncDispose]());
  const pair = await Neighbours.start(t, {
    clock,
    change: async (answer) => {
      if (!is.there) throw new Error('nobody answers');
      ports.push(answer.port);
      return { ...answer, port: between.port };
    },
  });
  const ours = await pair.stream();
  ours.write('!');
  const theirs = await pair.incoming();
  // None may still be greeted when the clock leaps.
  await eventually('the next channels are ready', () => pair.far.accepted === ALL);
  return { clock, is, pair, ours, theirs };
}

/** Time in which a sign of life is asked for, and missed. */
const MISSED_MS: number = PULSE_MS + PULSE_SILENCE_MS + 200;

test('while all is well nothing happens, and an idle neighbour is asked for nothing', async (t) => {
  const { clock, pair, ours, theirs } = await swallowing(t);
  for (let i = 0; i < 10; i++) {
    clock.pass(PULSE_MS);
    const before = pair.to.state.received;
    await eventually('a sign of life has come', () => pair.to.state.received > before);
  }
  ours.end('fine');
  assert.equal(String(await readAll(theirs)), '!fine');
  theirs.end();
  await readAll(ours);
  await eventually('it is idle', () => pair.to.state.isReady);
  await settle();
  const { sent } = pair.to.state;
  clock.pass(3 * PULSE_MS);
  await settle();
  assert.equal(pair.to.state.sent, sent);
  assert.equal(pair.asked.length, 1);
});

test('where TCP is swallowed and QUIC is not, streams are lost, and new ones go over QUIC', async (t) => {
  const { clock, is, pair, ours } = await swallowing(t);
  const seen = failure(ours);
  is.swallowed = true;
  clock.pass(MISSED_MS);
  await eventually('it is asked over QUIC', () => pair.answered.length === 2);
  await settle();
  clock.pass(GREETING_TIMEOUT_MS + 200);
  assert.equal(await seen, 'connection_lost');
  assert.equal(pair.near.open(pair.to), null);
});

test('a neighbour that stands still loses nothing', async (t) => {
  const { clock, is, pair, ours, theirs } = await swallowing(t);
  is.swallowed = true;
  is.there = false;
  clock.pass(MISSED_MS);
  await eventually('it is asked over QUIC', () => pair.asked.length === 2);
  await settle();
  clock.pass(10 * PULSE_MS);
  await settle();
  assert.equal(ours.destroyed, false);
  is.swallowed = false;
  is.there = true;
  ours.end('still here');
  assert.equal(String(await readAll(theirs)), '!still here');
});

/** Lets the greeting of a channel that was just dialled go unanswered, and that of the one which is dialled behind a question over QUIC. */
async function missesTwoGreetings({ clock, is, pair }: Awaited<ReturnType<typeof swallowing>>): Promise<void> {
  const { dialled } = is;
  clock.pass(GREETING_TIMEOUT_MS + 200);
  await eventually('it is asked over QUIC', () => pair.answered.length === 2);
  await eventually('another one is dialled', () => is.dialled > dialled);
  clock.pass(GREETING_TIMEOUT_MS + 200);
}

test('it is seen as well where a new channel is under way when TCP begins to be swallowed', async (t) => {
  const world = await swallowing(t);
  const { clock, is, pair, ours } = world;
  const seen = failure(ours);
  is.swallowed = true;
  assert.notEqual(pair.near.open(pair.to), null);
  await eventually('the next one is dialled', () => {
    clock.pass(10);
    return is.dialled > ALL;
  });
  // Its greeting is missed before any sign of life.
  await missesTwoGreetings(world);
  assert.equal(await seen, 'connection_lost');
});

test('it is seen as well where no channel is left that could be asked', async (t) => {
  const world = await swallowing(t);
  const { clock, is, pair, ours } = world;
  const seen = failure(ours);
  is.closed = true;
  await eventually('no more come about', () => {
    clock.pass(10);
    return pair.near.open(pair.to) === null;
  });
  is.closed = false;
  is.swallowed = true;
  const before = is.dialled;
  clock.pass(PULSE_MS + 200);
  await eventually('one is dialled', () => is.dialled > before);
  await missesTwoGreetings(world);
  assert.equal(await seen, 'connection_lost');
});

test('where as many channels are in use as may be, looking after them does not end the way', async (t) => {
  const { clock, is, pair, ours } = await swallowing(t);
  const take = () =>
    eventually('a channel', () => {
      clock.pass(10);
      return pair.near.open(pair.to) ?? undefined;
    });
  for (let i = 1; i < MAX_CHANNELS; i++) {
    (await take()).write('!');
    await pair.incoming();
  }
  const before = is.dialled;
  // No further than that: its greeting has its time.
  await eventually('one more is dialled', () => {
    clock.pass(100);
    return is.dialled > before;
  });
  ours.destroy();
  await take();
  assert.equal(pair.asked.length, 1);
});

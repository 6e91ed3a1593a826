/** When neighbours are asked for other ways, and who is answered. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type AgreementAnswer, newRequest } from '../../../../src/network/transport/lan-tcp/greeting.ts';
import { DIAL_ANEW_MS } from '../../../../src/network/transport/lan-tcp/lan-tcp.ts';
import { MAX_CHANNELS } from '../../../../src/network/transport/lan-tcp/lan-tcp-dialer.ts';
import { type Path, wayPath } from '../../../../src/network/transport/path.ts';
import type { Connection, Stream } from '../../../../src/network/transport/types.ts';
import { eventually } from '../../../support/eventually.ts';
import { LeapClock } from '../../../support/leap-clock.ts';
import { settle } from '../../../support/link-world.ts';
import { TcpServer } from '../../../support/tcp.ts';
import { failsWith } from '../../../support/vectors.ts';
import { failure, readAll } from '../world.ts';
import { HOST, Neighbours, quicPair } from './world.ts';

const TEN_MINUTES_MS = 600_000;

/** A connection as another one, but on a path of its own. */
function onPath(connection: Connection, path: Path): Connection {
  return {
    remoteKey: connection.remoteKey,
    outbound: connection.outbound,
    closed: connection.closed,
    path,
    rtt: () => connection.rtt(),
    stats: () => connection.stats(),
    openStream: () => connection.openStream(),
    onStream: (handler) => connection.onStream(handler),
    close: () => connection.close(),
  };
}

/** Ways on which nobody is a neighbour. */
function farPaths({ path, remoteKey }: Connection): readonly Path[] {
  const key = { address: path.remote, key: remoteKey };
  return (['direct', 'mapped', 'relay', 'turn'] as const).map((kind) => wayPath({ kind }, key));
}

async function refused(port: number): Promise<void> {
  await assert.rejects(once(connect({ host: HOST, port }), 'connect'), { code: 'ECONNREFUSED' });
}

/** Takes a stream, and waits until a question has been asked behind it. */
async function provoke(pair: Neighbours): Promise<void> {
  assert.equal(pair.near.open(pair.to), null);
  await eventually('it is asked', () => pair.asked.length > 0);
}

test('a neighbour is asked once behind the first stream, at the address at which it is seen', async (t) => {
  const pair = await Neighbours.start(t);
  for (let i = 0; i < 5; i++) assert.equal(pair.near.open(pair.to), null);
  assert.equal(pair.asked.length, 0);
  await eventually('it is asked', () => pair.asked.length === 1);
  assert.equal(pair.asked[0]?.host, pair.quic.client.path.remote.host);
  const stream = await pair.stream();
  assert.equal(pair.ready, 1);
  await eventually('the next one is ready', () => pair.to.state.isReady);
  assert.equal(stream.connection, pair.quic.client);
  stream.end('there');
  const theirs = await pair.incoming();
  assert.equal(theirs.connection, pair.quic.server);
  assert.equal(String(await readAll(theirs)), 'there');
  assert.equal(pair.asked.length, 1);
  assert.ok(pair.to.state.sent > 5 && pair.from.state.received > 5);
});

test('who is a long way off in a private network is not asked, until the way is short', async (t) => {
  const pair = await Neighbours.start(t);
  const { client } = pair.quic;
  const key = { address: { host: '10.9.0.1', port: 4122 }, key: client.remoteKey };
  const asked: number[] = [];
  let rttMs = 26;
  const connection = { ...onPath(client, wayPath({ kind: 'lan' }, key)), rtt: () => rttMs };
  const take = (): unknown => {
    const askedAt = rttMs;
    const ask = async (): Promise<null> => {
      asked.push(askedAt);
      return null;
    };
    return pair.near.open({ ...pair.to, connection, request: ask });
  };
  assert.equal(take(), null);
  rttMs = 25;
  assert.equal(take(), null);
  await eventually('it is asked', () => asked.length > 0);
  assert.deepEqual(asked, [25], 'a question that the long way had begun would be the only one');
});

test('one question is asked at a time, however long it takes', async (t) => {
  const asking = Promise.withResolvers<AgreementAnswer | null>();
  const pair = await Neighbours.start(t, { change: () => asking.promise });
  await provoke(pair);
  for (let i = 0; i < 20; i++) {
    pair.near.open(pair.to);
    await settle(1);
  }
  assert.equal(pair.asked.length, 1);
  asking.resolve(pair.answered[0] ?? assert.fail());
  await pair.stream();
  assert.equal(pair.asked.length, 1);
});

test('only neighbours are asked, and answered', async (t) => {
  const pair = await Neighbours.start(t);
  for (const path of farPaths(pair.quic.client)) {
    const to = { ...pair.to, connection: onPath(pair.quic.client, path) };
    for (let i = 0; i < 5; i++) assert.equal(pair.near.open(to), null);
    const from = { ...pair.from, connection: onPath(pair.quic.server, path) };
    assert.equal(await pair.answer(newRequest(HOST), from), null);
  }
  assert.equal(pair.asked.length, 0);
});

test('loopback is listened at for who came from there alone', async (t) => {
  const pair = await Neighbours.start(t);
  const path: Path = { kind: 'lan', remote: { host: '192.168.254.9', port: 4122 }, source: '192.168.254.9' };
  const from = { ...pair.from, connection: onPath(pair.quic.server, path) };
  assert.equal(await pair.answer(newRequest(HOST), from), null);
  assert.notEqual(await pair.answer(newRequest(HOST), pair.from), null);
});

test('nobody listens at addresses that are public, foreign or none', async (t) => {
  const pair = await Neighbours.start(t);
  for (const host of ['8.8.8.8', '2001:4860:4860::8888', '0.0.0.0', '::', '224.0.0.1', '255.255.255.255', 'ff02::1'])
    assert.equal(await pair.answer(newRequest(host), pair.from), null, host);
  // Of no machine that could run this.
  for (const host of ['192.168.254.251', '10.254.253.252', 'fd12:3456:789a::1', '::ffff:8.8.8.8', 'fe80::1%none'])
    assert.equal(await pair.answer(newRequest(host), pair.from), null, host);
  await assert.rejects(pair.answer(newRequest(''), pair.from), failsWith('protocol_error'));
  assert.notEqual(await pair.answer(newRequest(HOST), pair.from), null);
});

for (const [what, change] of [
  ['knows nothing of it', async () => null],
  ['fails', async () => Promise.reject(new Error('the stream broke'))],
] satisfies [string, () => Promise<AgreementAnswer | null>][])
  test(`who ${what} is asked again after ten minutes`, async (t) => {
    const clock = new LeapClock();
    let isBroken = true;
    const pair = await Neighbours.start(t, {
      clock,
      change: async (answer) => (isBroken ? await change() : answer),
    });
    await provoke(pair);
    await settle();
    for (let i = 0; i < 10; i++) assert.equal(pair.near.open(pair.to), null);
    clock.leap(TEN_MINUTES_MS - 2_000);
    assert.equal(pair.near.open(pair.to), null);
    await settle();
    assert.equal(pair.asked.length, 1);
    assert.equal(pair.ready, 0);
    isBroken = false;
    clock.leap(2_000);
    await pair.stream();
    assert.equal(pair.asked.length, 2);
    assert.equal(pair.ready, 1);
  });

test('who cannot be connected to is asked again after a minute, and gets streams over QUIC until then', async (t) => {
  const clock = new LeapClock();
  await using hole = await TcpServer.start((socket) => void socket.destroy());
  let isBroken = true;
  const pair = await Neighbours.start(t, {
    clock,
    change: async (answer) => (isBroken ? { ...answer, port: hole.port } : answer),
  });
  await provoke(pair);
  await eventually('it is given up', () => hole.sockets.size === 0 && pair.answered.length === 1);
  await settle();
  assert.equal(pair.near.open(pair.to), null);
  assert.ok(!pair.to.state.isReady);
  isBroken = false;
  clock.leap(DIAL_ANEW_MS);
  const stream = await pair.stream();
  assert.equal(pair.asked.length, 2);
  // What was agreed on before is over: nobody made use of it.
  stream.end('at last');
  assert.equal(String(await readAll(await pair.incoming())), 'at last');
});

test('where no new channels come about, those in use go on', async (t) => {
  let isBroken = false;
  await using hole = await TcpServer.start((socket) => void socket.destroy());
  const sockets: { port: number }[] = [];
  await using between = await TcpServer.start((socket) => {
    const on = connect({ host: HOST, port: isBroken ? hole.port : (sockets[0]?.port ?? 0), allowHalfOpen: true });
    on.on('error', () => {});
    socket.pipe(on).pipe(socket);
    on.on('close', () => socket.destroy());
  });
  const pair = await Neighbours.start(t, {
    clock: new LeapClock(),
    change: async (answer) => {
      sockets.push(answer);
      return { ...answer, port: between.port };
    },
  });
  const stream = await pair.stream();
  stream.write('a beginning');
  const theirs = await pair.incoming();
  isBroken = true;
  await eventually('no channel is left', () => pair.near.open(pair.to) === null && !pair.to.state.isReady);
  stream.end(', and an end');
  assert.equal(String(await readAll(theirs)), 'a beginning, and an end');
  theirs.end('an answer');
  assert.equal(String(await readAll(stream)), 'an answer');
  assert.equal(pair.asked.length, 1);
});

test('streams side by side are as many as channels may be; the others go over QUIC', async (t) => {
  const pair = await Neighbours.start(t);
  const streams: Stream[] = [];
  for (let i = 0; i < MAX_CHANNELS; i++) {
    const stream = await pair.stream();
    stream.write('!');
    streams.push(stream);
    await pair.incoming();
  }
  assert.equal(pair.near.open(pair.to), null);
  assert.ok(!pair.to.state.isReady);
  const [first = assert.fail()] = streams;
  first.destroy();
  await pair.stream();
  assert.equal(pair.asked.length, 1);
});

for (const [what, end] of [
  ['the connection', (pair: Neighbours) => pair.quic.client.close()],
  ['the node that connects', (pair: Neighbours) => void pair.near.stop()],
  ['the node that listens', (pair: Neighbours) => void pair.far.stop()],
] satisfies [string, (pair: Neighbours) => void][])
  test(`all ends with ${what}`, async (t) => {
    const pair = await Neighbours.start(t);
    const ours = await pair.stream();
    ours.write('!');
    const theirs = await pair.incoming();
    const seen = [failure(ours), failure(theirs)];
    end(pair);
    assert.deepEqual(await Promise.all(seen), ['connection_lost', 'connection_lost']);
    await eventually('nothing is ready', () => !pair.to.state.isReady);
    if (what === 'the node that connects') return;
    await refused(pair.answered[0]?.port ?? 0);
    assert.equal(pair.near.open(pair.to), null);
  });

test('who has stopped asks nobody and answers nobody', async (t) => {
  const pair = await Neighbours.start(t);
  await pair.stop();
  for (let i = 0; i < 5; i++) assert.equal(pair.near.open(pair.to), null);
  assert.equal(pair.asked.length, 0);
  assert.equal(await pair.answer(newRequest(HOST), pair.from), null);
});

test('a node that stops while it asks, or is asked, has no channels after it', async (t) => {
  const asking = Promise.withResolvers<void>();
  const pair = await Neighbours.start(t, { change: (answer) => asking.promise.then(() => answer) });
  await provoke(pair);
  await eventually('it is answered', () => pair.answered.length === 1);
  await pair.near.stop();
  asking.resolve();
  const late = pair.answer(newRequest(HOST), pair.from);
  await pair.far.stop();
  const answer = await late;
  await settle();
  for (const one of [answer, ...pair.answered]) if (one !== null) await refused(one.port);
  assert.equal(pair.ready, 0);
});

test('a connection that ends while it is asked over leaves nothing', async (t) => {
  const pair = await Neighbours.start(t);
  const late = pair.answer(newRequest(HOST), pair.from);
  pair.quic.server.close();
  const answer = await late;
  await settle();
  if (answer !== null) await refused(answer.port);
});

test('neighbours do not share their ways', async (t: TestContext) => {
  const [one, other] = [await Neighbours.start(t), new Neighbours(await quicPair(t))];
  t.after(() => other.stop());
  await one.stream();
  const to = { ...other.to, connection: other.quic.client };
  assert.equal(one.near.open(to), null);
  assert.equal(other.asked.length, 0);
});

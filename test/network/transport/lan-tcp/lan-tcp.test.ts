/** LAN TCP between two nodes: when it is requested, and which requests are accepted. */
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
import { HOST, LanPeers, quicPair } from './world.ts';

const TEN_MINUTES_MS = 600_000;

/** A copy of a connection with another path. */
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

/** Paths to nodes that are not LAN peers. */
function remotePaths({ path, remoteKey }: Connection): readonly Path[] {
  const key = { address: path.remote, key: remoteKey };
  return (['direct', 'mapped', 'relay', 'turn'] as const).map((kind) => wayPath({ kind }, key));
}

async function refused(port: number): Promise<void> {
  await assert.rejects(once(connect({ host: HOST, port }), 'connect'), { code: 'ECONNREFUSED' });
}

/** Opens a stream, and waits for the LAN TCP request to the peer. */
async function requestLanTcp(pair: LanPeers): Promise<void> {
  assert.equal(pair.local.open(pair.to), null);
  await eventually('the request is sent', () => pair.asked.length > 0);
}

test('LAN TCP is requested once, after the first stream, for the address at which the peer is seen', async (t) => {
  const pair = await LanPeers.start(t);
  for (let i = 0; i < 5; i++) assert.equal(pair.local.open(pair.to), null);
  assert.equal(pair.asked.length, 0);
  await eventually('the request is sent', () => pair.asked.length === 1);
  assert.equal(pair.asked[0]?.host, pair.quic.client.path.remote.host);
  const stream = await pair.stream();
  assert.equal(pair.ready, 1);
  await eventually('the next connection is ready', () => pair.to.state.isReady);
  assert.equal(stream.connection, pair.quic.client);
  stream.end('there');
  const theirs = await pair.incoming();
  assert.equal(theirs.connection, pair.quic.server);
  assert.equal(String(await readAll(theirs)), 'there');
  assert.equal(pair.asked.length, 1);
  assert.ok(pair.to.state.sent > 5 && pair.from.state.received > 5);
});

test('a peer with a long round trip in a private network gets no request until the round trip is short', async (t) => {
  const pair = await LanPeers.start(t);
  const { client } = pair.quic;
  const key = { address: { host: '10.9.0.1', port: 4122 }, key: client.remoteKey };
  const asked: number[] = [];
  let rttMs = 26;
  const connection = { ...onPath(client, wayPath({ kind: 'lan' }, key)), rtt: () => rttMs };
  const open = (): unknown => {
    const askedAt = rttMs;
    const ask = async (): Promise<null> => {
      asked.push(askedAt);
      return null;
    };
    return pair.local.open({ ...pair.to, connection, request: ask });
  };
  assert.equal(open(), null);
  rttMs = 25;
  assert.equal(open(), null);
  await eventually('the request is sent', () => asked.length > 0);
  assert.deepEqual(asked, [25], 'a request at the long round trip would be the only one');
});

test('one request is sent at a time, even if it takes long', async (t) => {
  const asking = Promise.withResolvers<AgreementAnswer | null>();
  const pair = await LanPeers.start(t, { change: () => asking.promise });
  await requestLanTcp(pair);
  for (let i = 0; i < 20; i++) {
    pair.local.open(pair.to);
    await settle(1);
  }
  assert.equal(pair.asked.length, 1);
  asking.resolve(pair.answered[0] ?? assert.fail());
  await pair.stream();
  assert.equal(pair.asked.length, 1);
});

test('requests are sent to LAN peers only, and accepted from LAN peers only', async (t) => {
  const pair = await LanPeers.start(t);
  for (const path of remotePaths(pair.quic.client)) {
    const to = { ...pair.to, connection: onPath(pair.quic.client, path) };
    for (let i = 0; i < 5; i++) assert.equal(pair.local.open(to), null);
    const from = { ...pair.from, connection: onPath(pair.quic.server, path) };
    assert.equal(await pair.answer(newRequest(HOST), from), null);
  }
  assert.equal(pair.asked.length, 0);
});

test('only a peer on the loopback address gets a listener there', async (t) => {
  const pair = await LanPeers.start(t);
  const path: Path = { kind: 'lan', remote: { host: '192.168.254.9', port: 4122 }, source: '192.168.254.9' };
  const from = { ...pair.from, connection: onPath(pair.quic.server, path) };
  assert.equal(await pair.answer(newRequest(HOST), from), null);
  assert.notEqual(await pair.answer(newRequest(HOST), pair.from), null);
});

test('no listener is opened at public, foreign or invalid addresses', async (t) => {
  const pair = await LanPeers.start(t);
  for (const host of ['8.8.8.8', '2001:4860:4860::8888', '0.0.0.0', '::', '224.0.0.1', '255.255.255.255', 'ff02::1'])
    assert.equal(await pair.answer(newRequest(host), pair.from), null, host);
  // Not addresses of this machine.
  for (const host of ['192.168.254.251', '10.254.253.252', 'fd12:3456:789a::1', '::ffff:8.8.8.8', 'fe80::1%none'])
    assert.equal(await pair.answer(newRequest(host), pair.from), null, host);
  await assert.rejects(pair.answer(newRequest(''), pair.from), failsWith('protocol_error'));
  assert.notEqual(await pair.answer(newRequest(HOST), pair.from), null);
});

for (const [what, change] of [
  ['without LAN TCP', async () => null],
  ['that fails', async () => Promise.reject(new Error('the stream broke'))],
] satisfies [string, () => Promise<AgreementAnswer | null>][])
  test(`a peer ${what} gets the next request after ten minutes`, async (t) => {
    const clock = new LeapClock();
    let isBroken = true;
    const pair = await LanPeers.start(t, {
      clock,
      change: async (answer) => (isBroken ? await change() : answer),
    });
    await requestLanTcp(pair);
    await settle();
    for (let i = 0; i < 10; i++) assert.equal(pair.local.open(pair.to), null);
    clock.leap(TEN_MINUTES_MS - 2_000);
    assert.equal(pair.local.open(pair.to), null);
    await settle();
    assert.equal(pair.asked.length, 1);
    assert.equal(pair.ready, 0);
    isBroken = false;
    clock.leap(2_000);
    await pair.stream();
    assert.equal(pair.asked.length, 2);
    assert.equal(pair.ready, 1);
  });

test('a peer that refuses TCP gets the next request after a minute, and streams use QUIC until then', async (t) => {
  const clock = new LeapClock();
  await using hole = await TcpServer.start((socket) => void socket.destroy());
  let isBroken = true;
  const pair = await LanPeers.start(t, {
    clock,
    change: async (answer) => (isBroken ? { ...answer, port: hole.port } : answer),
  });
  await requestLanTcp(pair);
  await eventually('the dial failed', () => hole.sockets.size === 0 && pair.answered.length === 1);
  await settle();
  assert.equal(pair.local.open(pair.to), null);
  assert.ok(!pair.to.state.isReady);
  isBroken = false;
  clock.leap(DIAL_ANEW_MS);
  const stream = await pair.stream();
  assert.equal(pair.asked.length, 2);
  // The previous agreement expired unused.
  stream.end('connected now');
  assert.equal(String(await readAll(await pair.incoming())), 'connected now');
});

test('if no new connection can be opened, open streams continue', async (t) => {
  let isBroken = false;
  await using hole = await TcpServer.start((socket) => void socket.destroy());
  const sockets: { port: number }[] = [];
  await using proxy = await TcpServer.start((socket) => {
    const on = connect({ host: HOST, port: isBroken ? hole.port : (sockets[0]?.port ?? 0), allowHalfOpen: true });
    on.on('error', () => {});
    socket.pipe(on).pipe(socket);
    on.on('close', () => socket.destroy());
  });
  const pair = await LanPeers.start(t, {
    clock: new LeapClock(),
    change: async (answer) => {
      sockets.push(answer);
      return { ...answer, port: proxy.port };
    },
  });
  const stream = await pair.stream();
  stream.write('a beginning');
  const theirs = await pair.incoming();
  isBroken = true;
  await eventually('no connection is left', () => pair.local.open(pair.to) === null && !pair.to.state.isReady);
  stream.end(', and an end');
  assert.equal(String(await readAll(theirs)), 'a beginning, and an end');
  theirs.end('an answer');
  assert.equal(String(await readAll(stream)), 'an answer');
  assert.equal(pair.asked.length, 1);
});

test('concurrent streams use up to the maximum number of connections, and further ones use QUIC', async (t) => {
  const pair = await LanPeers.start(t);
  const streams: Stream[] = [];
  for (let i = 0; i < MAX_CHANNELS; i++) {
    const stream = await pair.stream();
    stream.write('!');
    streams.push(stream);
    await pair.incoming();
  }
  assert.equal(pair.local.open(pair.to), null);
  assert.ok(!pair.to.state.isReady);
  const [first = assert.fail()] = streams;
  first.destroy();
  await pair.stream();
  assert.equal(pair.asked.length, 1);
});

for (const [what, end] of [
  ['the connection', (pair: LanPeers) => pair.quic.client.close()],
  ['the node that connects', (pair: LanPeers) => void pair.local.stop()],
  ['the node that listens', (pair: LanPeers) => void pair.remote.stop()],
] satisfies [string, (pair: LanPeers) => void][])
  test(`closing ${what} closes all LAN TCP connections`, async (t) => {
    const pair = await LanPeers.start(t);
    const ours = await pair.stream();
    ours.write('!');
    const theirs = await pair.incoming();
    const seen = [failure(ours), failure(theirs)];
    end(pair);
    assert.deepEqual(await Promise.all(seen), ['connection_lost', 'connection_lost']);
    await eventually('no connection is ready', () => !pair.to.state.isReady);
    if (what === 'the node that connects') return;
    await refused(pair.answered[0]?.port ?? 0);
    assert.equal(pair.local.open(pair.to), null);
  });

test('a stopped node sends no request and accepts none', async (t) => {
  const pair = await LanPeers.start(t);
  await pair.stop();
  for (let i = 0; i < 5; i++) assert.equal(pair.local.open(pair.to), null);
  assert.equal(pair.asked.length, 0);
  assert.equal(await pair.answer(newRequest(HOST), pair.from), null);
});

test('a node that stops during a request has no connections afterwards', async (t) => {
  const asking = Promise.withResolvers<void>();
  const pair = await LanPeers.start(t, { change: (answer) => asking.promise.then(() => answer) });
  await requestLanTcp(pair);
  await eventually('the request is answered', () => pair.answered.length === 1);
  await pair.local.stop();
  asking.resolve();
  const late = pair.answer(newRequest(HOST), pair.from);
  await pair.remote.stop();
  const answer = await late;
  await settle();
  for (const one of [answer, ...pair.answered]) if (one !== null) await refused(one.port);
  assert.equal(pair.ready, 0);
});

test('a connection that closes during a request leaves no listener', async (t) => {
  const pair = await LanPeers.start(t);
  const late = pair.answer(newRequest(HOST), pair.from);
  pair.quic.server.close();
  const answer = await late;
  await settle();
  if (answer !== null) await refused(answer.port);
});

test('LAN peers do not share their connections', async (t: TestContext) => {
  const [one, other] = [await LanPeers.start(t), new LanPeers(await quicPair(t))];
  t.after(() => other.stop());
  await one.stream();
  const to = { ...other.to, connection: other.quic.client };
  assert.equal(one.local.open(to), null);
  assert.equal(other.asked.length, 0);
});

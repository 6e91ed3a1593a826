import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { framedData, outcomeOf, statusByte } from '../../../src/capabilities/tunnels/frames.ts';
import { drawTicket, OPENING, openingOf } from '../../../src/capabilities/tunnels/opening.ts';
import { PROBE_TIMEOUT_MS } from '../../../src/capabilities/tunnels/tunnel-service.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { CLIENT_WAIT_MS, MAX_TUNNELS } from '../../../src/foundation/domain/tunnels.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { type Purpose, TUNNEL_PURPOSES } from '../../../src/network/links/types.ts';
import { LINGER_MS } from '../../../src/network/peers/wire.ts';
import { eventually } from '../../support/eventually.ts';
import { readAll, settle } from '../../support/link-world.ts';
import { quietPort } from '../../support/programs.ts';
import { dial, endOf, TcpServer } from '../../support/tcp.ts';
import { TestClock } from '../../support/test-clock.ts';
import { TunnelWorld } from '../../support/tunnel-world.ts';

const echo = (socket: Socket): void => void socket.pipe(socket);

test('bytes pass both ways unchanged, and a half-close passes as a half-close', async () => {
  // The service answers only after it has seen the end of the request.
  const serve = (socket: Socket): void => {
    const hash = createHash('sha256');
    socket.on('data', (chunk: Buffer) => hash.update(chunk));
    socket.on('end', () => socket.end(hash.digest()));
  };
  await using world = await TunnelWorld.start(serve);
  const { tunnel, reused } = await world.tunnels.open(world.request());
  assert.equal(reused, false);
  const body = randomBytes(5 * 1024 * 1024);
  const client = await dial(tunnel.listen);
  client.end(body);
  assert.deepEqual(await readAll(client), createHash('sha256').update(body).digest());
  const info = await eventually('the connection is over', () => {
    const now = world.tunnels.get(tunnel.id);
    return now.activeConns === 0 && now;
  });
  assert.equal(info.bytesUp, body.length);
  assert.equal(info.bytesDown, 32);
});

test('no tunnel leads to a service for calls only, and an open one ends with the rule', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  world.takesTunnels = false;
  await assert.rejects(world.tunnels.open(world.request({ localPort: await quietPort() })), { code: 'calls_only' });
  await assert.rejects(world.tunnels.connect(world.request()), { code: 'calls_only' });
  const before = world.service.sockets.size;
  const client = await dial(tunnel.listen);
  client.write('GET / HTTP/1.1\r\nSvc-Caller-Aid: aid1forged\r\n\r\n');
  assert.equal(await endOf(client), 'ECONNRESET');
  assert.equal(world.service.sockets.size, before);
});

test('a link to an agent that serves no tunnels is refused before anything is kept for it', async () => {
  await using world = await TunnelWorld.start(echo);
  const open = (purpose: Purpose) => world.near.links.open(world.local, world.remote, purpose, { timeoutMs: 5000 });
  world.bound = false;
  for (const purpose of TUNNEL_PURPOSES) await assert.rejects(open(purpose), { code: 'no_inbound' }, purpose);
  world.bound = true;
  world.takesTunnels = false;
  for (const purpose of TUNNEL_PURPOSES) await assert.rejects(open(purpose), { code: 'calls_only' }, purpose);
  assert.deepEqual(world.inbound.connections, { known: 0, waiting: 0, keptBytes: 0 });
});

test('a refused connection ends soon, though its caller never ends it', async () => {
  const clock = new TestClock();
  await using world = await TunnelWorld.start(echo, systemClock, clock);
  world.maxConnections = 0;
  for (const purpose of TUNNEL_PURPOSES) {
    const link = await world.near.links.open(world.local, world.remote, purpose);
    link.on('error', () => {}).resume();
    if (purpose === 'tcp') link.write(openingOf(OPENING.connect, drawTicket()));
  }
  await eventually('all are refused', () => world.inbound.lingering === TUNNEL_PURPOSES.length);
  clock.advance(LINGER_MS);
  await eventually('all are closed', () => world.far.pool.stats().streams === 0);
  assert.equal(world.inbound.lingering, 0);
  assert.equal(world.inbound.connections.known, 0);
});

test('a server that speaks first is heard', async () => {
  await using world = await TunnelWorld.start((socket) => socket.end('220 hello\r\n'));
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  assert.equal((await readAll(client)).toString(), '220 hello\r\n');
  client.end();
});

test('a reset passes as a reset, in both directions', async () => {
  const arrived: Socket[] = [];
  await using world = await TunnelWorld.start((socket) => arrived.push(socket));
  const { tunnel } = await world.tunnels.open(world.request());
  // The first connection that the service sees is the question whether it answers.
  const first = await dial(tunnel.listen);
  const served = await eventually('the service is reached', () => arrived[1]);
  served.resetAndDestroy();
  assert.equal(await endOf(first), 'ECONNRESET');

  const second = await dial(tunnel.listen);
  const again = await eventually('the service is reached again', () => arrived[2]);
  const ended = endOf(again);
  second.resetAndDestroy();
  assert.equal(await ended, 'ECONNRESET');
});

test('the same agents and port give the same tunnel; a taken port is refused', async () => {
  await using world = await TunnelWorld.start(echo);
  const first = await world.tunnels.open(world.request());
  const port = Number(first.tunnel.listen.split(':')[1]);
  const again = await world.tunnels.open(world.request({ localPort: port }));
  assert.equal(again.reused, true);
  assert.equal(again.tunnel.id, first.tunnel.id);
  const both = await Promise.all([world.tunnels.open(world.request()), world.tunnels.open(world.request())]);
  assert.equal(both[0].tunnel.id, both[1].tunnel.id);
  await assert.rejects(world.tunnels.open(world.request({ localPort: world.service.port })), {
    code: 'port_in_use',
    message: /is in use by another program\. Choose another local_port/,
    status: 409,
  });
});

test('an open tunnel presents a new access token if it is accepted, also after a restart', async () => {
  await using world = await TunnelWorld.start(echo);
  world.secret = 'old';
  const { tunnel } = await world.tunnels.open(world.request({ accessToken: 'old' }));
  const localPort = Number(tunnel.listen.split(':')[1]);
  await world.tunnels.close(tunnel.id);
  const existing = await world.tunnels.open(world.request({ accessToken: 'old', localPort }));
  const reopen = (accessToken?: string) => world.tunnels.open(world.request({ accessToken, localPort }));
  const served = async (): Promise<string> => {
    const client = await dial(tunnel.listen);
    const ended = endOf(client);
    client.end('hello');
    const text = readAll(client).then(String, () => '');
    return (await text) || (await ended);
  };
  world.secret = 'new';
  assert.equal(await served(), 'ECONNRESET');
  await assert.rejects(reopen('wrong'), { code: 'access_denied' });
  assert.equal(world.saved.get(existing.tunnel.id)?.accessToken, 'old');
  const again = await reopen('new');
  assert.equal(again.reused, true);
  assert.equal(again.tunnel.id, existing.tunnel.id);
  assert.equal(await served(), 'hello');
  assert.equal((await reopen()).reused, true);
  assert.equal(await served(), 'hello');
  assert.equal(world.saved.get(existing.tunnel.id)?.accessToken, 'new');
});

test('opening a tunnel reports the obstacle', async () => {
  await using world = await TunnelWorld.start(echo);
  world.bound = false;
  await assert.rejects(world.tunnels.open(world.request()), { code: 'no_inbound' });
  world.bound = true;
  world.refused = true;
  await assert.rejects(world.tunnels.open(world.request()), { code: 'access_denied' });
  world.refused = false;
  await world.service[Symbol.asyncDispose]();
  await assert.rejects(world.tunnels.open(world.request()), {
    code: 'inbound_unreachable',
    message: /refuses connections\. Its owner must start it/,
  });
  assert.equal(world.tunnels.active, 0);
});

test('the caller learns why the node of a service has no connection to it', async () => {
  const clock = new TestClock();
  await using world = await TunnelWorld.start(echo, systemClock, clock);
  const { tunnel } = await world.tunnels.open(world.request());
  for (const [code, message] of [
    ['ECONNREFUSED', /refuses connections/],
    ['EHOSTUNREACH', /does not accept a connection in time/],
    ['ENOTFOUND', /host name .* does not resolve/],
    ['ECONNRESET', /closed this one without an answer/],
    ['SVCD_UNPROVEN', /Another program uses the port/],
    ['EMFILE', /no file descriptor or port left/],
  ] as const) {
    world.connect = () => {
      const socket = new Socket();
      process.nextTick(() => socket.destroy(Object.assign(new Error(code), { code })));
      return socket;
    };
    await assert.rejects(world.tunnels.connect(world.request()), { code: 'inbound_unreachable', message }, code);
    assert.equal(await endOf(await dial(tunnel.listen)), 'ECONNRESET');
    await eventually(`${code} is reported`, () => message.test(world.tunnels.get(tunnel.id).lastError?.message ?? ''));
  }
  let connecting = 0;
  world.connect = () => {
    connecting++;
    return new Socket();
  };
  const outcome = assert.rejects(world.tunnels.connect(world.request()), { message: /connection in time.*firewall/ });
  await eventually('the node connects', () => connecting === 1);
  clock.advance(5000);
  await outcome;
});

test('an outcome of a later version is a protocol error', () => {
  assert.equal(outcomeOf(0), null);
  assert.equal(outcomeOf(undefined)?.code, 'protocol_error');
  assert.equal(outcomeOf(200)?.code, 'protocol_error');
});

test('a tunnel tells that the service closed a connection without an answer, if it received bytes', async () => {
  const ends = (socket: Socket): void => void socket.once('readable', () => socket.resume().end());
  await using world = await TunnelWorld.start(ends);
  const { tunnel } = await world.tunnels.open(world.request());
  const silent = await dial(tunnel.listen);
  silent.end();
  assert.equal(await endOf(silent), 'end');
  assert.equal(world.tunnels.get(tunnel.id).lastError, null);
  const client = await dial(tunnel.listen);
  client.write('GET');
  assert.equal(await endOf(client), 'end');
  assert.match(world.tunnels.get(tunnel.id).lastError?.message ?? '', /closed this one without an answer/);
  client.end();
});

test('the wait for a node that never answers a probe is limited', async () => {
  const clock = new TestClock();
  await using world = await TunnelWorld.start(echo, clock);
  world.silent = true;
  const opening = world.tunnels.open(world.request());
  let outcome: unknown = null;
  opening.catch((error: unknown) => {
    outcome = error;
  });
  await eventually('the probe is accepted', () => world.unanswered === 1);
  await settle();
  clock.advance(PROBE_TIMEOUT_MS);
  await eventually('the time has run out', () => outcome !== null);
  assert.ok(outcome instanceof SvcError && outcome.code === 'timeout');
  world.silent = false;
  assert.equal((await world.tunnels.open(world.request())).reused, false);
});

test('an access list that changes cuts live connections', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  client.write('x');
  await once(client, 'data');
  await world.inbound.recheck(world.remote);
  client.write('y');
  await once(client, 'data');
  world.refused = true;
  const ended = endOf(client);
  await world.inbound.recheck(world.remote);
  assert.equal(await ended, 'ECONNRESET');
});

test('a link accepted before the access list changed gets no connection after it', async () => {
  await using world = await TunnelWorld.start(echo);
  const waiting = await world.near.links.open(world.local, world.remote, 'tcp');
  world.refused = true;
  await world.inbound.recheck(world.remote);
  waiting.write(openingOf(OPENING.connect, drawTicket()));
  const [answer]: Buffer[] = await once(waiting, 'data');
  const refusal = framedData(Buffer.of(statusByte(new SvcError('access_denied'))));
  assert.deepEqual(answer?.subarray(0, refusal.length), refusal);
  waiting.destroy();
  await eventually('the service has no connection', () => world.service.sockets.size === 0);
});

test('the connections to a removed agent end', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  client.write('x');
  await once(client, 'data');
  const ended = endOf(client);
  world.inbound.drop(world.local);
  assert.equal(client.destroyed, false);
  world.inbound.drop(world.remote);
  assert.equal(await ended, 'ECONNRESET');
});

test('the service can query the agents of a connection', async () => {
  const arrived: Socket[] = [];
  await using world = await TunnelWorld.start((socket) => arrived.push(socket));
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  const served = await eventually('the service is reached', () => arrived[1]);
  const session = world.inbound.session(served.remotePort ?? 0);
  assert.equal(session?.callerAid, world.local);
  assert.equal(session?.localAid, world.remote);
  client.end();
  served.end();
  await eventually('the session is forgotten', () => world.inbound.session(served.remotePort ?? 0) === null);
});

test('connections to two services never have one port, so each service learns who speaks to it', async () => {
  const arrived: Socket[] = [];
  await using world = await TunnelWorld.start((socket) => arrived.push(socket));
  await using other = await TcpServer.start(echo);
  const another = world.far.host().aid;
  world.others.set(another, other);
  const caller = world.near.host().aid;
  const { tunnel } = await world.tunnels.open(world.request());
  const { tunnel: second } = await world.tunnels.open(world.request({ localAid: caller, remoteAid: another }));
  const free = await TcpServer.start(echo);
  const { port } = free;
  await free[Symbol.asyncDispose]();
  world.sourcePorts.push(port, port);
  const client = await dial(tunnel.listen);
  const served = await eventually('the service is reached', () => arrived[1]);
  assert.equal(served.remotePort, port);
  const rival = await dial(second.listen);
  rival.write('x');
  await once(rival, 'data');
  assert.equal(world.sourcePorts.length, 0);
  await eventually('the unused connection has closed', () => other.sockets.size === 1);
  assert.equal(world.inbound.session(port)?.localAid, world.remote);
  const [from] = [...other.sockets].map(({ remotePort }) => remotePort ?? 0).filter((one) => one !== port);
  assert.equal(world.inbound.session(from ?? 0)?.callerAid, caller);
  rival.resetAndDestroy();
  await eventually('the rival has closed', () => world.inbound.session(from ?? 0) === null);
  assert.equal(world.inbound.session(port)?.callerAid, world.local);
  client.destroy();
});

test('an open connection may change its path after its service was unbound, and no new one begins', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  client.write('x');
  await once(client, 'data');
  world.bound = false;
  world.near.pool.current(world.far.key.publicKey)?.close();
  client.write('y');
  assert.equal(String((await once(client, 'data'))[0]), 'y');
  assert.equal(await endOf((await dial(tunnel.listen)).resume()), 'ECONNRESET');
  client.destroy();
  await eventually('no connection remains', () => world.inbound.connections.known === 0);
  const open = world.near.links.open(world.local, world.remote, 'tcp', { timeoutMs: 5000 });
  await assert.rejects(open, { code: 'no_inbound' });
});

test('each connection counts once for its caller, and neither a probe nor a change of path counts', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  assert.equal(world.entered, 0);
  const client = await dial(tunnel.listen);
  for (const text of ['a', 'b']) {
    client.write(text);
    assert.equal(String((await once(client, 'data'))[0]), text);
    world.near.pool.current(world.far.key.publicKey)?.close();
  }
  client.write('c');
  await once(client, 'data');
  assert.equal(world.entered, 1);
  client.destroy();
});

test('a tunnel keeps its port when the path breaks, and serves the next client', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  const first = await dial(tunnel.listen);
  first.write('x');
  await once(first, 'data');
  const ended = endOf(first);
  world.tunnels.reset(tunnel.id);
  assert.equal(await ended, 'ECONNRESET');
  const second = await dial(tunnel.listen);
  second.write('y');
  assert.equal(String((await once(second, 'data'))[0]), 'y');
  second.destroy();
});

test('a tunnel with a fixed port returns after a restart, others do not', async () => {
  await using world = await TunnelWorld.start(echo);
  await world.tunnels.open(world.request());
  const port = await quietPort();
  const named = await world.tunnels.open(world.request({ localPort: port }));
  await world.tunnels.stop();
  world.tunnels = world.newService();
  await world.tunnels.start();
  assert.deepEqual(
    world.tunnels.list().map((t) => [t.id, t.listen]),
    [[named.tunnel.id, `127.0.0.1:${port}`]],
  );
  const client = await dial(`127.0.0.1:${port}`);
  client.write('x');
  await once(client, 'data');
  client.destroy();
  await world.tunnels.close(named.tunnel.id);
  assert.equal(world.saved.size, 0);
});

test('tunnels and one-shot addresses that are opened at the same time cannot exceed the limit', async () => {
  await using world = await TunnelWorld.start(echo);
  const some = Array.from({ length: MAX_TUNNELS - 2 }, () => world.tunnels.connect(world.request()));
  await Promise.all(some);
  const ports = await Promise.all(Array.from({ length: 3 }, () => quietPort()));
  const outcomes = await Promise.allSettled([
    ...ports.map((localPort) => world.tunnels.open({ ...world.request(), localPort })),
    ...Array.from({ length: 3 }, () => world.tunnels.connect(world.request())),
  ]);
  assert.equal(world.tunnels.active, MAX_TUNNELS);
  const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  assert.deepEqual(
    refused.map((error) => (error instanceof SvcError ? error.code : '')),
    Array.from({ length: 4 }, () => 'quota_exceeded'),
  );
});

test('a one-shot address serves one connection, and waits only for a time', async () => {
  const clock = new TestClock();
  await using world = await TunnelWorld.start(echo, clock);
  const request = world.request();
  const address = await world.tunnels.connect(request);
  const client = await dial(address);
  client.write('x');
  await once(client, 'data');
  clock.advance(CLIENT_WAIT_MS * 2);
  client.write('y');
  await once(client, 'data');
  client.end();
  await eventually('the listener has closed', () => world.tunnels.active === 0);
  await assert.rejects(dial(address), { code: 'ECONNREFUSED' });

  const unused = await world.tunnels.connect(request);
  clock.advance(CLIENT_WAIT_MS);
  await eventually('the listener has closed', () => world.tunnels.active === 0);
  await assert.rejects(dial(unused), { code: 'ECONNREFUSED' });
});

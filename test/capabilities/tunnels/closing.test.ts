/** When tunnels close without a request, and the reasons of closed tunnels. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { DEFAULT_IDLE_TIMEOUT_S } from '../../../src/foundation/domain/tunnels.ts';
import { eventually } from '../../support/eventually.ts';
import { dial, endOf } from '../../support/tcp.ts';
import { TestClock } from '../../support/test-clock.ts';
import { TunnelWorld } from '../../support/tunnel-world.ts';

const echo = (socket: Socket): void => void socket.pipe(socket);

test('an idle tunnel closes, and a used one stays open', async () => {
  const clock = new TestClock();
  await using world = await TunnelWorld.start(echo, clock);
  const { tunnel } = await world.tunnels.open(world.request());
  assert.equal(tunnel.idleTimeoutSec, DEFAULT_IDLE_TIMEOUT_S);
  const client = await dial(tunnel.listen);
  client.write('x');
  await once(client, 'data');
  clock.advance(DEFAULT_IDLE_TIMEOUT_S * 2000);
  assert.equal(world.tunnels.list().length, 1, 'a held connection is no idleness');
  client.destroy();
  await eventually('the connection is over', () => world.tunnels.get(tunnel.id).activeConns === 0);
  clock.advance(DEFAULT_IDLE_TIMEOUT_S * 1000 - 1);
  assert.equal(world.tunnels.list().length, 1);
  clock.advance(1);
  await eventually('the tunnel is closed', () => world.tunnels.list().length === 0);
  const forever = await world.tunnels.open(world.request({ idleTimeoutSec: -1 }));
  clock.advance(365 * 24 * 3600 * 1000);
  assert.equal(world.tunnels.get(forever.tunnel.id).idleTimeoutSec, -1);
});

test('an open tunnel gets the idle timeout of the next request for it', async () => {
  const clock = new TestClock();
  await using world = await TunnelWorld.start(echo, clock);
  const { tunnel } = await world.tunnels.open(world.request({ idleTimeoutSec: 5 }));
  const reopen = (idleTimeoutSec?: number) => world.tunnels.open(world.request({ idleTimeoutSec }));
  assert.equal((await reopen(-1)).tunnel.idleTimeoutSec, -1);
  clock.advance(6_000);
  assert.equal((await reopen()).tunnel.idleTimeoutSec, -1, 'a request without one leaves it unchanged');
  assert.equal((await reopen(0)).tunnel.idleTimeoutSec, DEFAULT_IDLE_TIMEOUT_S);
  assert.deepEqual(await reopen(5), { reused: true, tunnel: { ...tunnel, lastActivityAt: tunnel.lastActivityAt } });
  clock.advance(5_000);
  await eventually('the tunnel is closed', () => world.tunnels.list().length === 0);

  const localPort = Number(tunnel.listen.split(':')[1]);
  const saved = await world.tunnels.open(world.request({ localPort, idleTimeoutSec: 5 }));
  await world.tunnels.open(world.request({ localPort, idleTimeoutSec: 60 }));
  assert.equal(world.saved.get(saved.tunnel.id)?.idleTimeoutSec, 60);
  const [one, other] = await Promise.all(
    [7, 8].map((idleTimeoutSec) =>
      world.tunnels.open(world.request({ localPort: 0, remoteAid: world.remote, idleTimeoutSec })),
    ),
  );
  assert.equal(one?.tunnel.id, other?.tunnel.id);
  assert.equal(world.tunnels.get(one?.tunnel.id ?? '').idleTimeoutSec, 8, 'a request during another one counts too');
});

test('a closed tunnel has a reason, and an open one its last failure', async () => {
  const clock = new TestClock();
  await using world = await TunnelWorld.start(echo, clock);
  const { tunnel } = await world.tunnels.open(world.request({ idleTimeoutSec: 5 }));
  assert.equal(tunnel.lastError, null);
  world.refused = true;
  assert.equal(await endOf(await dial(tunnel.listen)), 'ECONNRESET');
  const failure = await eventually('the failure is reported', () => world.tunnels.get(tunnel.id).lastError);
  assert.deepEqual([failure?.code, failure?.at], ['access_denied', clock.now()]);
  assert.match(failure?.message ?? '', /denies/);
  await eventually('the client has closed', () => world.tunnels.get(tunnel.id).activeConns === 0);
  clock.advance(5_000);
  await eventually('the tunnel is closed', () => world.tunnels.list().length === 0);
  assert.throws(() => world.tunnels.get(tunnel.id), {
    code: 'not_found',
    message: /^This tunnel closed at .*: nothing connected to it for 5 s, its idle_timeout_sec; open it again/,
    details: { closed_at: new Date(clock.now()).toISOString(), reason: 'idle', idle_timeout_sec: 5 },
  });
  await assert.rejects(world.tunnels.close(tunnel.id), { code: 'not_found', message: /idle_timeout_sec/ });
  assert.deepEqual(world.tunnels.closed(), [
    { ...tunnel, lastActivityAt: clock.now() - 5_000, lastError: failure, closedAt: clock.now(), reason: 'idle' },
  ]);
  world.refused = false;
  const second = await world.tunnels.open(world.request());
  await world.tunnels.close(second.tunnel.id);
  const third = await world.tunnels.open(world.request());
  await world.tunnels.forget(world.local);
  assert.deepEqual(
    world.tunnels.closed().map(({ id, reason }) => [id, reason]),
    [
      [third.tunnel.id, 'agent_gone'],
      [second.tunnel.id, 'asked'],
      [tunnel.id, 'idle'],
    ],
  );
  assert.throws(() => world.tunnels.reset('never'), { code: 'not_found', message: 'This tunnel does not exist.' });
});

test('while the disk is full, tunnels with a fixed port neither open nor close, and an idle one closes', async () => {
  const clock = new TestClock();
  await using world = await TunnelWorld.start(echo, clock);
  const first = await world.tunnels.open(world.request());
  const localPort = Number(first.tunnel.listen.split(':')[1]);
  await world.tunnels.close(first.tunnel.id);
  const refused = { code: 'not_writable' };
  world.isDiskFull = true;
  await assert.rejects(world.tunnels.open(world.request({ localPort })), refused);
  assert.equal(world.tunnels.list().length, 0);
  world.isDiskFull = false;
  const { tunnel } = await world.tunnels.open(world.request({ localPort, idleTimeoutSec: 60 }));
  world.isDiskFull = true;
  await assert.rejects(world.tunnels.close(tunnel.id), refused);
  assert.equal(world.tunnels.list().length, 1);
  clock.advance(60_000);
  await eventually('the tunnel is closed', () => world.tunnels.list().length === 0);
  assert.equal(world.saved.size, 1, 'the next start opens it again');
});

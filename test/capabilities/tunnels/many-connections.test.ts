import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { descriptorLimit } from '../../../src/foundation/descriptors.ts';
import { eventually } from '../../support/eventually.ts';
import { readAll } from '../../support/link-world.ts';
import { dial, endOf } from '../../support/tcp.ts';
import { TunnelWorld } from '../../support/tunnel-world.ts';

const echo = (socket: Socket): void => void socket.pipe(socket);

test('two thousand short connections leave nothing behind', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  for (let round = 0; round < 40; round++) {
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const client = await dial(tunnel.listen);
        client.end('x');
        assert.equal((await readAll(client)).toString(), 'x');
      }),
    );
  }
  const info = await eventually('all connections are over', () => {
    const now = world.tunnels.get(tunnel.id);
    return now.activeConns === 0 && now;
  });
  assert.equal(info.bytesUp, 2000);
  await eventually('the service sees them end', () => world.service.sockets.size === 0);
});

test('one tunnel carries thousands of connections', async () => {
  // Each takes four descriptors of this process: of the client, of both tunnel ends, and of the service.
  const HELD = Math.min(2000, Math.floor((descriptorLimit() - 256) / 4));
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  const clients: Socket[] = [];
  while (clients.length < HELD)
    clients.push(
      ...(await Promise.all(Array.from({ length: Math.min(200, HELD - clients.length) }, () => dial(tunnel.listen)))),
    );
  await eventually('all of them have their links', () => world.service.sockets.size === HELD);
  assert.equal(world.tunnels.get(tunnel.id).activeConns, HELD);
  const answers = clients.map((client, i) => {
    client.end(`client ${i}`);
    return readAll(client);
  });
  for (const [i, answer] of (await Promise.all(answers)).entries()) assert.equal(answer.toString(), `client ${i}`);
  await eventually('all connections are over', () => world.tunnels.get(tunnel.id).activeConns === 0);
});

test('the connections of a node to services are limited', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  world.maxConnections = 1;
  const first = await dial(tunnel.listen);
  first.write('x');
  await once(first, 'data');
  const other = world.request({ localAid: world.near.host().aid });
  await assert.rejects(world.tunnels.open(other), { code: 'rate_limited' });
  const second = await dial(tunnel.listen);
  assert.equal(await endOf(second), 'ECONNRESET');
  first.resetAndDestroy();
  await eventually('there is room again', () =>
    world.tunnels.open(other).then(
      () => true,
      () => false,
    ),
  );
});

test('dozens of clients that stop reading do not delay other clients', async () => {
  const MANY = Buffer.alloc(4 * 1024 * 1024, 1);
  let served = 0;
  const serve = (socket: Socket): void => {
    socket.once('data', (wish: Buffer) => {
      served++;
      socket.end(wish.toString() === 'much' ? MANY : 'little');
    });
  };
  await using world = await TunnelWorld.start(serve);
  const { tunnel } = await world.tunnels.open(world.request());
  const stopped = await Promise.all(Array.from({ length: 36 }, () => dial(tunnel.listen)));
  for (const client of stopped) client.pause().write('much');
  await eventually('all of them are being served', () => served === stopped.length);
  const other = await dial(tunnel.listen);
  other.end('a little, please');
  assert.equal((await readAll(other)).toString(), 'little');
  for (const client of stopped) assert.equal((await readAll(client)).length, MANY.length);
});

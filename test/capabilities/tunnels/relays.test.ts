import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { dial } from '../../support/tcp.ts';
import { TunnelWorld } from '../../support/tunnel-world.ts';

/** Two nodes, the second reached by a relay only, until the test says otherwise. */
async function relayedWorld(): Promise<TunnelWorld> {
  const world = await TunnelWorld.start((socket) => socket.pipe(socket));
  const { near, far } = world;
  near.pool.addDialer({
    kind: 'relay',
    delayMs: () => 0,
    timeoutMs: 2000,
    mayLead: () => true,
    dial: (place, signal) =>
      near.endpoint.dial(far.endpoint.address, place.nodeKey, { signal, way: { kind: 'relay' } }),
  });
  place(world, false);
  return world;
}

/** Sets whether the remote node has an address that can be dialled. */
function place({ world, far, remote }: TunnelWorld, isPublic: boolean): void {
  const known = world.directory.get(remote);
  assert.ok(known);
  world.directory.set(remote, { ...known, addresses: isPublic ? [far.endpoint.address] : [] });
}

/** One client of a tunnel. Returns the result of its first byte. */
async function use(listen: string): Promise<'served' | 'cut'> {
  const [host = '', port] = listen.split(':');
  const socket: Socket = connect(Number(port), host);
  socket.on('error', () => {});
  socket.write('x');
  const outcome = await new Promise<'served' | 'cut'>((resolve) => {
    socket.once('data', () => resolve('served'));
    socket.once('close', () => resolve('cut'));
  });
  socket.destroy();
  return outcome;
}

test('a tunnel may use a relay and shows it, until a better path exists', async () => {
  await using world = await relayedWorld();
  const { near, far } = world;
  const { tunnel } = await world.tunnels.open(world.request());
  assert.equal(tunnel.path, 'relay');
  assert.equal(await use(tunnel.listen), 'served');
  await near.pool.upgrade(
    await near.endpoint.dial(far.endpoint.address, far.key.publicKey, { way: { kind: 'punched' } }),
  );
  await eventually('its client has closed', () => (world.tunnels.get(tunnel.id).activeConns === 0 ? true : undefined));
  assert.equal(world.tunnels.get(tunnel.id).path, 'punched', 'the path of its next connection');
  assert.equal(await use(tunnel.listen), 'served');
  assert.equal(world.tunnels.get(tunnel.id).path, 'punched');
});

test('a connection that began over a relay goes over to a better path, and leaves the relay', async () => {
  await using world = await relayedWorld();
  const { near, far } = world;
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  client.write('over a relay');
  await once(client, 'data');
  assert.equal(world.tunnels.get(tunnel.id).path, 'relay');
  const punched = near.endpoint.dial(far.endpoint.address, far.key.publicKey, { way: { kind: 'punched' } });
  await near.pool.upgrade(await punched);
  await eventually('it is there', () => world.tunnels.get(tunnel.id).path === 'punched');
  const streams = (kind: string): number | undefined =>
    near.pool.connections().find(({ path }) => path.kind === kind)?.streams;
  await eventually('the relay carries nothing', () => (streams('relay') ?? 0) === 0);
  assert.equal(streams('punched'), 1);
  client.write('over a punched way');
  assert.equal(String((await once(client, 'data'))[0]), 'over a punched way');
  client.destroy();
});

test('a tunnel without relays is refused if only a relay leads to the agent, even next to an open tunnel', async () => {
  await using world = await relayedWorld();
  await world.tunnels.open(world.request());
  const refused = { code: 'relay_required', status: 412 };
  await assert.rejects(world.tunnels.open(world.request({ localPort: 0, disableRelay: true })), refused);
  await assert.rejects(world.tunnels.connect({ ...world.request(), disableRelay: true }), refused);
  place(world, true);
  const { tunnel } = await world.tunnels.open(world.request({ disableRelay: true }));
  assert.equal(tunnel.path, 'lan');
});

test('every later connection of this tunnel avoids relays', async () => {
  await using world = await relayedWorld();
  place(world, true);
  const { tunnel } = await world.tunnels.open(world.request({ disableRelay: true }));
  assert.equal(await use(tunnel.listen), 'served');
  place(world, false);
  world.near.pool.reset(world.far.key.publicKey);
  assert.equal(await use(tunnel.listen), 'cut');
  const other = await world.near.links.open(world.local, world.remote, 'tcp');
  assert.equal(other.path().kind, 'relay', 'another link may');
  assert.equal(await use(tunnel.listen), 'cut');
  other.destroy();
});

test('an open tunnel avoids relays after a request for that, and a later request cannot allow them', async () => {
  await using world = await relayedWorld();
  const first = await world.tunnels.open(world.request());
  await assert.rejects(world.tunnels.open(world.request({ disableRelay: true })), { code: 'relay_required' });
  assert.equal(await use(first.tunnel.listen), 'served', 'a refused request changes nothing');
  place(world, true);
  const again = await world.tunnels.open(world.request({ disableRelay: true }));
  assert.deepEqual([again.reused, again.tunnel.id], [true, first.tunnel.id]);
  await world.tunnels.open(world.request());
  place(world, false);
  world.near.pool.reset(world.far.key.publicKey);
  assert.equal(await use(first.tunnel.listen), 'cut');
});

test('calls hear that only a relay is left, everything else that the node cannot be reached', async () => {
  await using world = await relayedWorld();
  const open = (purpose: 'http' | 'object') =>
    world.near.links.open(world.local, world.remote, purpose, { disableRelay: true });
  await assert.rejects(open('http'), { code: 'relay_required', status: 412 });
  await assert.rejects(open('object'), { code: 'connect_failed' });
});

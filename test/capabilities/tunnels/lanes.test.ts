/** Tunnel connections that continue on lanes, and return to links. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import type { TunnelConnection } from '../../../src/capabilities/tunnels/connection.ts';
import { InboundConnections } from '../../../src/capabilities/tunnels/inbound-connections.ts';
import { drawTicket, OPENING, openingOf } from '../../../src/capabilities/tunnels/opening.ts';
import { NEXT_LANE_MS, OutboundConnections } from '../../../src/capabilities/tunnels/outbound.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { MemoryLanes, NO_LANES } from '../../support/bulk.ts';
import { eventually } from '../../support/eventually.ts';
import { delegateAnew, type TestIdentity } from '../../support/identities.ts';
import { LeapClock } from '../../support/leap-clock.ts';
import { type LinkNode, LinkWorld, readAll, settle } from '../../support/link-world.ts';
import type { TcpServer } from '../../support/tcp.ts';
import { endOf } from '../../support/tcp.ts';
import { tcpPair } from '../../support/tunnel-pair.ts';

const BYTES = Buffer.alloc(6 * 1024 * 1024, 'bulk data ');

/** A tunnel connection between two in-memory nodes, with both TCP connections. */
class World implements AsyncDisposable {
  readonly world = new LinkWorld();
  readonly clock = new LeapClock();
  readonly bulk = new MemoryLanes();
  readonly #servers: TcpServer[] = [];
  /** Links that the called side received. */
  readonly links: LinkStream[] = [];
  near!: TunnelConnection;
  far!: TunnelConnection;
  client!: Socket;
  service!: Socket;
  lose!: () => void;
  nodes!: { readonly near: LinkNode; readonly far: LinkNode };
  caller!: TestIdentity;
  called!: TestIdentity;

  static async open(): Promise<World> {
    const world = new World();
    const [near, far] = [await world.world.node(), await world.world.node()];
    const inbound = new InboundConnections(systemClock, world.bulk, () => false);
    const begun: TunnelConnection[] = [];
    far.links.accept('tcp', (link) => {
      world.links.push(link.on('error', () => {}));
      inbound.take(link).then(
        (connection) => connection !== null && begun.push(connection),
        () => link.destroy(),
      );
    });
    const outbound = new OutboundConnections(world.clock, near.links, world.bulk);
    world.nodes = { near, far };
    world.caller = near.host();
    world.called = far.host();
    world.near = await outbound.open(world.caller.aid, world.called.aid, {});
    world.far = await eventually('the connection has begun', () => begun[0]);
    world.client = await world.#join(world.near);
    world.service = await world.#join(world.far);
    world.lose = () => near.pool.current(far.key.publicKey)?.close();
    return world;
  }

  async #join(connection: TunnelConnection): Promise<Socket> {
    const [user, end, server] = await tcpPair();
    this.#servers.push(server);
    connection.join(end, {});
    return user;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.near.destroy();
    this.far.destroy();
    for (const socket of [this.client, this.service]) socket.destroy();
    for (const server of this.#servers) await server[Symbol.asyncDispose]();
    await this.world[Symbol.asyncDispose]();
  }

  /** Bytes pass in both directions. */
  async works(): Promise<void> {
    for (const [from, to] of [
      [this.client, this.service],
      [this.service, this.client],
    ] as const) {
      from.write('still here');
      assert.equal(String((await once(to, 'data'))[0]), 'still here');
    }
  }

  /** Moves the connection to a lane. */
  async toLane(): Promise<void> {
    const count = this.bulk.lanes.length;
    this.far.reportLoss();
    const [near, far] = await eventually('a lane', () => this.bulk.lanes[count]);
    await eventually('both use it', () => near.readableFlowing === true && far.readableFlowing === true);
    await this.works();
  }
}

test('a connection moves to a lane, and a lane that breaks in the middle of a transfer costs no byte', async () => {
  await using world = await World.open();
  await world.toLane();
  await eventually('the old link has closed', () => world.links[0]?.destroyed);
  let received = 0;
  world.client.on('data', (chunk: Buffer) => {
    if (received < BYTES.length / 2 && received + chunk.length >= BYTES.length / 2) world.bulk.lose();
    received += chunk.length;
  });
  const [there, back] = [readAll(world.service), readAll(world.client)];
  world.service.end(BYTES);
  assert.deepEqual(await back, BYTES);
  // On another link now, the other direction works too.
  assert.equal(world.bulk.lanes[0]?.[0].destroyed, true);
  assert.equal(world.links.length, 3);
  world.client.end(BYTES);
  assert.deepEqual(await there, BYTES);
  await eventually('both ends are over', () => world.near.destroyed && world.far.destroyed);
});

test('both ends of a connection end on a lane, and a reset passes over it', async () => {
  await using ending = await World.open();
  await ending.toLane();
  const answer = readAll(ending.client);
  ending.client.end('question');
  assert.equal(String(await readAll(ending.service)), 'question');
  ending.service.end('answer');
  assert.equal(String(await answer), 'answer');
  await eventually('both ends are over', () => ending.near.destroyed && ending.far.destroyed);
  await using reset = await World.open();
  await reset.toLane();
  const ended = endOf(reset.client);
  reset.service.resetAndDestroy();
  assert.equal(await ended, 'ECONNRESET');
});

test('a newer delegation of either agent ends a connection on a lane, as on a link', async () => {
  for (const moved of ['caller', 'called'] as const) {
    await using world = await World.open();
    await world.toLane();
    await eventually('the old link has closed', () => world.links[0]?.destroyed);
    const ended = Promise.all([endOf(world.client), endOf(world.service)]);
    const owner = await world.world.node();
    owner.inbox();
    const { master, delegation } = world[moved];
    owner.host(delegateAnew(master, delegation.issuedAt + 10));
    const node = moved === 'caller' ? owner : world.nodes.near;
    await node.links.open(world.caller.aid, world.called.aid, 'tcp');
    assert.deepEqual(await ended, ['ECONNRESET', 'ECONNRESET'], moved);
  }
});

test('after a lost lane, the next one is opened only after a while', async () => {
  await using world = await World.open();
  await world.toLane();
  world.clock.leap(NEXT_LANE_MS);
  world.bulk.lose();
  await eventually('a link resumes it', () => world.links.length === 3);
  await world.works();
  world.far.reportLoss();
  await settle(20);
  assert.equal(world.bulk.lanes.length, 1);
  world.clock.leap(NEXT_LANE_MS);
  // A new link, on which the called side tells its loss again.
  world.lose();
  await eventually('a link resumes it', () => world.links.length === 4);
  await world.works();
  await world.toLane();
  assert.equal(world.bulk.lanes.length, 2);
});

test('a lane that only the called side hears changes nothing', async () => {
  await using world = await World.open();
  world.bulk.isOneWay = true;
  world.far.reportLoss();
  await eventually('the lane has closed', () => world.bulk.lanes[0]?.[1].destroyed);
  await world.works();
  assert.equal(world.links[0]?.destroyed, false);
});

test('the loss of the connection between the nodes does not touch a lane', async () => {
  await using world = await World.open();
  await world.toLane();
  world.lose();
  await settle(20);
  await world.works();
  assert.equal(world.bulk.lanes[0]?.[0].destroyed, false);
});

test('a lane for an unknown connection or another agent is refused, and without room the caller learns so', async () => {
  await using world = new LinkWorld();
  const [near, far] = [await world.node(), await world.node()];
  const [caller, called] = [near.host().aid, far.host().aid];
  const inbound = new InboundConnections(systemClock, NO_LANES, () => false);
  far.links.accept('tcp', (link) => {
    link.on('error', () => {});
    inbound.take(link).catch(() => link.destroy());
  });
  const ticket = drawTicket();
  const first = await near.links.open(caller, called, 'tcp');
  first.write(openingOf(OPENING.connect, ticket));
  await eventually('the connection has begun', () => inbound.counts.known === 1);
  const stranger = near.host().aid;
  for (const [aid, shown] of [
    [stranger, ticket],
    [caller, drawTicket()],
  ] as const) {
    const link = await near.links.open(aid, called, 'tcp');
    const broken = once(link, 'error');
    link.resume().write(openingOf(OPENING.lane, shown));
    const [error]: unknown[] = await broken;
    assert.ok(error instanceof Error && 'code' in error && error.code === 'stream_reset');
  }
  const asking = await near.links.open(caller, called, 'tcp');
  asking.write(openingOf(OPENING.lane, ticket));
  asking.write(Buffer.alloc(NO_LANES.offerBytes, 1));
  assert.deepEqual([...(await readAll(asking))], [0, 0, 0, 0, 0, 0]);
  assert.equal(first.destroyed, false);
  first.destroy();
});

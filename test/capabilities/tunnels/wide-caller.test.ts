/** How two nodes agree on wide connections, older and hostile ones included. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { LastingCalled } from '../../../src/capabilities/tunnels/lasting/called.ts';
import { WideCalled } from '../../../src/capabilities/tunnels/wide/called.ts';
import { LONG_PATH_MS, WideCaller } from '../../../src/capabilities/tunnels/wide/caller.ts';
import { MAX_WINDOWS_PER_NODE_BYTES, NEW_BYTES } from '../../../src/capabilities/tunnels/wide/window-budget.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { askForBulkLink } from '../../../src/network/links/bulk-links.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { BULK_SECRET_BYTES } from '../../../src/network/transport/udp-lane/records.ts';
import { NO_LANES } from '../../support/bulk.ts';
import { LinkWorld, readAll } from '../../support/link-world.ts';

const never = new AbortController().signal;

async function nodes(world: LinkWorld) {
  const [near, far] = [await world.node(), await world.node()];
  const connections = new WideCaller({ clock: systemClock, links: near.links, lanes: NO_LANES });
  const [caller, called] = [near.host().aid, far.host().aid];
  const open = async () => {
    const path = { kind: 'direct', rttMs: LONG_PATH_MS } as const;
    const { link, stream } = await connections.open(caller, called, path, {});
    assert.ok(stream instanceof Duplex);
    return { link, stream };
  };
  return { near, far, caller, called, open };
}

test('a node that does not know wide connections gets plain ones, and is not asked each time', async () => {
  await using world = new LinkWorld();
  const { near, far, open } = await nodes(world);
  far.echo('tcp');
  const opens: string[] = [];
  const openLink = near.links.open.bind(near.links);
  near.links.open = (local, remote, purpose, options) => {
    opens.push(purpose);
    return openLink(local, remote, purpose, options);
  };
  for (let i = 0; i < 2; i++) {
    const { stream } = await open();
    stream.end('plain');
    assert.equal((await readAll(stream)).toString(), 'plain');
  }
  assert.deepEqual(opens, ['tcp-wide', 'tcp-lasting', 'tcp', 'tcp']);
});

test('both ends of a long path speak in frames, over lanes that come later too', async () => {
  await using world = new LinkWorld();
  const { far, open } = await nodes(world);
  const called = new WideCalled(new LastingCalled({ clock: systemClock, isNamed: () => false }), {
    clock: systemClock,
    lanes: NO_LANES,
    isNamed: () => false,
  });
  far.links.accept('tcp-wide', (link) => void called.accept(link).then((stream) => stream.pipe(stream)));
  const { link, stream } = await open();
  assert.equal(link.purpose, 'tcp-wide');
  stream.end('there and back');
  assert.equal((await readAll(stream)).toString(), 'there and back');
});

test('a lane of no connection is reset, and a ticket is worth nothing to another agent', async () => {
  await using world = new LinkWorld();
  const { near, far, caller, called } = await nodes(world);
  const side = new WideCalled(new LastingCalled({ clock: systemClock, isNamed: () => false }), {
    clock: systemClock,
    lanes: NO_LANES,
    isNamed: () => false,
  });
  const accepted: Promise<unknown>[] = [];
  far.links.accept('tcp-wide', (link) => void accepted.push(side.accept(link)));
  const joins: Promise<void>[] = [];
  far.links.accept('tcp-lane', (link) => void joins.push(side.join(link)));
  const ticket = randomBytes(16);
  const first = await near.links.open(caller, called, 'tcp-wide');
  first.write(ticket);
  const other = near.host().aid;
  const foreign = await near.links.open(other, called, 'tcp-lane');
  const unknown = await near.links.open(caller, called, 'tcp-lane');
  for (const [lane, shown] of [
    [foreign, ticket],
    [unknown, randomBytes(16)],
  ] as const) {
    const broken = once(lane, 'error');
    lane.write(shown);
    const [error]: unknown[] = await broken;
    assert.ok(error instanceof Error && 'code' in error && error.code === 'stream_reset');
  }
  await Promise.all(accepted);
  // Its own caller gets an answer, though there is no room for a lane.
  const lane = await near.links.open(caller, called, 'tcp-lane');
  await assert.rejects(askForBulkLink(lane, NO_LANES, never), { code: 'connect_failed' });
  lane.write(ticket);
  lane.write(Buffer.alloc(4 + 2 + BULK_SECRET_BYTES, 1));
  assert.deepEqual([...(await readAll(lane))], [0, 0, 0, 0, 0, 0]);
  await Promise.all(joins);
  first.destroy();
});

test('a node that opens wide connections without end is refused once it holds its share', async () => {
  await using world = new LinkWorld();
  const { near, far, caller, called } = await nodes(world);
  const side = new WideCalled(new LastingCalled({ clock: systemClock, isNamed: () => false }), {
    clock: systemClock,
    lanes: NO_LANES,
    isNamed: () => false,
  });
  const outcomes: Promise<boolean>[] = [];
  const accept = (link: LinkStream): Promise<boolean> =>
    side.accept(link).then(
      () => true,
      () => false,
    );
  far.links.accept('tcp-wide', (link) => void outcomes.push(accept(link)));
  const room = MAX_WINDOWS_PER_NODE_BYTES / NEW_BYTES;
  const links: LinkStream[] = [];
  for (let i = 0; i <= room; i++) {
    const link = await near.links.open(caller, called, 'tcp-wide');
    link.write(randomBytes(16));
    links.push(link);
  }
  assert.deepEqual(
    await Promise.all(outcomes),
    Array.from({ length: room + 1 }, (_, i) => i < room),
  );
  for (const link of links) link.destroy();
});

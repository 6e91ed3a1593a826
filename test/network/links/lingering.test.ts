/** How many streams linger after the last bytes of this side. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { LinkStream } from '../../../src/network/links/types.ts';
import {
  drainAndDestroy,
  MAX_LINGERING,
  MAX_LINGERING_PER_NODE,
  MAX_LINGERING_PER_SOURCE,
  RESERVED_LINGERING,
  RefusedStreams,
} from '../../../src/network/peers/stream-dispatcher.ts';
import { LinkWorld } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

function fill(lingering: RefusedStreams, count: number, holder: (i: number) => { node: string; source: string }) {
  return Array.from({ length: count }, (_, i) => {
    const stream = new PassThrough();
    lingering.count(stream, { ...holder(i), named: false });
    return stream;
  });
}

test('the newest lingering stream of a node evicts its oldest', async () => {
  const lingering = new RefusedStreams();
  const streams = fill(lingering, MAX_LINGERING_PER_NODE + 1, () => ({ node: 'a', source: '192.0.2.1' }));
  assert.deepEqual([streams[0]?.destroyed, streams[1]?.destroyed, streams.at(-1)?.destroyed], [true, false, false]);
  assert.equal(lingering.size, MAX_LINGERING_PER_NODE);
  const [, second] = streams;
  assert.ok(second);
  await once(second.destroy(), 'close');
  assert.equal(lingering.size, MAX_LINGERING_PER_NODE - 1);
});

test('unlimited node keys of one source, or of many sources, leave room for known nodes', () => {
  const lingering = new RefusedStreams();
  fill(lingering, 2 * MAX_LINGERING_PER_SOURCE, (i) => ({ node: `node ${i}`, source: '192.0.2.1' }));
  assert.equal(lingering.size, MAX_LINGERING_PER_SOURCE);
  fill(lingering, 2 * MAX_LINGERING, (i) => ({ node: `node ${i}`, source: `10.0.${i >> 8}.${i & 255}` }));
  assert.equal(lingering.size, MAX_LINGERING - RESERVED_LINGERING);
  const known = new PassThrough();
  lingering.count(known, { node: 'known', source: '192.0.2.1', named: true });
  assert.equal(known.destroyed, false);
});

test('closed links linger, count once each, and the oldest of a node is evicted', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [near, far] = [await world.node(), await world.node()];
  const [caller, called] = [near.host(), far.host()];
  const links: LinkStream[] = [];
  far.links.accept('note', (link) => {
    links.push(link);
    link.on('error', () => {});
    link.end();
    drainAndDestroy(link, clock);
    drainAndDestroy(link, clock);
  });
  // The caller does not end its half.
  const open = async (): Promise<void> => {
    const link = await near.links.open(caller.aid, called.aid, 'note');
    link.on('error', () => {});
  };
  for (let i = 0; i < MAX_LINGERING_PER_NODE; i++) await open();
  assert.equal(far.pool.gate.lingering, MAX_LINGERING_PER_NODE);
  assert.equal(links[0]?.destroyed, false);
  await open();
  assert.equal(far.pool.gate.lingering, MAX_LINGERING_PER_NODE);
  assert.deepEqual([links[0]?.destroyed, links[1]?.destroyed, links.at(-1)?.destroyed], [true, false, false]);
});

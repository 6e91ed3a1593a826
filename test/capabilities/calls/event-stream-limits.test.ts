import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import {
  EventStreamLimits,
  MAX_EVENT_STREAMS,
  MAX_EVENT_STREAMS_PER_NODE,
  MAX_EVENT_STREAMS_PER_SOURCE,
} from '../../../src/capabilities/calls/event-stream-limits.ts';
import { asLink } from '../../../src/network/links/stream.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { testAid } from '../../support/agents.ts';
import { withCode } from '../../support/link-world.ts';

const NAMED = testAid(7);
const THISMACHINE = '127.0.0.1';

/** A link of a node's agent, from an IP address. */
function linkFrom(host: string, node: number, caller = testAid(100 + node)): LinkStream {
  const nodeKey = new Uint8Array(32).fill(node);
  const names = { caller, called: testAid(1), purpose: 'http', accessToken: undefined, nodeKey } as const;
  return asLink(new PassThrough(), names, () => ({ ...plainPath('direct', { host, port: 1 }), rttMs: 0 }));
}

function placesOf(): {
  places: EventStreamLimits;
  cut: string[];
  hold: (link: LinkStream, count: number) => (() => void)[];
} {
  const places = new EventStreamLimits({ isNamed: ({ caller }) => caller === NAMED });
  const cut: string[] = [];
  const hold = (link: LinkStream, count: number): (() => void)[] =>
    Array.from({ length: count }, () => places.enter(link, () => void cut.push(`${link.nodeKey?.[0]}`)));
  return { places, cut, hold };
}

const refused = withCode('rate_limited');

test('the limits per node, per address and in total grow in this order', () => {
  const { places, cut, hold } = placesOf();
  const node = linkFrom('192.0.2.1', 1);
  const leaves = hold(node, MAX_EVENT_STREAMS_PER_NODE);
  assert.throws(() => hold(node, 1), { code: 'rate_limited', details: { retry_after_s: 1 } });
  leaves.pop()?.();
  hold(node, 1);
  assert.throws(() => hold(node, 1), refused);
  // Half as many streams as the first node has, so no stream is evicted.
  const neighbour = linkFrom('192.0.2.1', 2, NAMED);
  hold(neighbour, MAX_EVENT_STREAMS_PER_SOURCE - MAX_EVENT_STREAMS_PER_NODE);
  assert.deepEqual(cut, []);
  const elsewhere = linkFrom('192.0.2.2', 3);
  hold(elsewhere, MAX_EVENT_STREAMS - MAX_EVENT_STREAMS_PER_SOURCE);
  assert.equal(places.active, MAX_EVENT_STREAMS);
  assert.throws(() => hold(node, 1), refused);
  assert.deepEqual(cut, []);
});

test('strangers with more streams are evicted in favor of strangers with fewer, until all have equally many', () => {
  const { places, cut, hold } = placesOf();
  const [first, second] = [linkFrom('192.0.2.1', 1), linkFrom('192.0.2.2', 2)];
  hold(first, MAX_EVENT_STREAMS_PER_NODE);
  hold(second, MAX_EVENT_STREAMS - MAX_EVENT_STREAMS_PER_NODE);
  const late = linkFrom('192.0.2.3', 3);
  const fair = Math.floor(MAX_EVENT_STREAMS / 3);
  hold(late, fair - 1);
  assert.equal(places.active, MAX_EVENT_STREAMS);
  assert.equal(cut.length, fair - 1);
  const [ofFirst, ofSecond] = ['1', '2'].map((node) => cut.filter((one) => one === node).length);
  assert.ok(Math.abs((ofFirst ?? 0) - (ofSecond ?? 0)) <= 1, `${ofFirst} and ${ofSecond} were evicted`);
  // A node that lost a stream does not get one from nodes with equally few.
  const before = cut.length;
  for (const link of [first, second, late]) assert.throws(() => hold(link, 3), refused);
  assert.ok(cut.length - before <= 2);
});

test('many keys at one address share the quota of the address', () => {
  const { cut, hold } = placesOf();
  hold(linkFrom('192.0.2.1', 1), MAX_EVENT_STREAMS_PER_NODE);
  hold(linkFrom('192.0.2.1', 2), MAX_EVENT_STREAMS_PER_SOURCE - MAX_EVENT_STREAMS_PER_NODE);
  hold(linkFrom('192.0.2.1', 3), 1);
  assert.deepEqual(cut, ['1']);
  hold(linkFrom('192.0.2.2', 4), MAX_EVENT_STREAMS - MAX_EVENT_STREAMS_PER_SOURCE);
  // If no slot is left at all, the address with the most streams loses one, regardless of keys.
  hold(linkFrom('192.0.2.3', 5), 1);
  assert.equal(cut.length, 2);
  assert.ok(cut[1] === '1' || cut[1] === '2');
});

test('strangers are evicted for callers allowed by name; named callers are never evicted', () => {
  const { cut, hold } = placesOf();
  const nodes = [1, 2];
  for (const node of nodes) hold(linkFrom(THISMACHINE, node), MAX_EVENT_STREAMS_PER_NODE);
  const friend = linkFrom(THISMACHINE, 3, NAMED);
  hold(friend, MAX_EVENT_STREAMS_PER_NODE);
  assert.equal(cut.length, MAX_EVENT_STREAMS_PER_NODE);
  assert.throws(() => hold(friend, 1), refused);
  const another = linkFrom(THISMACHINE, 4, NAMED);
  hold(another, MAX_EVENT_STREAMS_PER_NODE);
  // Only named callers are left.
  assert.throws(() => hold(linkFrom(THISMACHINE, 5), 1), refused);
  assert.throws(() => hold(linkFrom(THISMACHINE, 6, NAMED), 1), refused);
  assert.ok(!cut.includes('3') && !cut.includes('4'));
});

test('an evicted stream releases its slot only once', () => {
  const { places, hold } = placesOf();
  const leaves = [1, 2].flatMap((node) => hold(linkFrom(THISMACHINE, node), MAX_EVENT_STREAMS_PER_NODE));
  leaves.push(...hold(linkFrom(THISMACHINE, 3), 1));
  assert.equal(places.active, MAX_EVENT_STREAMS);
  for (const leave of leaves) leave();
  for (const leave of leaves) leave();
  assert.equal(places.active, 0);
});

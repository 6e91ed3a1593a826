import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import {
  callQuota,
  eventStreamQuota,
  MAX_CALLS,
  MAX_CALLS_PER_CALLER,
  MAX_CALLS_PER_NETWORK,
  MAX_CALLS_PER_NODE,
  MAX_CALLS_PER_SOURCE,
  MAX_EVENT_STREAMS,
  MAX_EVENT_STREAMS_PER_NODE,
  MAX_EVENT_STREAMS_PER_SOURCE,
  RESERVED_CALLS,
  takeSlot,
} from '../../../src/capabilities/calls/caller-limits.ts';
import type { Quota, QuotaShare } from '../../../src/foundation/quota.ts';
import { pairHolder } from '../../../src/network/links/holder.ts';
import { asLink } from '../../../src/network/links/stream.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { testAid } from '../../support/agents.ts';
import { withCode } from '../../support/link-world.ts';

const stranger = { named: false, onEvict: () => {} };

/** A link from an IP address, by one of the agents of a node. */
function linkFrom(host: string, node: number, caller = 100 + node): LinkStream {
  const nodeKey = new Uint8Array(32).fill(node);
  const names = {
    caller: testAid(caller),
    called: testAid(1),
    purpose: 'http',
    accessToken: undefined,
    nodeKey,
  } as const;
  return asLink(new PassThrough(), names, () => ({ ...plainPath('direct', { host, port: 1 }), rttMs: 0 }));
}

interface Entry {
  readonly named: boolean;
  readonly isSwitched?: boolean;
  readonly onEvict: () => void;
}

function enter(limits: Quota, link: LinkStream, { named, isSwitched = false, onEvict }: Entry): QuotaShare {
  return takeSlot(limits.share(pairHolder(link, named, isSwitched ? 'switched ' : ''), onEvict));
}

/** Uses all slots of one node. Returns them. */
function fill(limits: Quota, host: string, node: number, onEvict: () => void = () => {}): QuotaShare[] {
  const callers = MAX_CALLS_PER_NODE / MAX_CALLS_PER_CALLER;
  const links = Array.from({ length: callers }, (_, i) => linkFrom(host, node, 10 * node + i));
  return links.flatMap((link) =>
    Array.from({ length: MAX_CALLS_PER_CALLER }, () => enter(limits, link, { named: false, onEvict })),
  );
}

test('strangers are limited per address, per network and in total', () => {
  const limits = callQuota();
  const leave: QuotaShare[] = [];
  const evicted: number[] = [];
  for (const node of [1, 2]) leave.push(...fill(limits, '192.0.2.1', node, () => evicted.push(node)));
  assert.equal(limits.used, MAX_CALLS_PER_SOURCE);
  enter(limits, linkFrom('192.0.2.1', 99, 2), stranger).release();
  assert.deepEqual(evicted, [1], 'a node with more calls is evicted in favor of a LAN peer');
  assert.throws(() => enter(limits, linkFrom('192.0.2.1', 2, 500), stranger), withCode('rate_limited'));
  leave.push(...fill(limits, '192.0.2.2', 3));
  assert.equal(limits.used, MAX_CALLS_PER_NETWORK - 1);
  leave.push(
    ...fill(limits, '198.51.100.1', 4),
    ...fill(limits, '198.51.101.1', 5),
    ...fill(limits, '198.51.102.1', 6),
  );
  assert.equal(limits.used, MAX_CALLS - RESERVED_CALLS - 1);
  enter(limits, linkFrom('127.0.0.1', 99, 2), stranger).release();
  for (const slot of leave) slot.release();
  assert.equal(limits.used, 0);
});

test('a caller allowed by name is served while strangers use all their slots', () => {
  const limits = callQuota();
  for (let node = 1; node <= 6; node++) fill(limits, `198.51.${100 + Math.ceil(node / 2)}.1`, node);
  assert.throws(() => enter(limits, linkFrom('198.51.101.1', 1, 500), stranger), withCode('rate_limited'));
  const friend = { named: true, onEvict: () => assert.fail('evicted') };
  const calls = Array.from({ length: MAX_CALLS_PER_CALLER }, () =>
    enter(limits, linkFrom('198.51.101.1', 77, 2), friend),
  );
  for (const slot of calls) slot.release();
});

test('one caller has limits for calls to one agent and, separately, for protocol switches', () => {
  const limits = callQuota();
  const link = linkFrom('192.0.2.1', 1, 2);
  for (const isSwitched of [false, true]) {
    const leaves = Array.from({ length: MAX_CALLS_PER_CALLER }, () => enter(limits, link, { ...stranger, isSwitched }));
    const refused = { code: 'rate_limited', details: { retry_after_s: 1 } };
    assert.throws(() => enter(limits, link, { ...stranger, isSwitched }), refused);
    leaves[0]?.release();
    enter(limits, link, { ...stranger, isSwitched });
    assert.throws(() => enter(limits, link, { ...stranger, isSwitched }), refused);
  }
  enter(limits, linkFrom('192.0.2.1', 1, 3), stranger).release();
});

/** An agent that the owner allowed by name. */
const NAMED = 7;
const THISMACHINE = '127.0.0.1';

function placesOf(): {
  places: Quota;
  cut: string[];
  hold: (link: LinkStream, count: number) => QuotaShare[];
} {
  const places = eventStreamQuota();
  const cut: string[] = [];
  const hold = (link: LinkStream, count: number): QuotaShare[] =>
    Array.from({ length: count }, () => {
      const holder = pairHolder(link, link.caller === testAid(NAMED));
      return takeSlot(
        places.share(holder, () => void cut.push(`${link.nodeKey?.[0]}`)),
        'event streams',
      );
    });
  return { places, cut, hold };
}

const refused = withCode('rate_limited');

test('the limits per node, per address and in total grow in this order', () => {
  const { places, cut, hold } = placesOf();
  const node = linkFrom('192.0.2.1', 1);
  const leaves = hold(node, MAX_EVENT_STREAMS_PER_NODE);
  assert.throws(() => hold(node, 1), { code: 'rate_limited', details: { retry_after_s: 1 } });
  leaves.pop()?.release();
  hold(node, 1);
  assert.throws(() => hold(node, 1), refused);
  // Half as many streams as the first node has, so no stream is evicted.
  const neighbour = linkFrom('192.0.2.1', 2, NAMED);
  hold(neighbour, MAX_EVENT_STREAMS_PER_SOURCE - MAX_EVENT_STREAMS_PER_NODE);
  assert.deepEqual(cut, []);
  const elsewhere = linkFrom('192.0.2.2', 3);
  hold(elsewhere, MAX_EVENT_STREAMS - MAX_EVENT_STREAMS_PER_SOURCE);
  assert.equal(places.used, MAX_EVENT_STREAMS);
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
  assert.equal(places.used, MAX_EVENT_STREAMS);
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
  assert.equal(places.used, MAX_EVENT_STREAMS);
  for (const slot of leaves) slot.release();
  for (const slot of leaves) slot.release();
  assert.equal(places.used, 0);
});

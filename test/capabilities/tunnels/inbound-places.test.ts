import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type InboundPlace,
  InboundPlaces,
  MAX_CONNECTIONS_PER_CALLER,
} from '../../../src/capabilities/tunnels/inbound-places.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { pairHolder } from '../../../src/network/links/holder.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

const CALLED = newIdentity().aid;

interface Who {
  readonly aid: Aid;
  readonly node: number | null;
  readonly host: string;
}

let nodes = 0;

function stranger(host: string, node: number | null = ++nodes): Who {
  return { aid: newIdentity().aid, node, host };
}

class World {
  readonly clock = new TestClock();
  readonly named = new Set<Aid>();
  readonly cut: Who[] = [];
  readonly places: InboundPlaces;

  constructor(maxConnections: number) {
    this.places = new InboundPlaces(this.clock, () => maxConnections);
  }

  take(who: Who): InboundPlace | null {
    const { aid, node, host } = who;
    const link = {
      caller: aid,
      called: CALLED,
      nodeKey: node === null ? null : Uint8Array.of(node),
      path: () => ({ ...plainPath('direct', { host, port: 1 }), rttMs: 0 }),
    };
    return this.places.take(pairHolder(link, this.named.has(aid)), () => this.cut.push(who));
  }

  /** The number of places that a caller gets. */
  fill(who: Who): number {
    let count = 0;
    while (this.take(who) !== null) count++;
    return count;
  }
}

test('a node gets half of the places, an address three quarters, and strangers leave an eighth free', () => {
  const world = new World(100);
  const host = '192.0.2.1';
  const [first, second] = [stranger(host), stranger(host)];
  assert.equal(world.fill(first), 50);
  assert.equal(world.fill(second), 37, 'until both nodes of the address have the same');
  assert.equal(world.cut.length, 12);
  assert.ok(world.cut.every((who) => who === first));
  assert.equal(world.fill(stranger('198.51.100.2')), 44, 'until both networks have the same');
  assert.equal(world.cut.length, 12 + 31);
});

test('the connections of one caller to one agent are limited', () => {
  const world = new World(Number.POSITIVE_INFINITY);
  assert.equal(world.fill(stranger('192.0.2.1')), MAX_CONNECTIONS_PER_CALLER);
});

test('a place is released once, even if released twice', () => {
  const world = new World(2);
  const [one, other] = [stranger('192.0.2.1'), stranger('198.51.100.2')];
  const place = world.take(one);
  assert.equal(world.fill(other), 1);
  place?.leave();
  place?.leave();
  assert.equal(world.fill(one), 1);
  assert.equal(world.fill(stranger('203.0.113.3')), 0);
});

test('the idlest connection of the largest stranger is evicted', () => {
  const world = new World(8);
  const [a, b, c] = [stranger('192.0.2.1'), stranger('198.51.100.2'), stranger('203.0.113.3')];
  const held = [1, 2, 3, 4].map(() => {
    const who = { ...a };
    return { who, place: world.take(who) };
  });
  for (let i = 0; i < 3; i++) world.take(b);
  world.clock.advance(2000);
  held[0]?.place?.used();
  assert.ok(world.take(c) !== null);
  assert.deepEqual(world.cut, [held[1]?.who]);
  assert.equal(world.take(a), null, 'its own share is no longer the largest');
});

test('named callers evict strangers, and are never evicted by others', () => {
  const world = new World(4);
  const [a, friend, c] = [stranger('192.0.2.1'), stranger('198.51.100.2'), stranger('203.0.113.3')];
  world.named.add(friend.aid);
  world.fill(a);
  world.fill(stranger('198.18.0.4'));
  assert.equal(world.fill(friend), 2);
  assert.equal(world.cut.length, 2);
  assert.equal(world.fill(c), 0, 'each stranger has one');
  assert.ok(!world.cut.includes(friend));
});

test('agents of this daemon are no strangers, and no network is counted against them', () => {
  const world = new World(4);
  assert.equal(world.fill(stranger('127.0.0.1', null)), 2);
  assert.equal(world.fill(stranger('192.0.2.1')), 2);
  assert.equal(world.fill(stranger('198.51.100.2')), 1, 'until both have one');
  assert.equal(world.cut.length, 1);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detach } from '../../../src/foundation/detached.ts';
import type { NatMapping } from '../../../src/foundation/domain/directory.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { NodeAbsent, type NodePlace } from '../../../src/network/peers/dial.ts';
import type { NodeSession } from '../../../src/network/peers/session.ts';
import type { InterfaceAddress } from '../../../src/network/reachability/dial-guard.ts';
import {
  IMPROVEMENT_DELAY_MS,
  IPV6_HEAD_START_MS,
  punchDialer,
} from '../../../src/network/reachability/punch-dialer.ts';
import { NEXT_HELPER_DELAY_MS, REMAINING_HELPERS_MS } from '../../../src/network/reachability/reachable-helpers.ts';
import { type LocalNetwork, relayDialer } from '../../../src/network/reachability/relay-dialers.ts';
import { BIRTHDAY_ROUNDS, BIRTHDAY_SPACING_MS } from '../../../src/network/transport/engine-connection.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import type { Connection } from '../../../src/network/transport/types.ts';
import { stubSession } from '../../support/stub-session.ts';
import { TestClock } from '../../support/test-clock.ts';

const key = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
const [OWN, CALLED, NEAR, FAR, DEAD] = [key(1), key(2), key(3), key(4), key(5)];
const AT = { host: '198.51.100.1', port: 4122 };
const RELAYED = plainPath('relay', AT);
const PUNCHED = plainPath('punched', AT);

function place(...keys: readonly Uint8Array[]): NodePlace {
  return { nodeKey: CALLED, addresses: [], natType: 0, helpers: keys.map((nodeKey) => ({ nodeKey, address: AT })) };
}

function world() {
  const clock = new TestClock();
  const state: {
    current: NodeSession | null;
    mapping: NatMapping;
    hasAnswered: boolean;
    interfaces: InterfaceAddress[];
  } = {
    current: null,
    mapping: 'symmetric',
    hasAnswered: false,
    interfaces: [],
  };
  const asked: Uint8Array[][] = [];
  const overIpv6: string[] = [];
  const punchingOverIpv6 = Promise.withResolvers<Connection>();
  let punching = Promise.withResolvers<Connection>();
  const own: LocalNetwork = { interfaces: () => state.interfaces, mapping: () => state.mapping };
  const pool: Parameters<typeof punchDialer>[0]['pool'] = {
    nodeKey: OWN,
    current: () => state.current,
    connect: ({ nodeKey }) => {
      if (nodeKey === DEAD) return Promise.reject(new SvcError('connect_failed'));
      const { session } = stubSession(nodeKey, true, clock);
      if (nodeKey === NEAR) return Promise.resolve(session);
      return new Promise((resolve) => clock.after(2 * REMAINING_HELPERS_MS, () => resolve(session)));
    },
  };
  const punches = punchDialer({
    clock,
    pool,
    own,
    initiator: {
      punch: (_key, helpers, options) => {
        asked.push(helpers.map(({ nodeKey }) => nodeKey));
        if (state.hasAnswered) options?.onAnswer?.();
        return punching.promise;
      },
      punchOverIpv6: (_key, _helper, at) => {
        overIpv6.push(at.host);
        return punchingOverIpv6.promise;
      },
    },
  });
  const stub = (path = PUNCHED, outbound = true) => stubSession(CALLED, outbound, clock, path);
  const nextPunch = () => {
    punching = Promise.withResolvers<Connection>();
    punching.promise.catch(() => {});
    return punching;
  };
  return {
    clock,
    pool,
    own,
    state,
    asked,
    overIpv6,
    punchingOverIpv6,
    punches,
    stub,
    punching: () => punching,
    nextPunch,
  };
}

test('punching needs a helper other than the two nodes', () => {
  const { punches } = world();
  assert.equal(punches.mayLead(place()), false);
  assert.equal(punches.mayLead(place(OWN, CALLED)), false);
  assert.equal(punches.mayLead(place(OWN, NEAR)), true);
});

test('reachable helpers introduce two nodes, and slow or unreachable helpers cause a short delay at most', async () => {
  const { clock, punches, asked, punching, stub } = world();
  const dialling = punches.dial(place(DEAD, FAR, NEAR), new AbortController().signal);
  await clock.run(REMAINING_HELPERS_MS);
  assert.deepEqual(asked, [[NEAR]]);
  const { connection } = stub().session;
  punching().resolve(connection);
  assert.equal(await dialling, connection);
});

test('without random ports the first reachable helper is enough, unless it does not know the node', async () => {
  const { clock, punches, asked, punching, nextPunch, stub, state } = world();
  state.mapping = 'cone';
  const dialling = punches.dial(place(FAR, DEAD, NEAR), new AbortController().signal);
  await clock.run(0);
  assert.deepEqual(asked, [[NEAR]], 'immediately');
  const first = punching();
  const { connection } = stub().session;
  nextPunch().resolve(connection);
  first.reject(new NodeAbsent());
  await clock.run(2 * REMAINING_HELPERS_MS);
  assert.equal(await dialling, connection);
  assert.deepEqual(asked, [[NEAR], [FAR]]);
});

test('a silent helper delays punching through another one briefly, and a helper that has answered does not', async () => {
  for (const hasAnswered of [false, true]) {
    const { clock, punches, asked, punching, nextPunch, stub, state } = world();
    Object.assign(state, { mapping: 'cone', hasAnswered });
    const dialling = punches.dial(place(FAR, NEAR), new AbortController().signal);
    await clock.run(NEXT_HELPER_DELAY_MS - 1);
    assert.deepEqual(asked, [[NEAR]]);
    const { connection } = stub().session;
    const first = punching();
    (hasAnswered ? first : nextPunch()).resolve(connection);
    await clock.run(2 * REMAINING_HELPERS_MS);
    assert.equal(await dialling, connection);
    assert.deepEqual(asked, hasAnswered ? [[NEAR]] : [[NEAR], [FAR]]);
  }
});

test('if both nodes have IPv6, this is tried first, then IPv4 after a short delay, or immediately after a failure', async () => {
  const there = { ...place(NEAR), addresses: [{ host: '2001:db8::2', port: 4122 }] };
  const here = { address: '2001:db8:1::1', cidr: '2001:db8:1::1/64' };
  for (const fails of [false, true]) {
    const { clock, punches, asked, overIpv6, punchingOverIpv6, stub, state } = world();
    state.mapping = 'cone';
    state.interfaces = [here];
    const dialling = punches.dial(there, new AbortController().signal);
    if (fails) punchingOverIpv6.reject(new SvcError('connect_failed'));
    await clock.run(fails ? 0 : IPV6_HEAD_START_MS - 1);
    assert.deepEqual([overIpv6, asked.length], [['2001:db8::2'], fails ? 1 : 0]);
    await clock.run(1);
    assert.equal(asked.length, 1);
    const { connection } = stub().session;
    punchingOverIpv6.resolve(connection);
    if (!fails) assert.equal(await dialling, connection);
    else detach(dialling);
  }
  const { clock, punches, overIpv6 } = world();
  detach(punches.dial(there, new AbortController().signal));
  await clock.run(2 * REMAINING_HELPERS_MS);
  assert.deepEqual(overIpv6, [], 'this node has no IPv6');
});

test('a node that none of its helpers knows is absent, and after a refusal no other helper receives a request', async () => {
  const { clock, punches, asked, nextPunch, state } = world();
  state.mapping = 'cone';
  nextPunch().reject(new NodeAbsent());
  const absent = assert.rejects(punches.dial(place(FAR, NEAR), new AbortController().signal), NodeAbsent);
  await clock.run(2 * REMAINING_HELPERS_MS);
  await absent;
  assert.deepEqual(asked.splice(0), [[NEAR], [FAR]]);
  nextPunch().reject(new SvcError('rate_limited'));
  const { signal } = new AbortController();
  await assert.rejects(punches.dial(place(FAR, NEAR), signal), { code: 'rate_limited' });
  assert.deepEqual(asked, [[NEAR]]);
});

test('the first round of random ports follows a relay immediately, unless one is running or none is needed', () => {
  for (const [mapping, isUnderWay, firstMs, soon] of [
    ['symmetric', false, IMPROVEMENT_DELAY_MS, BIRTHDAY_ROUNDS],
    ['symmetric', true, BIRTHDAY_SPACING_MS, BIRTHDAY_ROUNDS - 1],
    ['cone', false, BIRTHDAY_SPACING_MS, BIRTHDAY_ROUNDS - 1],
  ] as const) {
    const { punches, state } = world();
    state.mapping = mapping;
    const rounds = punches.rounds?.(place(NEAR), isUnderWay);
    assert.deepEqual([rounds?.firstMs, rounds?.soon], [firstMs, soon]);
  }
});

test('helpers receive relay requests in sequence', async () => {
  const { stub, pool, own, clock } = world();
  const { connection } = stub(RELAYED).session;
  const asked: Uint8Array[] = [];
  const dialler = relayDialer(clock, pool, own, {
    relay: (_key, { nodeKey }) => {
      asked.push(nodeKey);
      return nodeKey === FAR ? Promise.resolve(connection) : Promise.reject(new SvcError('rate_limited'));
    },
  });
  const { signal } = new AbortController();
  const there = place(FAR, OWN, DEAD, NEAR);
  const dialling = dialler.dial(there, signal);
  await clock.run(2 * REMAINING_HELPERS_MS);
  assert.equal(await dialling, connection);
  assert.deepEqual(asked, [NEAR, FAR], 'the helper that is reached first receives the first request');
  await assert.rejects(dialler.dial(place(NEAR), signal), { code: 'rate_limited' });
  await assert.rejects(dialler.dial(place(DEAD), signal), { code: 'connect_failed' });
  assert.equal(dialler.mayLead(place(OWN)), false);
});

test('a silent helper delays a relay through another one only briefly', async () => {
  const { stub, pool, own, clock } = world();
  const { connection } = stub(RELAYED).session;
  const asked: Uint8Array[] = [];
  const dialler = relayDialer(clock, pool, own, {
    relay: (_key, { nodeKey }) => {
      asked.push(nodeKey);
      return nodeKey === FAR ? Promise.resolve(connection) : new Promise(() => {});
    },
  });
  const dialling = dialler.dial(place(FAR, NEAR), new AbortController().signal);
  await clock.run(NEXT_HELPER_DELAY_MS - 1);
  assert.deepEqual(asked, [NEAR]);
  await clock.run(1);
  assert.equal(await dialling, connection);
});

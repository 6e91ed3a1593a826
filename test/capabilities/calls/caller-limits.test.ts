import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import {
  CallerLimits,
  MAX_CALLS,
  MAX_CALLS_PER_CALLER,
  MAX_CALLS_PER_NETWORK,
  MAX_CALLS_PER_NODE,
  MAX_CALLS_PER_SOURCE,
  RESERVED_CALLS,
} from '../../../src/capabilities/calls/caller-limits.ts';
import { asLink } from '../../../src/network/links/stream.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { testAid } from '../../support/agents.ts';
import { withCode } from '../../support/link-world.ts';

const stranger = { named: false, onEvict: () => {} };

/** A link from an IP address, by one of the agents of a node. */
function linkFrom(host: string, node: number, caller: number): LinkStream {
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

/** Uses all slots of one node. Returns functions that release them. */
function fill(limits: CallerLimits, host: string, node: number, onEvict: () => void = () => {}): (() => void)[] {
  const callers = MAX_CALLS_PER_NODE / MAX_CALLS_PER_CALLER;
  const links = Array.from({ length: callers }, (_, i) => linkFrom(host, node, 10 * node + i));
  return links.flatMap((link) =>
    Array.from({ length: MAX_CALLS_PER_CALLER }, () => limits.enter(link, { named: false, onEvict })),
  );
}

test('strangers are limited per address, per network and in total', () => {
  const limits = new CallerLimits();
  const leave: (() => void)[] = [];
  const evicted: number[] = [];
  for (const node of [1, 2]) leave.push(...fill(limits, '192.0.2.1', node, () => evicted.push(node)));
  assert.equal(limits.active, MAX_CALLS_PER_SOURCE);
  limits.enter(linkFrom('192.0.2.1', 99, 2), stranger)();
  assert.deepEqual(evicted, [1], 'a node with more calls is evicted in favor of a LAN peer');
  assert.throws(() => limits.enter(linkFrom('192.0.2.1', 2, 500), stranger), withCode('rate_limited'));
  leave.push(...fill(limits, '192.0.2.2', 3));
  assert.equal(limits.active, MAX_CALLS_PER_NETWORK - 1);
  leave.push(
    ...fill(limits, '198.51.100.1', 4),
    ...fill(limits, '198.51.101.1', 5),
    ...fill(limits, '198.51.102.1', 6),
  );
  assert.equal(limits.active, MAX_CALLS - RESERVED_CALLS - 1);
  limits.enter(linkFrom('127.0.0.1', 99, 2), stranger)();
  for (const end of leave) end();
  assert.equal(limits.active, 0);
});

test('a caller allowed by name is served while strangers use all their slots', () => {
  const limits = new CallerLimits();
  for (let node = 1; node <= 6; node++) fill(limits, `198.51.${100 + Math.ceil(node / 2)}.1`, node);
  assert.throws(() => limits.enter(linkFrom('198.51.101.1', 1, 500), stranger), withCode('rate_limited'));
  const friend = { named: true, onEvict: () => assert.fail('evicted') };
  const calls = Array.from({ length: MAX_CALLS_PER_CALLER }, () =>
    limits.enter(linkFrom('198.51.101.1', 77, 2), friend),
  );
  for (const end of calls) end();
});

test('one caller has limits for calls to one agent and, separately, for protocol switches', () => {
  const limits = new CallerLimits();
  const link = linkFrom('192.0.2.1', 1, 2);
  for (const isSwitched of [false, true]) {
    const leaves = Array.from({ length: MAX_CALLS_PER_CALLER }, () => limits.enter(link, { ...stranger, isSwitched }));
    const refused = { code: 'rate_limited', details: { retry_after_s: 1 } };
    assert.throws(() => limits.enter(link, { ...stranger, isSwitched }), refused);
    leaves[0]?.();
    limits.enter(link, { ...stranger, isSwitched });
    assert.throws(() => limits.enter(link, { ...stranger, isSwitched }), refused);
  }
  limits.enter(linkFrom('192.0.2.1', 1, 3), stranger)();
});

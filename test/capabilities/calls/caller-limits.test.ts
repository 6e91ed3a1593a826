import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import {
  CallerLimits,
  MAX_CALLS,
  MAX_CALLS_PER_CALLER,
  MAX_CALLS_PER_NODE,
  MAX_CALLS_PER_SOURCE,
} from '../../../src/capabilities/calls/caller-limits.ts';
import { asLink } from '../../../src/network/links/stream.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { plainPath } from '../../../src/network/path.ts';
import { testAid } from '../../support/agents.ts';
import { withCode } from '../../support/link-world.ts';

/** A link of one of a node's callers, from an IP address. */
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

/** Takes all that one node may have; returns how to give it back. */
function fill(limits: CallerLimits, host: string, node: number): (() => void)[] {
  const callers = MAX_CALLS_PER_NODE / MAX_CALLS_PER_CALLER;
  const links = Array.from({ length: callers }, (_, i) => linkFrom(host, node, 10 * node + i));
  return links.flatMap((link) => Array.from({ length: MAX_CALLS_PER_CALLER }, () => limits.enter(link)));
}

test('all nodes on one address together have a share of the calls, and the others have theirs', () => {
  const limits = new CallerLimits();
  const leave: (() => void)[] = [];
  const nodes = MAX_CALLS_PER_SOURCE / MAX_CALLS_PER_NODE;
  for (let node = 1; node <= nodes; node++) leave.push(...fill(limits, '192.0.2.1', node));
  assert.throws(() => limits.enter(linkFrom('192.0.2.1', 99, 2)), withCode('rate_limited'));
  assert.throws(() => limits.enter(linkFrom('192.0.2.1', 99, 2), true), withCode('rate_limited'));
  limits.enter(linkFrom('192.0.2.2', 99, 2))();
  limits.enter(linkFrom('127.0.0.1', 99, 2))();
  for (const end of leave) end();
  assert.equal(limits.active, 0);
  limits.enter(linkFrom('192.0.2.1', 99, 2));
});

test('nodes on this machine share no source, and all nodes together have so many calls', () => {
  const limits = new CallerLimits();
  const nodes = MAX_CALLS / MAX_CALLS_PER_NODE;
  for (let node = 1; node <= nodes; node++) fill(limits, '127.0.0.1', node);
  assert.equal(limits.active, MAX_CALLS);
  assert.throws(() => limits.enter(linkFrom('192.0.2.1', 99, 2)), withCode('rate_limited'));
});

test('one caller has so many calls to one agent, and as many that are to switch, counted apart', () => {
  const limits = new CallerLimits();
  const link = linkFrom('192.0.2.1', 1, 2);
  for (const isSwitched of [false, true]) {
    const leaves = Array.from({ length: MAX_CALLS_PER_CALLER }, () => limits.enter(link, isSwitched));
    const refused = { code: 'rate_limited', details: { retry_after_s: 1 } };
    assert.throws(() => limits.enter(link, isSwitched), refused);
    leaves[0]?.();
    limits.enter(link, isSwitched);
    assert.throws(() => limits.enter(link, isSwitched), refused);
  }
  limits.enter(linkFrom('192.0.2.1', 1, 3))();
});

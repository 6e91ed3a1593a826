/** Limits of concurrent reads and of requests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  MAX_READS,
  MAX_READS_PER_CALLER,
  MAX_READS_PER_NODE,
  MAX_READS_PER_SOURCE,
  REQUEST_RATE_PER_NETWORK,
  REQUEST_RATE_PER_SOURCE,
  RESERVED_READS,
  ReaderLimits,
} from '../../../src/capabilities/objects/reader-limits.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

const FRIEND = testAid(250);
const BUSY = { code: 'rate_limited', details: { retry_after_s: 2 } };

/** Reads of any number of callers. The callers of one node are consecutive. */
function reader() {
  const clock = new TestClock();
  const limits = new ReaderLimits({ clock, isNamed: ({ caller }) => caller === FRIEND });
  /** Each node is in a separate network by default. */
  const enter = (caller: number, node: number | null, host = `10.${node ?? 0}.0.1`, cut = (): void => {}) => {
    const path = { ...plainPath('direct', { host, port: 1 }), rttMs: 0 };
    const nodeKey = node === null ? null : new Uint8Array(32).fill(node);
    return limits.enter({ caller: testAid(caller), called: testAid(1), nodeKey, path: () => path }, cut);
  };
  const fill = (count: number): (() => void)[] =>
    Array.from({ length: count }, (_, i) =>
      enter(1 + Math.floor(i / MAX_READS_PER_CALLER), Math.floor(i / MAX_READS_PER_NODE)),
    );
  return { clock, enter, fill };
}

test('strangers with many reads are limited first, and cannot use the reads reserved for named callers', () => {
  const { enter, fill } = reader();
  fill(MAX_READS - RESERVED_READS);
  for (let i = 0; i < RESERVED_READS; i++) enter(250, null, '', () => assert.fail('a named caller is never evicted'))();
  enter(250, 200);
  let cut = 0;
  enter(200, 201, '10.201.0.1', () => cut++);
  assert.throws(() => enter(1, 0), BUSY, 'it uses most');
  assert.equal(cut, 0);
});

test('many node keys of one source share a limit of concurrent reads', () => {
  const { enter } = reader();
  const one = '192.0.2.1';
  for (let i = 0; i < MAX_READS_PER_SOURCE; i++) enter(i, i, one);
  assert.throws(() => enter(200, 200, one), BUSY);
  enter(200, 200, '198.51.100.1');
  enter(250, 201, one);
});

test('the agents of one node share a limit, and one agent has a lower one on any node', () => {
  const { enter, fill } = reader();
  const [leave] = fill(MAX_READS_PER_NODE);
  assert.throws(() => enter(200, 0), BUSY);
  assert.throws(() => enter(1, 200), BUSY);
  leave?.();
  enter(200, 0);
  enter(1, 200);
});

test('a node has a limited request rate, and receives a retry time', () => {
  const { clock, enter } = reader();
  for (let i = 0; i < 400; i++) enter(1, 0)();
  assert.throws(() => enter(2, 0), { code: 'rate_limited', details: { retry_after_s: 1 } });
  enter(1, 1)();
  clock.advance(10);
  enter(2, 0)();
  assert.throws(() => enter(2, 0), { code: 'rate_limited' });
});

test('node keys of one source or network share a request rate, which named callers do not use', () => {
  const { enter } = reader();
  const refused = { code: 'rate_limited', details: { retry_after_s: 1 } };
  for (let i = 0; i < REQUEST_RATE_PER_SOURCE.burst; i++) enter(i % 200, i % 200, '192.0.2.1')();
  assert.throws(() => enter(201, 201, '192.0.2.1'), refused);
  for (let i = REQUEST_RATE_PER_SOURCE.burst; i < REQUEST_RATE_PER_NETWORK.burst; i++)
    enter(202, 202 + (i % 2), '192.0.2.2')();
  assert.throws(() => enter(204, 204, '192.0.2.3'), refused);
  enter(250, 205, '192.0.2.1')();
  enter(206, 206, '198.51.100.1')();
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../../src/foundation/log.ts';
import {
  HELD_BACK_INTERVAL_MS,
  type Holder,
  MAX_HELD_BACK_BYTES,
  MAX_HELD_BACK_PER_NODE_BYTES,
  MAX_HELD_BACK_PER_SOURCE_BYTES,
  ReceiveBudget,
} from '../../../../src/network/transport/quic/receive-memory.ts';
import { TestClock } from '../../../support/test-clock.ts';

class Connection implements Holder {
  readonly remoteKey: Uint8Array;
  readonly bytes: number;
  readonly path: { readonly source: string };
  closed = false;
  constructor(bytes: number, node: number, source = `10.${node}.0.1`) {
    this.path = { source };
    this.bytes = bytes;
    this.remoteKey = Uint8Array.of(node);
  }
  heldBackBytes(): number {
    return this.bytes;
  }
  close(): void {
    this.closed = true;
  }
}

const KNOWN = 200;

function closedAmong(connections: readonly Connection[]): boolean[] {
  const clock = new TestClock();
  const isKnown = ([node]: Uint8Array): boolean => node === KNOWN;
  const guard = new ReceiveBudget(() => connections, clock, silentLog, isKnown);
  guard.start();
  clock.advance(HELD_BACK_INTERVAL_MS);
  guard.stop();
  return connections.map(({ closed }) => closed);
}

/** Connections of different nodes with these parts of the total budget. */
function ofAll(...parts: number[]): Connection[] {
  return parts.map((part, node) => new Connection(part * MAX_HELD_BACK_BYTES, node));
}

/** Connections of one node with these parts of its budget. */
function ofOne(node: number, ...parts: number[]): Connection[] {
  return parts.map((part) => new Connection(part * MAX_HELD_BACK_PER_NODE_BYTES, node));
}

test('if this process stalled, its readers get more time', () => {
  const clock = new TestClock();
  const connections = ofOne(1, 0.6, 0.6);
  const guard = new ReceiveBudget(() => connections, clock, silentLog);
  guard.start();
  clock.advance(HELD_BACK_INTERVAL_MS - 1);
  clock.jump(60_000);
  clock.advance(999);
  assert.deepEqual(
    connections.map(({ closed }) => closed),
    [false, false],
  );
  clock.advance(1);
  assert.deepEqual(
    connections.map(({ closed }) => closed),
    [true, false],
  );
  guard.stop();
  assert.equal(clock.timers, 0);
});

test('within the limits no connection is closed', () => {
  assert.deepEqual(closedAmong(ofAll(0.5, 0.25, 0.25, 0)), [false, false, false, false]);
  assert.deepEqual(closedAmong(ofOne(1, 0.5, 0.5)), [false, false]);
});

test('above the total limit the largest connections are closed, and no more than needed', () => {
  assert.deepEqual(closedAmong(ofAll(0.1, 0.5, 0.3, 0.4)), [false, true, false, false]);
  assert.deepEqual(closedAmong(ofAll(0.45, 0.5, 0.5, 0.45)), [false, true, true, false]);
});

test('a node with many connections has one share, and other nodes are not affected', () => {
  assert.deepEqual(closedAmong([...ofOne(1, 0.4, 0.9, 0.3, 0.2), ...ofOne(2, 1)]), [false, true, false, false, false]);
});

test('after a stop nothing is checked', () => {
  const connection = new Connection(2 * MAX_HELD_BACK_BYTES, 1);
  const clock = new TestClock();
  const guard = new ReceiveBudget(() => [connection], clock, silentLog);
  guard.start();
  guard.stop();
  clock.advance(2 * HELD_BACK_INTERVAL_MS);
  assert.equal(connection.closed, false);
});

test('many node keys of one source have one share, and known nodes are closed last', () => {
  const part = MAX_HELD_BACK_PER_SOURCE_BYTES / 2;
  const [first, second, third] = [1, 2, 3].map((node) => new Connection(part, node, '192.0.2.1'));
  assert.ok(first && second && third);
  assert.deepEqual(closedAmong([first, second, third]), [true, false, false]);
  const known = new Connection(MAX_HELD_BACK_PER_NODE_BYTES, KNOWN, '192.0.2.1');
  assert.deepEqual(closedAmong([known, ...ofAll(0.3, 0.3)]), [false, true, false]);
});

test('without connections there are no looks, and the first one begins them again', () => {
  const clock = new TestClock();
  const connections: Connection[] = [];
  const guard = new ReceiveBudget(() => connections, clock, silentLog);
  guard.start();
  clock.advance(HELD_BACK_INTERVAL_MS);
  assert.equal(clock.timers, 0);
  guard.onConnection();
  connections.push(...ofOne(1, 0.6, 0.6));
  clock.advance(HELD_BACK_INTERVAL_MS);
  assert.equal(connections.filter(({ closed }) => closed).length, 1);
  guard.stop();
});

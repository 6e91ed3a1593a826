import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { MAX_PER_NODE, SessionTable, SIMULTANEOUS_MS } from '../../../src/network/links/session-table.ts';
import { stubSession } from '../../support/stub-session.ts';
import { TestClock } from '../../support/test-clock.ts';

const OTHER = new Uint8Array(32).fill(5);
const NODE = toHex(OTHER);

/** A table of a node whose key is the smaller or the larger one of two. */
function setUp(key: 'smaller' | 'larger' = 'smaller') {
  const clock = new TestClock();
  const table = new SessionTable(new Uint8Array(32).fill(key === 'smaller' ? 1 : 9));
  const add = (outbound: boolean, node = OTHER) => {
    const stub = stubSession(node, outbound, clock);
    table.add(stub.session);
    return stub;
  };
  return { clock, table, add };
}

test('the newer of two connections counts, unless both nodes dialled at once', () => {
  for (const [key, ours] of [
    ['smaller', true],
    ['larger', false],
  ] as const) {
    const { clock, table, add } = setUp(key);
    const chosen = add(ours);
    clock.advance(SIMULTANEOUS_MS);
    add(!ours);
    assert.equal(table.current(NODE), chosen.session, 'the one that the smaller key dialled');
    clock.advance(1);
    const later = add(!ours);
    assert.equal(table.current(NODE), later.session, 'too late to be dialled at once');
    const again = add(!ours);
    assert.equal(table.current(NODE), again.session, 'dialled by the same node again');
    assert.deepEqual([table.isCurrent(again.session), table.isCurrent(chosen.session)], [true, false]);
  }
});

test('the oldest spare connections of a node are closed, the current one and those of others never', () => {
  const { table, add } = setUp();
  const others = add(true, new Uint8Array(32).fill(6));
  const first = add(true);
  // At the same moment the one that we dialled stays the current one.
  const rest = Array.from({ length: MAX_PER_NODE }, () => add(false));
  assert.equal(table.current(NODE), first.session);
  assert.deepEqual(
    rest.map(({ isClosed }) => isClosed()),
    [true, false, false, false],
  );
  assert.deepEqual([first.isClosed(), others.isClosed()], [false, false]);
  assert.equal(table.of(NODE).length, MAX_PER_NODE);
  assert.equal([...table].length, MAX_PER_NODE + 1);
});

test('when the current connection ends, the newest usable one takes its place', () => {
  const { table, add } = setUp();
  const [one, two, three, four] = [add(true), add(true), add(true), add(true)];
  three.session.drain();
  table.remove(four.session);
  assert.equal(table.current(NODE), two.session);
  table.remove(one.session);
  assert.equal(table.current(NODE), two.session);
  table.remove(two.session);
  assert.equal(table.current(NODE), null);
  table.remove(three.session);
  table.remove(three.session);
  assert.deepEqual([[...table], table.of(NODE)], [[], []]);
});

test('a node whose connections are drained has no current one until one is preferred or comes', () => {
  const { table, add } = setUp();
  const [old, spare] = [add(true), add(true)];
  table.drain(NODE);
  assert.equal(table.current(NODE), null);
  assert.deepEqual([old.session.draining, spare.session.draining, old.isClosed()], [true, true, false]);
  const fresh = add(false);
  assert.equal(table.current(NODE), fresh.session);
  table.prefer(old.session);
  assert.equal(table.current(NODE), fresh.session, 'the one that is usable stays');
  fresh.session.drain();
  const last = add(true);
  last.session.drain();
  assert.equal(table.current(NODE), null);
  const strange = setUp().add(true);
  table.prefer(strange.session);
  assert.equal(table.current(NODE), null, 'not of this table');
});

test('a closed connection is not the current one, even before its end was heard of', () => {
  const { table, add } = setUp();
  add(true).session.close();
  assert.equal(table.current(NODE), null);
});

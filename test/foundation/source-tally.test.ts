import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SourceTally } from '../../src/foundation/tally.ts';

function tally(entries: Readonly<Record<string, number>>): SourceTally {
  const made = new SourceTally();
  for (const [source, amount] of Object.entries(entries)) made.add(source, amount);
  return made;
}

test('counts by source and by network, and removes empty entries', () => {
  const held = tally({ '192.0.2.1': 2, '192.0.2.2': 3, '2001:db8:1:2::/64': 4, '2001:db8:1:3::/64': 5 });
  assert.deepEqual([held.of('192.0.2.1'), held.ofNetwork('192.0.2.9'), held.total], [2, 5, 14]);
  assert.deepEqual([held.of('2001:db8:1:2::/64'), held.ofNetwork('2001:db8:1:9::/64')], [4, 9]);
  held.add('192.0.2.1', -5);
  assert.deepEqual([held.of('192.0.2.1'), held.ofNetwork('192.0.2.1'), held.total], [0, 3, 12]);
});

test('the largest source of the largest network loses a share, unless the newcomer would hold as much', () => {
  const held = tally({ '192.0.2.1': 3, '192.0.2.2': 4, '198.51.100.1': 6 });
  assert.equal(held.largest('203.0.113.1', 1), '192.0.2.2');
  assert.equal(held.largest('198.51.100.2', 1), '198.51.100.1', 'its own network would hold as much');
  assert.equal(held.largest('192.0.2.1', 1), '192.0.2.1');
  assert.equal(held.largest('192.0.2.3', 1), '192.0.2.2');
  assert.equal(held.largest('203.0.113.1', 7), '203.0.113.1');
  assert.equal(tally({}).largest('203.0.113.1', 1), '203.0.113.1');
});

test('sources without an address are one network together', () => {
  const held = tally({ 'node a': 2, 'node b': 3, '192.0.2.1': 4 });
  assert.equal(held.ofNetwork('node c'), 5);
  assert.equal(held.largest('198.51.100.1', 1), 'node b');
});

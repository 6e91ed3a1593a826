import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedQuota, shareOf } from '../../../src/network/links/shared-quota.ts';

test('a node, a source and all together have only so many places, and get them back', () => {
  const places = new SharedQuota({ perNode: 2, perSource: 3, all: 5 });
  const taken = [places.take('a', 's'), places.take('a', 's'), places.take('b', 's')];
  assert.ok(taken.every((leave) => leave !== null));
  assert.equal(places.take('a', 't'), null, 'the node has its own');
  assert.equal(places.take('c', 's'), null, 'the source has its share');
  assert.ok(places.take('c', 't'));
  assert.ok(places.take('here', null));
  assert.equal(places.taken, 5);
  assert.equal(places.take('d', null), null, 'there are no more');
  for (const leave of taken) leave?.();
  assert.equal(places.taken, 2);
  assert.ok(places.take('a', 's') && places.take('a', 's') && places.take('b', 's'));
});

test('what counts against no source is held back only with all the others', () => {
  const places = new SharedQuota({ perNode: 1, perSource: 1, all: 3 });
  assert.ok(places.take('a', null) && places.take('b', null) && places.take('c', null));
  assert.equal(places.take('d', null), null);
});

test('this machine is no source; an address is one, and so is an IPv6 /64', () => {
  for (const time of ['first', 'again']) assert.equal(shareOf('127.0.0.1'), null, time);
  assert.equal(shareOf('127.255.0.9'), null);
  assert.equal(shareOf('::1'), null);
  assert.equal(shareOf('::ffff:127.0.0.1'), null);
  assert.equal(shareOf('::127.0.0.1'), '0:0:0:0::/64');
  assert.equal(shareOf('192.0.2.1'), '192.0.2.1');
  assert.equal(shareOf('node 05ff'), 'node 05ff', 'who is known by his key alone');
  assert.equal(shareOf('2001:db8:1:2::1'), shareOf('2001:db8:1:2:3::1'));
});

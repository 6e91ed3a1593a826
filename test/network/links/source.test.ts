import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shareOf } from '../../../src/network/links/source.ts';

test('this machine is no source; an address is one, and so is an IPv6 /64', () => {
  for (const time of ['first', 'again']) assert.equal(shareOf('127.0.0.1'), null, time);
  assert.equal(shareOf('127.255.0.9'), null);
  assert.equal(shareOf('::1'), null);
  assert.equal(shareOf('::ffff:127.0.0.1'), null);
  assert.equal(shareOf('::127.0.0.1'), '0:0:0:0::/64');
  assert.equal(shareOf('192.0.2.1'), '192.0.2.1');
  assert.equal(shareOf('node 05ff'), 'node 05ff', 'a node that is known by its key alone');
  assert.equal(shareOf('2001:db8:1:2::1'), shareOf('2001:db8:1:2:3::1'));
});

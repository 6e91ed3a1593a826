import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { ownHosts } from '../../../src/network/records/own-hosts.ts';
import { TestClock } from '../../support/test-clock.ts';

test('the source address is known for addresses of this machine, and unknown for remote hosts', () => {
  const own = ownHosts({ clock: new TestClock() });
  assert.equal(own.has('127.0.0.1'), true);
  assert.equal(own.has('203.0.113.9'), false);
  assert.equal(own.sourceTo('127.0.0.1'), '127.0.0.1');
  assert.equal(own.sourceTo('127.9.9.9'), '127.0.0.1');
  assert.equal(own.sourceTo('203.0.113.9'), null);
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  for (const { address } of all.filter(({ family, internal }) => family === 'IPv4' && !internal))
    assert.equal(own.sourceTo(address), address);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ListenHosts } from '../../../src/network/reachability/listen-hosts.ts';

test('a listen address is missing while the machine does not have it', () => {
  let own = ['127.0.0.1', '192.0.2.1', '2001:db8::1'];
  const hosts = new ListenHosts([{ host: '192.0.2.1' }, { host: '2001:DB8:0::1' }], () => own);
  assert.deepEqual(hosts.missing(), []);
  own = ['127.0.0.1', '2001:db8::1'];
  assert.deepEqual(hosts.missing(), ['192.0.2.1']);
  own = ['127.0.0.1'];
  assert.deepEqual(hosts.missing(), ['192.0.2.1', '2001:db8::1']);
  own = ['127.0.0.1', '192.0.2.1', '2001:db8::1'];
  assert.deepEqual(hosts.missing(), []);
});

test('addresses of every interface, of loopback, and those that no interface ever had are never missing', () => {
  const listens = ['', '0.0.0.0', '::', '127.0.0.1', '::1', '192.0.2.9'].map((host) => ({ host }));
  assert.deepEqual(new ListenHosts(listens, () => []).missing(), []);
});

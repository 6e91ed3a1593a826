import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRelayed, LINK_PATH_KINDS } from '../../../src/foundation/domain/tunnels.ts';
import { sourceGroupOf } from '../../../src/foundation/quota.ts';
import { kindByScope, plainPath, wayPath } from '../../../src/network/transport/path.ts';

const KEY = new Uint8Array(32).fill(5);
const BY_KEY = `node ${'05'.repeat(32)}`;
const RELAY = { host: '203.0.113.1', port: 9 };
const LOCAL = { host: '127.0.0.1', port: 7 };

test('an address of this machine or its network is a LAN path', () => {
  for (const host of ['127.0.0.1', '::1', '192.168.1.7', '169.254.0.1', 'fe80::1', 'fc00::1', '100.64.0.1'])
    assert.equal(kindByScope({ host, port: 1 }), 'lan', host);
  for (const host of ['203.0.113.7', '2001:db8::1']) assert.equal(kindByScope({ host, port: 1 }), 'direct', host);
});

test('only `relay`, `turn` and `tls` paths use a third node', () => {
  assert.deepEqual(LINK_PATH_KINDS.filter(isRelayed), ['relay', 'turn', 'tls']);
});

test('a direct path counts against its remote address', () => {
  const remote = { host: '192.0.2.7', port: 4122 };
  assert.deepEqual(plainPath('direct', remote), { kind: 'direct', remote, source: '192.0.2.7' });
  assert.equal(plainPath('lan', LOCAL).source, '127.0.0.1', 'a program on this machine');
  for (const kind of ['punched', 'mapped'] as const)
    assert.deepEqual(wayPath({ kind }, { address: remote, key: KEY }), { kind, remote, source: '192.0.2.7' });
});

test('a relayed path counts against the address reported for the peer, or against its key', () => {
  for (const kind of ['relay', 'turn'] as const) {
    for (const address of [RELAY, LOCAL])
      assert.deepEqual(wayPath({ kind }, { address, key: KEY }), { kind, remote: address, source: BY_KEY });
    const known = wayPath({ kind, remote: RELAY, source: '192.0.2.7' }, { address: LOCAL, key: KEY });
    assert.deepEqual(known, { kind, remote: RELAY, source: '192.0.2.7' });
  }
});

test('relayed, punched and mapped paths never count as local, even if their socket is on this machine', () => {
  for (const kind of ['relay', 'turn', 'punched', 'mapped'] as const)
    for (const source of [undefined, '127.0.0.1', '::1', '::ffff:127.0.0.1', '0.0.0.0', '', 'localhost']) {
      const way = source === undefined ? { kind } : { kind, source };
      const path = wayPath(way, { address: LOCAL, key: KEY });
      assert.equal(path.source, BY_KEY, `${kind} ${source}`);
      assert.equal(sourceGroupOf(path.source).source, BY_KEY);
    }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootstrapNodes, dhtAddress, needsPortMapping, quicAddress } from '../../src/daemon/network.ts';

test('the record network listens on the configured address, or on all interfaces without a host', async () => {
  assert.deepEqual(await dhtAddress(':4121'), { host: '0.0.0.0', port: 4121 });
  assert.deepEqual(await dhtAddress('192.0.2.1:0'), { host: '192.0.2.1', port: 0 });
  assert.deepEqual(await dhtAddress('localhost:4121'), { host: '127.0.0.1', port: 4121 });
});

test('the record network requires IPv4', async () => {
  for (const text of ['[::1]:4121', '[2001:db8::1]:4121', 'nowhere.invalid:4121'])
    await assert.rejects(dhtAddress(text), {
      code: 'config_invalid',
      message: /listen_addr has no IPv4 address/,
      details: { key: 'listen_addr' },
    });
});

test('an invalid address is reported with its key', async () => {
  for (const text of ['', '4121', 'host', 'host:x', '1.2.3.4:65536', '::1:4121'])
    await assert.rejects(dhtAddress(text), { code: 'config_invalid', details: { key: 'listen_addr' } }, text);
  const dht = { host: '0.0.0.0', port: 4121 };
  for (const text of ['4122', 'host:x'])
    await assert.rejects(
      quicAddress(text, dht),
      { code: 'config_invalid', details: { key: 'quic_listen_addr' } },
      text,
    );
});

test("QUIC listens on the port after the record network's, with IPv6 if on all interfaces", async () => {
  assert.deepEqual(await quicAddress('', { host: '0.0.0.0', port: 4121 }), { host: '', port: 4122 });
  assert.deepEqual(await quicAddress('', { host: '127.0.0.1', port: 4121 }), { host: '127.0.0.1', port: 4122 });
  assert.deepEqual(await quicAddress('', { host: '127.0.0.1', port: 0 }), { host: '127.0.0.1', port: 0 });
});

test('QUIC listens on a configured address', async () => {
  const dht = { host: '0.0.0.0', port: 4121 };
  assert.deepEqual(await quicAddress('[::1]:5000', dht), { host: '::1', port: 5000 });
  assert.deepEqual(await quicAddress(':5000', dht), { host: '', port: 5000 });
});

test('all bootstrap nodes have a host', () => {
  assert.deepEqual(bootstrapNodes([]), []);
  assert.deepEqual(bootstrapNodes(['node.example:4121', '192.0.2.1:1']), [
    { host: 'node.example', port: 4121 },
    { host: '192.0.2.1', port: 1 },
  ]);
  assert.deepEqual(bootstrapNodes(['node.example']), [{ host: 'node.example', port: 4121 }]);
  for (const text of [':4121', 'node.example:0', 'x@node.example', ''])
    assert.throws(
      () => bootstrapNodes(['node.example:4121', text]),
      { code: 'config_invalid', details: { key: 'bootstrap' } },
      text,
    );
});

test('port mappings are requested if the node is to be reached from outside, unless disabled', () => {
  const every = { host: '', port: 4122 };
  const inside = { host: '127.0.0.1', port: 4121 };
  const home = { host: '192.168.1.7', port: 4121 };
  assert.equal(needsPortMapping({ disable_upnp: false }, [home, every]), true);
  assert.equal(needsPortMapping({ disable_upnp: true }, [home, every]), false);
  assert.equal(needsPortMapping({ disable_upnp: false }, [inside, every]), false);
  assert.equal(needsPortMapping({ disable_upnp: false }, [home, inside]), false);
});

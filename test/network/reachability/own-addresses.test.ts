import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { MAX_ENDPOINTS } from '../../../src/foundation/records/payloads.ts';
import { OwnAddresses } from '../../../src/network/reachability/own-addresses.ts';
import type { Reachability } from '../../../src/network/records/types.ts';

const PORT = 4122;

interface Place {
  /** The listen host of QUIC; empty for all interfaces. */
  readonly host?: string;
  readonly fallbackHost?: string;
  readonly interfaces?: readonly string[];
  readonly observed?: readonly string[];
}

/** A node with settings that the test can change. */
function nodeAt({ host = '', fallbackHost = '', interfaces = [], observed = [] }: Place) {
  const place = { interfaces, observed, natType: 1, inRoutingTables: true };
  const listeners = new Set<(reachability: Reachability) => void>();
  const reachability = (): Reachability => ({
    ready: true,
    peers: 3,
    clients: 0,
    natType: place.natType,
    // With the port of the record network, which is not the one to publish.
    observed: place.observed.map((one): Address => ({ host: one, port: 4121 })),
    inRoutingTables: place.inRoutingTables,
  });
  const records = {
    reachability,
    onReachability: (handler: (reachability: Reachability) => void) => {
      listeners.add(handler);
      return () => void listeners.delete(handler);
    },
  };
  const addresses = new OwnAddresses(
    { fallbackHost },
    { records, quic: () => ({ host, port: PORT }), interfaces: () => place.interfaces },
  );
  let changes = 0;
  const unsubscribe = addresses.onChange(() => void changes++);
  return {
    place,
    addresses,
    listeners,
    unsubscribe,
    changes: () => changes,
    /** Reports a change of the reachability from the record network. */
    reachabilityChanged: () => {
      for (const tell of [...listeners]) tell(reachability());
    },
  };
}

function hosts(place: Place): string[] {
  return nodeAt(place)
    .addresses.current()
    .endpoints.map((endpoint) => {
      const [, host = ''] = /^quic:\/\/(.+):4122$/.exec(endpoint) ?? [];
      return host;
    });
}

test('a single listen address is published, independent of observed addresses', () => {
  const place = { interfaces: ['192.168.1.7'], observed: ['203.0.113.9'], fallbackHost: 'node.example' };
  assert.deepEqual(hosts({ ...place, host: '127.0.0.1' }), ['127.0.0.1']);
  assert.deepEqual(hosts({ ...place, host: '192.168.1.7' }), ['192.168.1.7']);
  assert.deepEqual(hosts({ ...place, host: '2001:db8::7' }), ['[2001:db8::7]']);
});

test('with all interfaces, the observed address comes first, then the LAN addresses', () => {
  const place = { interfaces: ['127.0.0.1', '192.168.1.7', '2001:db8::7'], observed: ['203.0.113.9'] };
  for (const host of ['', '0.0.0.0', '::'])
    assert.deepEqual(hosts({ ...place, host }), ['203.0.113.9', '192.168.1.7', '[2001:db8::7]'], host);
});

test('an address is published once, up to the maximum of a record', () => {
  assert.deepEqual(hosts({ interfaces: ['203.0.113.9', '192.168.1.7'], observed: ['203.0.113.9'] }), [
    '203.0.113.9',
    '192.168.1.7',
  ]);
  const many = Array.from({ length: MAX_ENDPOINTS + 3 }, (_, i) => `10.0.0.${i}`);
  assert.deepEqual(hosts({ interfaces: many, observed: ['203.0.113.9'] }), [
    '203.0.113.9',
    ...many.slice(0, MAX_ENDPOINTS - 1),
  ]);
});

test('loopback and link-local addresses are not published', () => {
  const useless = ['127.0.0.1', '::1', '169.254.3.4', 'fe80::1', 'FE80::1', 'feb0::1', 'eth0', ''];
  assert.deepEqual(hosts({ interfaces: [...useless, '192.168.1.7'] }), ['192.168.1.7']);
  assert.deepEqual(hosts({ interfaces: ['192.168.1.7'], observed: ['127.0.0.1'] }), ['192.168.1.7']);
});

test('a machine without a network publishes its loopback address', () => {
  assert.deepEqual(hosts({}), ['127.0.0.1']);
  assert.deepEqual(hosts({ interfaces: ['127.0.0.1', '::1', 'fe80::1'] }), ['127.0.0.1']);
  assert.deepEqual(hosts({ interfaces: ['127.0.0.1'], observed: ['127.0.0.1'] }), ['127.0.0.1']);
});

test('the configured host is published only while no node has observed an address', () => {
  const interfaces = ['192.168.1.7'];
  assert.deepEqual(hosts({ interfaces, fallbackHost: 'node.example' }), ['node.example', '192.168.1.7']);
  assert.deepEqual(hosts({ fallbackHost: '203.0.113.9' }), ['203.0.113.9']);
  assert.deepEqual(hosts({ interfaces, fallbackHost: 'node.example', observed: ['203.0.113.9'] }), [
    '203.0.113.9',
    '192.168.1.7',
  ]);
  // Observed only by a node on this machine, so it is not the address that others see.
  assert.deepEqual(hosts({ interfaces, fallbackHost: 'node.example', observed: ['127.0.0.1'] }), [
    'node.example',
    '192.168.1.7',
  ]);
});

test('the NAT type is published too', () => {
  const { addresses, place } = nodeAt({ host: '127.0.0.1' });
  place.natType = 4;
  assert.deepEqual(addresses.current(), {
    endpoints: ['quic://127.0.0.1:4122'],
    mapped: [],
    natType: 4,
    helpers: [],
  });
});

test('if strangers cannot reach the node, observed addresses are known but not published', () => {
  const { addresses, place } = nodeAt({ interfaces: ['192.168.1.7'], observed: ['203.0.113.9'] });
  place.inRoutingTables = false;
  assert.deepEqual(addresses.current().endpoints, ['quic://192.168.1.7:4122']);
  const at = (host: string) => ({ host, port: PORT });
  assert.deepEqual(addresses.known(), [
    { address: at('203.0.113.9'), source: 'observed', verifiedBy: null },
    { address: at('192.168.1.7'), source: 'lan', verifiedBy: null },
  ]);
  place.inRoutingTables = true;
  assert.deepEqual(addresses.known()[0], { address: at('203.0.113.9'), source: 'observed', verifiedBy: 'peers' });
  const { addresses: behind, place: there } = nodeAt({ fallbackHost: 'node.example', observed: ['203.0.113.9'] });
  there.inRoutingTables = false;
  assert.deepEqual(behind.current().endpoints, ['quic://node.example:4122']);
});

test('an address has a source, and the kind of node that reached it', () => {
  const interfaces = ['127.0.0.1', '203.0.113.9', '192.168.1.7'];
  const { addresses } = nodeAt({ interfaces, observed: ['203.0.113.9'] });
  assert.deepEqual(
    addresses.known().map(({ address, source, verifiedBy }) => [address.host, source, verifiedBy]),
    [
      ['203.0.113.9', 'interface', 'peers'],
      ['203.0.113.9', 'interface', null],
      ['192.168.1.7', 'lan', null],
    ],
  );
  const single = nodeAt({ host: '192.168.1.7' }).addresses;
  assert.deepEqual(single.known(), [
    { address: { host: '192.168.1.7', port: PORT }, source: 'configured', verifiedBy: null },
  ]);
});

test('an address from another module is published after a node reached it, until it is withdrawn', async () => {
  const { addresses, changes } = nodeAt({ interfaces: ['192.168.1.7'], fallbackHost: 'node.example' });
  await addresses.start();
  const mapping = { address: { host: '203.0.113.9', port: 40_000 }, source: 'mapped' } as const;
  addresses.found('mapper', [{ ...mapping, verifiedBy: null }]);
  assert.deepEqual(addresses.current().endpoints, ['quic://node.example:4122', 'quic://192.168.1.7:4122']);
  assert.equal(changes(), 0);
  addresses.found('mapper', [{ ...mapping, verifiedBy: 'helper' }]);
  const { endpoints, mapped } = addresses.current();
  assert.deepEqual(endpoints, ['quic://203.0.113.9:40000', 'quic://192.168.1.7:4122']);
  assert.deepEqual(mapped, ['quic://203.0.113.9:40000']);
  assert.equal(changes(), 1);
  const helper = { nodeKey: new Uint8Array(32), address: '203.0.113.1:4122' };
  addresses.setHelpers([helper]);
  assert.deepEqual(addresses.current().helpers, [helper]);
  addresses.setHelpers([helper]);
  assert.equal(changes(), 2);
  addresses.found('mapper', []);
  assert.deepEqual(addresses.current().mapped, []);
  assert.equal(changes(), 3);
  await addresses.stop();
});

test('a visible change is reported immediately, and once', async () => {
  const node = nodeAt({ interfaces: ['192.168.1.7'] });
  await node.addresses.start();
  node.reachabilityChanged();
  assert.equal(node.changes(), 0, 'nothing has changed');
  node.place.observed = ['203.0.113.9'];
  node.reachabilityChanged();
  node.reachabilityChanged();
  assert.equal(node.changes(), 1);
  node.place.natType = 3;
  node.reachabilityChanged();
  assert.equal(node.changes(), 2);
  await node.addresses.stop();
});

test('a network change is detected at the next refresh', async () => {
  const node = nodeAt({ interfaces: ['192.168.1.7'] });
  await node.addresses.start();
  node.addresses.refresh();
  assert.equal(node.changes(), 0);
  node.place.interfaces = ['10.0.0.2'];
  node.addresses.refresh();
  assert.equal(node.changes(), 1);
  node.addresses.refresh();
  assert.equal(node.changes(), 1);
  await node.addresses.stop();
});

test('a removed listener receives no event, and a stop removes all listeners', async () => {
  const node = nodeAt({ interfaces: ['192.168.1.7'] });
  await node.addresses.start();
  let reported = 0;
  node.addresses.onChange(() => void reported++);
  node.unsubscribe();
  node.place.interfaces = ['10.0.0.2'];
  node.addresses.refresh();
  assert.deepEqual([node.changes(), reported], [0, 1]);
  await node.addresses.stop();
  assert.equal(node.listeners.size, 0);
});

test("after strangers reach the router's host, its mapped port is published instead of the local port", () => {
  const { place, addresses } = nodeAt({ interfaces: ['192.168.1.7'], observed: ['203.0.113.9'] });
  const address = { host: '203.0.113.9', port: 40_000 };
  place.inRoutingTables = false;
  addresses.found('router', [{ address, source: 'mapped', verifiedBy: null }]);
  assert.deepEqual(addresses.current().endpoints, ['quic://192.168.1.7:4122']);
  place.inRoutingTables = true;
  const { endpoints, mapped } = addresses.current();
  assert.deepEqual(endpoints, ['quic://203.0.113.9:40000', 'quic://192.168.1.7:4122']);
  assert.deepEqual(mapped, ['quic://203.0.113.9:40000']);
  addresses.found('router', [{ address: { ...address, host: '203.0.113.10' }, source: 'mapped', verifiedBy: null }]);
  assert.deepEqual(addresses.current().mapped, [], 'the observed host is another one');
});

test('only changes that affect reachability are urgent', async () => {
  const node = nodeAt({ interfaces: ['192.168.1.7'] });
  await node.addresses.start();
  const news: boolean[] = [];
  node.addresses.onChange((isUrgent) => void news.push(isUrgent));
  const helper = (byte: number) => ({ nodeKey: new Uint8Array(32).fill(byte), address: `198.51.100.${byte}:4122` });
  node.addresses.setHelpers([helper(1)]);
  node.addresses.setHelpers([helper(2), helper(1)]);
  node.addresses.setHelpers([helper(2), helper(1), helper(3)]);
  node.addresses.setHelpers([helper(2)]);
  node.addresses.found('router', [
    { address: { host: '203.0.113.9', port: 40_000 }, source: 'mapped', verifiedBy: 'helper' },
  ]);
  assert.deepEqual(news, [true, true, false, true, true]);
  await node.addresses.stop();
});

test('dial-back results take precedence over the reachability in the record network', () => {
  const { place, addresses } = nodeAt({ interfaces: ['192.168.1.7'], observed: ['203.0.113.9'] });
  const own = 'quic://203.0.113.9:4122';
  place.inRoutingTables = true;
  assert.equal(addresses.current().endpoints[0], own);
  addresses.setDialBackResults(new Map([['203.0.113.9:4122', false]]));
  assert.deepEqual([addresses.current().endpoints, addresses.isRefuted], [['quic://192.168.1.7:4122'], true]);
  addresses.setDialBackResults(new Map([['203.0.113.9:4122', true]]));
  assert.deepEqual([addresses.current().endpoints[0], addresses.isRefuted], [own, false]);
  place.inRoutingTables = false;
  assert.equal(addresses.current().endpoints[0], own, 'a manually forwarded port');
  assert.equal(addresses.known()[0]?.verifiedBy, 'helper');
});

test('a mapped port is published if dial-backs succeed, and removed if they fail', () => {
  const { place, addresses } = nodeAt({ interfaces: ['192.168.1.7'], observed: ['203.0.113.9'] });
  place.inRoutingTables = false;
  const mapped = (verdict: boolean): readonly string[] => {
    addresses.setDialBackResults(new Map([['203.0.113.9:40000', verdict]]));
    return addresses.current().mapped;
  };
  addresses.found('router', [{ address: { host: '203.0.113.9', port: 40_000 }, source: 'mapped', verifiedBy: null }]);
  assert.deepEqual([mapped(true), mapped(false)], [['quic://203.0.113.9:40000'], []]);
  place.inRoutingTables = true;
  assert.deepEqual(mapped(false), []);
});

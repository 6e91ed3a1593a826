import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lentSource } from '../../../src/foundation/quota.ts';
import {
  ConnectionTable,
  DEFAULT_CONNECTION_LIMITS,
  MAX_CONNECTIONS_PER_LENT_SOURCE,
  MAX_LENT_CONNECTIONS,
} from '../../../src/network/transport/connection-limits.ts';
import { plainPath, wayPath } from '../../../src/network/transport/path.ts';
import type { Connection } from '../../../src/network/transport/types.ts';

interface Fake extends Connection {
  wasClosed: boolean;
}

function connection(keyByte: number, host: string): Fake {
  return {
    wasClosed: false,
    remoteKey: new Uint8Array(32).fill(keyByte),
    path: plainPath('direct', { host, port: 1 }),
    outbound: false,
    rtt: () => 0,
    stats: () => ({ bytesSent: 0, bytesReceived: 0, packetsSent: 0, packetsLost: 0 }),
    openStream: () => Promise.reject(new Error('not here')),
    onStream: () => {},
    closed: new Promise(() => {}),
    close() {
      this.wasClosed = true;
    },
  };
}

const limits = {
  ...DEFAULT_CONNECTION_LIMITS,
  connections: 5,
  reservedConnections: 0,
  connectionsPerSource: 2,
  connectionsPerKey: 2,
};

test('an address has a limit, and closing a connection frees its slot', () => {
  const table = new ConnectionTable<Fake>(limits);
  const first = connection(1, '192.0.2.1');
  assert.equal(table.admit(first), null);
  assert.equal(table.admit(connection(2, '192.0.2.1')), null);
  assert.equal(table.admit(connection(3, '192.0.2.1')), 'source');
  assert.equal(table.admit(connection(3, '192.0.2.2')), null);
  table.remove(first);
  table.remove(first);
  assert.equal(table.admit(connection(3, '192.0.2.1')), null);
  assert.equal(table.admit(connection(4, '192.0.2.1')), 'source');
});

test('the loopback address counts only if configured, because its programs belong to one person', () => {
  const open = new ConnectionTable<Fake>(limits);
  for (const host of ['127.0.0.1', '127.0.0.1', '127.0.0.1', '::1']) {
    assert.equal(open.admit(connection(open.size + 1, host)), null);
  }
  const strict = new ConnectionTable<Fake>({ ...limits, countLoopback: true });
  strict.admit(connection(1, '127.0.0.1'));
  strict.admit(connection(2, '127.0.0.1'));
  assert.equal(strict.admit(connection(3, '127.0.0.1')), 'source');
});

test('a relayed path counts against its source, even if its socket is on the loopback address', () => {
  const relayed = (keyByte: number): Fake => {
    const key = new Uint8Array(32).fill(keyByte);
    const path = wayPath({ kind: 'relay', source: '192.0.2.7' }, { address: { host: '127.0.0.1', port: 1 }, key });
    return { ...connection(keyByte, '127.0.0.1'), path };
  };
  const table = new ConnectionTable<Fake>(limits);
  const answers = [1, 2, 3].map((n) => table.admit(relayed(n)));
  assert.deepEqual(answers, [null, null, 'source']);
  assert.equal(table.admit(connection(4, '127.0.0.1')), null);
});

test('there is a limit for all connections', () => {
  const table = new ConnectionTable<Fake>(limits);
  for (let i = 0; i < 5; i++) assert.equal(table.admit(connection(i, `192.0.2.${i}`)), null);
  assert.equal(table.admit(connection(9, '192.0.2.9')), 'total');
  assert.equal(table.size, 5);
});

test('a key over its limit loses its oldest connection, and no other key does', () => {
  const table = new ConnectionTable<Fake>(limits);
  const other = connection(2, '192.0.2.9');
  const mine = [1, 2, 3].map((i) => connection(1, `192.0.2.${i}`));
  for (const each of [other, ...mine]) assert.equal(table.admit(each), null);
  assert.deepEqual(
    [other, ...mine].map(({ wasClosed }) => wasClosed),
    [false, true, false, false],
  );
  assert.deepEqual([...table], [other, mine[1], mine[2]]);
});

test('a limit of one connection per key keeps the newest', () => {
  const table = new ConnectionTable<Fake>({ ...limits, connectionsPerKey: 1 });
  const all = [1, 2, 3].map((i) => connection(1, `192.0.2.${i}`));
  for (const each of all) assert.equal(table.admit(each), null);
  assert.deepEqual([...table], [all[2]]);
});

test('an IPv6 /64 counts as one source, and so do both notations of an IPv4 address', () => {
  for (const hosts of [
    ['2001:db8:1:2::1', '2001:db8:1:2::2', '2001:db8:1:2:ffff::'],
    ['192.0.2.1', '::ffff:192.0.2.1', '::ffff:c000:201'],
  ]) {
    const table = new ConnectionTable<Fake>(limits);
    const answers = hosts.map((host, i) => table.admit(connection(i, host)));
    assert.deepEqual(answers, [null, null, 'source']);
    assert.equal(table.admit(connection(9, '2001:db8:1:3::1')), null);
  }
});

test('a network with many addresses has a limit, and a known node is accepted despite strangers', () => {
  const known = new Uint8Array(32).fill(200);
  const table = new ConnectionTable<Fake>(
    { ...limits, connections: 8, reservedConnections: 2, connectionsPerNetwork: 3 },
    (key) => key[0] === known[0],
  );
  const crowd = [1, 2, 3, 4].map((i) => connection(i, `192.0.2.${i}`));
  assert.deepEqual(
    crowd.map((one) => table.admit(one)),
    [null, null, null, 'network'],
  );
  for (const i of [5, 6, 7]) assert.equal(table.admit(connection(i, `198.51.${i}.1`)), null);
  assert.equal(table.size, 6, 'strangers leave the reserved slots free');
  assert.equal(table.admit(connection(8, '203.0.113.8')), null, 'a new network gets a slot of the largest one');
  assert.equal(crowd[0]?.wasClosed, true);
  assert.equal(table.admit(connection(9, '192.0.2.9')), 'total', 'a network with an equal share gets none');
  assert.equal(table.admit(connection(200, '192.0.2.77')), null, 'the known node is in that network');
});

test('one IPv6 /48 cannot use all connections', () => {
  const table = new ConnectionTable<Fake>(DEFAULT_CONNECTION_LIMITS);
  let held = 0;
  for (let i = 0; i < 2000; i++)
    if (table.admit(connection(i % 256, `2001:db8:7:${i.toString(16)}::1`)) === null) held++;
  assert.ok(held <= DEFAULT_CONNECTION_LIMITS.connectionsPerNetwork, `${held}`);
  assert.equal(table.admit(connection(9, '2001:db8:8::1')), null);
});

test('connections through lent ports have a smaller share, which all helpers have together', () => {
  const table = new ConnectionTable<Fake>(DEFAULT_CONNECTION_LIMITS);
  let key = 0;
  const admitted = (host: string): number => {
    let count = 0;
    for (let i = 0; i < 50; i++) {
      const { path, ...rest } = connection(++key, host);
      const fake: Fake = { ...rest, path: { ...path, source: lentSource(host) } };
      fake.close = () => {
        fake.wasClosed = true;
      };
      if (table.admit(fake) === null) count++;
    }
    return count;
  };
  const helpers = Array.from({ length: 8 }, (_, i) => admitted(`${20 + i}.1.1.1`));
  assert.equal(helpers[0], MAX_CONNECTIONS_PER_LENT_SOURCE);
  assert.equal(table.size, MAX_LENT_CONNECTIONS);
  assert.equal(table.admit(connection(255, '192.0.2.1')), null, 'others are not affected');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../../src/foundation/address.ts';
import { ipScope } from '../../../../src/foundation/ip.ts';
import { DialGuard } from '../../../../src/network/reachability/dial-guard.ts';
import {
  ANSWER_VALID_MS,
  Destinations,
  MAX_CONNECTION_IDS_PER_DESTINATION,
  MAX_PORTS_PER_DESTINATION,
  MAX_UNANSWERED_PACKETS,
} from '../../../../src/network/transport/tls/destinations.ts';
import { TestClock } from '../../../support/test-clock.ts';
import { answered, TAG, tagged } from './borrower.ts';

const NODE: Address = { host: '198.51.100.7', port: 4122 };

/** A QUIC packet with a long header. */
function long(bytes: number, version = 1): Uint8Array {
  const packet = Buffer.alloc(bytes, 7);
  packet[0] = 0xc3;
  packet.writeUInt32BE(version, 1);
  return new Uint8Array(packet);
}

const INITIAL = long(1200);
const SHORT = new Uint8Array(100).fill(0x47);
/** Engines may clear the fixed bit (RFC 9287). */
const GREASED = new Uint8Array(100).fill(0x07);
const OPENING = Uint8Array.of(0);
const TOKEN = new Uint8Array(16).fill(0xaa);

function guard(client = '203.0.113.7', { usesLoopback = false, limit = 64 } = {}) {
  const clock = new TestClock();
  const interfaces = [{ address: '192.168.1.2', cidr: '192.168.1.2/24' }];
  const dialGuard = new DialGuard({ interfaces: () => interfaces, usesLoopback: () => usesLoopback });
  let left = limit;
  const destinations = new Destinations({
    clock,
    tag: TAG,
    scope: ipScope(client),
    mayDial: (address) => dialGuard.mayDial(address),
    isOwn: ({ host, port }) => host === '10.9.9.9' && port === 4121,
    takeNew: () => left-- > 0,
  });
  return { clock, destinations };
}

test('the record network and QUIC handshakes reach new destinations, and nothing else does', () => {
  const permitted = { tagged: tagged('x'), INITIAL, OPENING, TOKEN };
  for (const [name, datagram] of Object.entries(permitted))
    assert.ok(guard().destinations.maySend(1, NODE, datagram), name);
  const refused = {
    empty: new Uint8Array(),
    text: Buffer.from('GET / HTTP/1.1 and more'),
    'one byte': Uint8Array.of(1),
    'short header': SHORT,
    'small long header': long(1199),
    'unknown version': long(1200, 0x1234_5678),
    'tag cut off': TAG.subarray(0, 7),
    'other tag': tagged('x').with(0, 9),
  };
  for (const [name, datagram] of Object.entries(refused))
    assert.ok(!guard().destinations.maySend(1, NODE, datagram), name);
});

test('packets that are not answered stop after three', () => {
  const { clock, destinations } = guard();
  for (const datagram of [tagged(), INITIAL, OPENING, TOKEN]) {
    const node = { ...NODE, port: 5000 + datagram.length };
    for (let i = 0; i < MAX_UNANSWERED_PACKETS; i++) assert.ok(destinations.maySend(1, node, datagram));
    assert.ok(!destinations.maySend(1, node, datagram));
    assert.ok(!destinations.maySend(1, node, tagged()), 'of any kind');
  }
  clock.advance(ANSWER_VALID_MS);
  assert.ok(!destinations.maySend(1, { ...NODE, port: 5009 }, tagged()));
  clock.advance(1);
  assert.ok(destinations.maySend(1, { ...NODE, port: 5009 }, tagged()));
});

test('an answer permits more, for 30 seconds', () => {
  const { clock, destinations } = guard();
  assert.ok(destinations.maySend(1, NODE, tagged()));
  assert.ok(destinations.mayReceive(NODE, answered()));
  for (let i = 0; i < 100; i++) assert.ok(destinations.maySend(1, NODE, tagged()));
  assert.ok(!destinations.maySend(1, NODE, SHORT), 'no QUIC without a QUIC handshake');
  clock.advance(ANSWER_VALID_MS + 1);
  for (let i = 0; i < MAX_UNANSWERED_PACKETS; i++) assert.ok(destinations.maySend(1, NODE, tagged()));
  assert.ok(!destinations.maySend(1, NODE, tagged()));
});

test('QUIC packets pass after a handshake was answered, and as long as answers come', () => {
  const { clock, destinations } = guard();
  assert.ok(destinations.maySend(1, NODE, INITIAL));
  assert.ok(!destinations.maySend(1, NODE, SHORT));
  assert.ok(!destinations.mayReceive(NODE, SHORT), 'no packet of a connection that does not exist');
  assert.ok(destinations.mayReceive(NODE, long(300)));
  for (const packet of [SHORT, GREASED, long(50)])
    for (let i = 0; i < 100; i++) assert.ok(destinations.maySend(1, NODE, packet));
  for (let i = 0; i < 10; i++) {
    clock.advance(ANSWER_VALID_MS);
    assert.ok(destinations.maySend(1, NODE, SHORT));
    assert.ok(destinations.mayReceive(NODE, GREASED));
  }
  clock.advance(ANSWER_VALID_MS + 1);
  assert.ok(!destinations.maySend(1, NODE, SHORT));
  assert.ok(!destinations.mayReceive(NODE, SHORT));
});

test('answers that are no QUIC do not open a destination for QUIC', () => {
  const { destinations } = guard();
  assert.ok(destinations.maySend(1, NODE, INITIAL));
  for (const answer of [OPENING, TOKEN]) assert.ok(destinations.mayReceive(NODE, answer));
  assert.ok(!destinations.mayReceive(NODE, SHORT));
  assert.ok(!destinations.mayReceive(NODE, Buffer.from('SSH-2.0')));
  assert.ok(!destinations.maySend(1, NODE, SHORT));
});

test('strangers can call a lent port, and the client can answer', () => {
  for (const call of [INITIAL, answered(), OPENING, TOKEN]) {
    const { destinations } = guard('203.0.113.7', { limit: 0 });
    assert.ok(destinations.mayReceive(NODE, call));
    assert.ok(destinations.maySend(1, NODE, tagged()), 'without a new destination');
  }
  const { destinations } = guard('203.0.113.7', { limit: 0 });
  assert.ok(!destinations.mayReceive(NODE, SHORT));
  assert.ok(!destinations.maySend(1, NODE, tagged()));
});

test('strangers cannot evict the destinations of a client', () => {
  const { destinations } = guard();
  destinations.maySend(1, NODE, INITIAL);
  destinations.mayReceive(NODE, INITIAL);
  for (let port = 1024; port < 9000; port++) destinations.mayReceive({ host: '198.51.100.9', port }, answered());
  assert.ok(destinations.maySend(1, NODE, SHORT));
});

test('new destinations are limited', () => {
  const { destinations } = guard();
  const sent = (from: number) =>
    Array.from({ length: 100 }, (_, i) => destinations.maySend(1, { host: '198.51.100.8', port: from + i }, tagged()));
  assert.equal(sent(2000).filter((isSent) => isSent).length, 64);
  assert.equal(sent(3000).filter((isSent) => isSent).length, 0);
});

test('only public unicast destinations with high ports are reached', () => {
  const refused = [
    ['10.0.0.1', 4121],
    ['192.168.1.9', 4121],
    ['172.16.0.1', 4121],
    ['100.64.0.1', 4121],
    ['127.0.0.1', 4121],
    ['169.254.1.1', 4121],
    ['224.0.0.251', 5353],
    ['255.255.255.255', 4121],
    ['0.0.0.0', 4121],
    ['::1', 4121],
    ['fe80::1', 4121],
    ['fd00::1', 4121],
    ['ff02::1', 4121],
    ['64:ff9b::a00:1', 4121],
    ['2002:a00:1::', 4121],
    ['198.51.100.7', 53],
    ['198.51.100.7', 1023],
    ['198.51.100.7', 0],
  ] as const;
  for (const [host, port] of refused) {
    for (const usesLoopback of [false, true]) {
      const { destinations } = guard('203.0.113.7', { usesLoopback });
      for (const datagram of [tagged(), INITIAL, OPENING, TOKEN])
        assert.ok(!destinations.maySend(1, { host, port }, datagram), `${host} ${port}`);
      assert.ok(!destinations.mayReceive({ host, port }, answered()), `${host} ${port}`);
      assert.ok(!destinations.maySend(1, { host, port }, tagged()), `${host} ${port}`);
    }
  }
  for (const [host, port] of [
    ['198.51.100.7', 443],
    ['198.51.100.7', 1024],
    ['2001:db8::1', 4121],
  ] as const)
    assert.ok(guard().destinations.maySend(1, { host, port }, tagged()), `${host} ${port}`);
});

test('clients on this machine and in private networks reach these too, if this node may dial there', () => {
  const here = { host: '127.0.0.1', port: 4121 };
  const near = { host: '192.168.1.9', port: 4121 };
  assert.ok(guard('127.0.0.1', { usesLoopback: true }).destinations.maySend(1, here, tagged()));
  assert.ok(!guard('127.0.0.1').destinations.maySend(1, here, tagged()));
  assert.ok(!guard('127.0.0.1', { usesLoopback: true }).destinations.maySend(1, near, tagged()));
  assert.ok(guard('192.168.1.5').destinations.maySend(1, near, tagged()));
  assert.ok(!guard('192.168.1.5', { usesLoopback: true }).destinations.maySend(1, here, tagged()));
  assert.ok(!guard('192.168.1.5').destinations.maySend(1, { host: '10.1.1.1', port: 4121 }, tagged()));
  for (const client of ['127.0.0.1', '192.168.1.5']) assert.ok(guard(client).destinations.maySend(1, NODE, tagged()));
});

test('every client reaches the sockets of the helper', () => {
  for (const client of ['203.0.113.7', '127.0.0.1']) {
    assert.ok(guard(client).destinations.maySend(1, { host: '10.9.9.9', port: 4121 }, tagged()));
    assert.ok(!guard(client).destinations.maySend(1, { host: '10.9.9.9', port: 4122 }, tagged()));
  }
});

test('requests of the record network pass outwards only, and answers inwards only', () => {
  const { destinations } = guard();
  assert.ok(!destinations.mayReceive(NODE, tagged()), 'a request to the client');
  assert.ok(!destinations.maySend(1, NODE, answered()), 'an answer of the client');
  assert.ok(destinations.maySend(1, NODE, tagged()));
  assert.ok(destinations.mayReceive(NODE, answered()));
  assert.ok(!destinations.mayReceive(NODE, tagged()), 'a request after an answer');
  assert.ok(!destinations.maySend(1, NODE, answered()), 'an answer after an exchange');
  const other = new Uint8Array(Buffer.concat([TAG, Buffer.of(0x23)]));
  assert.ok(!destinations.maySend(1, NODE, other) && !destinations.mayReceive(NODE, other), 'neither of both');
});

/** The first packet of a connection. */
function initial(connection: number): Uint8Array {
  const packet = Buffer.from(INITIAL);
  packet[5] = 8;
  packet.writeUInt32BE(connection, 6);
  return new Uint8Array(packet);
}

test('a client opens few connections to one destination, from few ports', () => {
  const { clock, destinations } = guard();
  const opened = (number: number, connection: number) => {
    const isSent = destinations.maySend(number, NODE, initial(connection));
    if (isSent) assert.ok(destinations.mayReceive(NODE, long(300)));
    return isSent;
  };
  const count = (tries: readonly boolean[]) => tries.filter((isSent) => isSent).length;
  const connections = Array.from({ length: 40 }, (_, i) => opened(1, i));
  assert.equal(count(connections), MAX_CONNECTION_IDS_PER_DESTINATION);
  assert.ok(opened(1, 3), 'a packet that is sent again');
  assert.ok(destinations.maySend(1, NODE, SHORT), 'the open connections continue');
  clock.advance(ANSWER_VALID_MS + 1);
  assert.equal(count(Array.from({ length: 32 }, (_, i) => opened(1 + i, 100))), MAX_PORTS_PER_DESTINATION);
  assert.ok(destinations.maySend(1, { ...NODE, port: 4130 }, initial(1)), 'other destinations are not affected');
});

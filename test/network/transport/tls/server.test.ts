import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { selfSigned } from '../../../../src/foundation/certificate.ts';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { RESUME_KEPT_MS } from '../../../../src/network/transport/tls/lease.ts';
import {
  MAX_LENT_PORTS_PER_CLIENT,
  MAX_TLS_CONNECTIONS_PER_SOURCE,
  MAX_TLS_HEAD_BYTES,
  TLS_HELLO_TIMEOUT_MS,
} from '../../../../src/network/transport/tls/server.ts';
import { closingEntry, encodeEntry, TLS_STATUS } from '../../../../src/network/transport/tls/wire.ts';
import { eventually } from '../../../support/eventually.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';
import { answered, borrow, lendingHelper, tagged, udpNode } from './borrower.ts';

/** Opens a NAT. */
const OPENING = Uint8Array.of(0);

test('a client sends and receives from ports of the helper, one for each number', async (t) => {
  const helper = await lendingHelper(t);
  const [node, other] = [await udpNode(t), await udpNode(t)];
  const client = await borrow(t, helper.url);
  assert.ok(client.isGenuine);
  assert.deepEqual(client.reply?.nodeKey, helper.key.publicKey);
  assert.deepEqual(client.reply?.exporter, client.exporter, 'both see the same TLS session');
  assert.deepEqual([client.reply?.status, client.reply?.ports, client.reply?.host], [0, 32, '127.0.0.1']);
  client.send(1, node.address, tagged('a'));
  client.send(1, other.address, tagged('b'));
  client.send(2, node.address, tagged('c'));
  await eventually('the datagrams', () => node.arrivals.length === 2 && other.arrivals.length === 1);
  const [first, second] = node.arrivals;
  assert.ok(first !== undefined && second !== undefined);
  assert.deepEqual(first.datagram, Buffer.from(tagged('a')));
  assert.deepEqual(other.arrivals[0]?.from, first.from, 'one port for all destinations');
  assert.notEqual(second.from.port, first.from.port);
  await node.send(answered('answer'), first.from);
  await eventually('the answer', () => client.received.length === 1);
  assert.deepEqual(client.received[0], { number: 1, remote: node.address, datagram: Buffer.from(answered('answer')) });
  assert.deepEqual([helper.server.usage.clients, helper.server.usage.ports], [1, 2]);
  assert.equal(helper.server.usage.datagrams, 4);
  client.send(1, null);
  await eventually('the port is closed', () => helper.server.usage.ports === 1);
});

test('IPv6 has its own socket of the same number', async (t) => {
  const helper = await lendingHelper(t);
  const [v4, v6] = [await udpNode(t), await udpNode(t, '::1')];
  const client = await borrow(t, helper.url);
  client.send(1, v4.address, tagged());
  client.send(1, v6.address, tagged());
  await eventually('both', () => v4.arrivals.length === 1 && v6.arrivals.length === 1);
  assert.equal(helper.server.usage.ports, 1);
  const [arrival] = v6.arrivals;
  assert.ok(arrival !== undefined);
  await v6.send(answered('x'), arrival.from);
  await eventually('the answer', () => client.received.length === 1);
  assert.deepEqual(client.received[0]?.remote, v6.address);
});

test('plain HTTP serves a web server, which names the client', async (t) => {
  const helper = await lendingHelper(t, { isTls: false, mayDial: ({ host }) => host !== '127.0.0.1' });
  const node = await udpNode(t);
  const client = await borrow(t, helper.url, { headers: { 'X-Forwarded-For': '192.0.2.1, 203.0.113.7' } });
  assert.equal(client.reply?.status, TLS_STATUS.ok);
  client.send(1, node.address, tagged());
  await eventually('it is dropped', () => helper.server.usage.dropped === 1);
});

test('clients that a web server does not name share limits, and reach no loopback address', async (t) => {
  const proxied = [
    [await lendingHelper(t, { isTls: false }), {}],
    [await lendingHelper(t, { isTls: false }), { 'X-Forwarded-For': '127.0.0.1' }],
    [await lendingHelper(t, { isTls: false }), { 'X-Forwarded-For': '::1, nonsense' }],
    // A proxy that does not end TLS.
    [await lendingHelper(t, { usesLoopback: false }), {}],
  ] as const;
  const node = await udpNode(t);
  for (const [helper, headers] of proxied) {
    const client = await borrow(t, helper.url, { headers });
    assert.equal(client.reply?.status, TLS_STATUS.ok);
    client.send(1, node.address, tagged());
    await eventually('it is dropped', () => helper.server.usage.dropped === 1);
    let refused = 0;
    for (let i = 0; i < 65; i++)
      await borrow(t, helper.url, { headers }).catch(() => {
        refused++;
      });
    assert.ok(refused > 0, 'one source');
  }
  assert.equal(node.arrivals.length, 0);
});

test('hellos are refused with their reason', async (t) => {
  let helps = true;
  const helper = await lendingHelper(t, { sessions: 1, helps: () => helps });
  const statusOf = async (options: Parameters<typeof borrow>[2]) => {
    const { reply, isGenuine, closed } = await borrow(t, helper.url, options);
    await closed;
    assert.ok(isGenuine || reply?.status === TLS_STATUS.unknownVersion);
    return reply?.status;
  };
  assert.equal(await statusOf({ tag: new Uint8Array(8) }), TLS_STATUS.otherNetwork);
  assert.equal(
    await statusOf({ change: (hello) => hello.with(hello.length - 1, (hello.at(-1) ?? 0) ^ 1) }),
    TLS_STATUS.badSignature,
  );
  assert.equal(await statusOf({ change: (hello) => hello.with(0, 2) }), TLS_STATUS.unknownVersion);
  assert.equal(await statusOf({ helperKey: KeyPair.generate().publicKey }), TLS_STATUS.otherNode);
  assert.equal(await statusOf({ helperKey: new Uint8Array(32) }), TLS_STATUS.otherNode, 'no helper is named');
  assert.equal(await statusOf({ key: helper.key }), TLS_STATUS.notHelping);
  helps = false;
  assert.equal(await statusOf({}), TLS_STATUS.notHelping);
  helps = true;
  assert.equal((await borrow(t, helper.url)).reply?.status, TLS_STATUS.ok);
  assert.equal(await statusOf({}), TLS_STATUS.full);
  const malformed = await borrow(t, helper.url, { change: (hello) => hello.subarray(0, -1) });
  assert.equal(malformed.reply, null);
});

test('a lost connection is resumed with its ports', async (t) => {
  const helper = await lendingHelper(t);
  const node = await udpNode(t);
  const client = await borrow(t, helper.url);
  client.send(1, node.address, tagged());
  await eventually('the datagram', () => node.arrivals.length === 1);
  client.socket.terminate();
  await client.closed;
  const resume = client.reply?.resume ?? null;
  const again = await borrow(t, helper.url, { key: client.key, token: resume });
  assert.ok(again.reply?.isResumed);
  assert.deepEqual(again.reply?.resume, resume);
  const [first] = node.arrivals;
  assert.ok(first !== undefined);
  await node.send(answered('later'), first.from);
  await eventually('the answer', () => again.received.length === 1);
  again.send(1, node.address, tagged());
  await eventually('the datagram', () => node.arrivals.length === 2);
  assert.deepEqual(node.arrivals[1]?.from, first.from);
  // The token belongs to the key, and a client without the token gets new ports.
  const thief = await borrow(t, helper.url, { token: resume });
  assert.ok(thief.reply?.status === TLS_STATUS.ok && !thief.reply.isResumed);
  // Another node may have passed on a hello that names it.
  const passedOn = await borrow(t, helper.url, { key: client.key, helperKey: KeyPair.generate().publicKey });
  assert.equal(passedOn.reply?.status, TLS_STATUS.otherNode);
  const restarted = await borrow(t, helper.url, { key: client.key, helperKey: helper.key.publicKey });
  assert.ok(restarted.reply?.status === TLS_STATUS.ok && !restarted.reply.isResumed);
  await again.closed;
  assert.notDeepEqual(restarted.reply.resume, resume);
  assert.deepEqual([helper.server.usage.clients, helper.server.usage.ports], [2, 0]);
});

test('ports of a lost connection are closed after 30 seconds', async (t) => {
  const helper = await lendingHelper(t);
  const node = await udpNode(t);
  const client = await borrow(t, helper.url);
  client.send(1, node.address, tagged());
  await eventually('the datagram', () => node.arrivals.length === 1);
  client.socket.terminate();
  await client.closed;
  await eventually('the loss', () => helper.clock.timers === 1);
  helper.clock.advance(RESUME_KEPT_MS - 1);
  assert.equal(helper.server.usage.ports, 1);
  helper.clock.advance(1);
  assert.deepEqual([helper.server.usage.clients, helper.server.usage.ports], [0, 0]);
  const late = await borrow(t, helper.url, { key: client.key, token: client.reply?.resume ?? null });
  assert.ok(late.reply?.status === TLS_STATUS.ok && !late.reply.isResumed);
});

test('a newer connection of a client replaces the older one', async (t) => {
  const helper = await lendingHelper(t);
  const client = await borrow(t, helper.url);
  const again = await borrow(t, helper.url, { key: client.key, token: client.reply?.resume ?? null });
  assert.ok(again.reply?.isResumed);
  await client.closed;
  assert.equal(helper.server.usage.clients, 1);
});

test('handshakes, heads and hellos that do not complete are cut off after 5 seconds', async (t) => {
  const helper = await lendingHelper(t);
  const silent = connect(helper.port, '127.0.0.1');
  await once(silent, 'connect');
  const secure = connectTls({ port: helper.port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(secure, 'secureConnect');
  secure.write('GET /svcd/1 HTTP/1.1\r\nHost: a\r\n');
  const mute = connectTls({ port: helper.port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(mute, 'secureConnect');
  mute.write(
    'GET /svcd/1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  );
  const [answer] = (await once(mute, 'data')) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1\.1 101 [\s\S]*\r\nSvcd-Nonce: [\w-]{43}\r\n/);
  for (const socket of [silent, secure, mute]) socket.on('error', () => {});
  const closed = Promise.all([silent, secure, mute].map((socket) => once(socket, 'close')));
  await eventually('the timers', () => helper.clock.timers === 3);
  helper.clock.advance(TLS_HELLO_TIMEOUT_MS - 1);
  assert.ok(![silent, secure, mute].some(({ closed: isClosed }) => isClosed));
  helper.clock.advance(1);
  await closed;
  await eventually('no timers', () => helper.clock.timers === 0);
});

test('heads above 16 KiB are refused', async (t) => {
  const helper = await lendingHelper(t);
  const socket = connectTls({ port: helper.port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  const closed = once(socket, 'close');
  socket.resume();
  socket.write(`GET /svcd/1 HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(MAX_TLS_HEAD_BYTES)}\r\n\r\n`);
  await closed;
});

test('bytes that are no TLS are cut off', async (t) => {
  const helper = await lendingHelper(t);
  const socket = connect(helper.port, '127.0.0.1');
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  socket.resume();
  socket.write('GET / HTTP/1.1\r\n\r\n');
  await closed;
});

test('other requests get a plain page', async (t) => {
  const helper = await lendingHelper(t);
  for (const [path, headers] of [
    ['/', {}],
    ['/svcd/1', {}],
    ['/svcd/2', { Connection: 'Upgrade', Upgrade: 'websocket' }],
  ] as const) {
    const request = get({
      port: helper.port,
      host: '127.0.0.1',
      path,
      headers,
      rejectUnauthorized: false,
      agent: false,
    });
    const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage];
    assert.equal(response.statusCode, 404, path);
    assert.equal(Buffer.concat(await response.toArray()).toString(), 'Not found.\n');
  }
});

test('a source has at most 64 connections, and a rate of handshakes', async (t) => {
  const helper = await lendingHelper(t, { isTls: false });
  const headers = { 'X-Forwarded-For': '203.0.113.7' };
  for (let i = 0; i < MAX_TLS_CONNECTIONS_PER_SOURCE; i++) await borrow(t, helper.url, { headers });
  helper.clock.jump(60_000);
  await assert.rejects(borrow(t, helper.url, { headers }), /429/);
  const other = await borrow(t, helper.url, { headers: { 'X-Forwarded-For': '198.51.100.1' } });
  assert.equal(other.reply?.status, TLS_STATUS.ok);
});

test('a source that connects again and again is rate-limited', async (t) => {
  const helper = await lendingHelper(t, { isTls: false });
  const headers = { 'X-Forwarded-For': '203.0.113.7' };
  for (let i = 0; i < MAX_TLS_CONNECTIONS_PER_SOURCE; i++) {
    const { socket, closed } = await borrow(t, helper.url, { headers });
    socket.terminate();
    await closed;
  }
  await assert.rejects(borrow(t, helper.url, { headers }), /429/);
  helper.clock.advance(500);
  assert.equal((await borrow(t, helper.url, { headers })).reply?.status, TLS_STATUS.ok);
});

test('a client has at most 32 ports', async (t) => {
  const helper = await lendingHelper(t);
  const node = await udpNode(t);
  const client = await borrow(t, helper.url);
  client.send(1, node.address, tagged());
  await eventually('the datagram', () => node.arrivals.length === 1);
  const [first] = node.arrivals;
  assert.ok(first !== undefined);
  await node.send(answered(), first.from);
  await eventually('the answer', () => client.received.length === 1);
  for (let number = 2; number <= MAX_LENT_PORTS_PER_CLIENT + 1; number++) client.send(number, node.address, tagged());
  await eventually('the last one is dropped', () => helper.server.usage.dropped === 1);
  assert.equal(helper.server.usage.ports, MAX_LENT_PORTS_PER_CLIENT);
  client.send(1, null);
  client.send(MAX_LENT_PORTS_PER_CLIENT + 1, node.address, tagged());
  await eventually('all', () => node.arrivals.length === MAX_LENT_PORTS_PER_CLIENT + 1);
});

test('many keys of one source get at most half of all ports', async (t) => {
  const total = 40;
  const helper = await lendingHelper(t, { isTls: false, descriptors: total * 10 });
  const headers = { 'X-Forwarded-For': '203.0.113.7' };
  const [one, two, other] = [
    await borrow(t, helper.url, { headers }),
    await borrow(t, helper.url, { headers }),
    await borrow(t, helper.url, { headers: { 'X-Forwarded-For': '198.51.100.1' } }),
  ];
  const remote = (number: number) => ({ host: '203.0.113.200', port: 40_000 + number });
  for (const client of [one, two])
    for (let number = 1; number <= 15; number++) client.send(number, remote(number), tagged());
  await eventually('the rest is dropped', () => helper.server.usage.dropped > 0 && helper.server.usage.ports === 20);
  for (let number = 1; number <= 15; number++) other.send(number, remote(number), tagged());
  await eventually('others still get ports', () => helper.server.usage.ports === 35);
});

test('a budget that is used up drops datagrams, and a short one costs as much as 256 bytes', async (t) => {
  let left = 300;
  const helper = await lendingHelper(t, { spend: (bytes) => (left -= bytes) >= 0 });
  const node = await udpNode(t);
  const client = await borrow(t, helper.url);
  client.send(1, node.address, tagged());
  client.send(1, node.address, tagged());
  await eventually('one is dropped', () => helper.server.usage.dropped === 1);
  assert.equal(helper.server.usage.bytes, tagged().length);
});

test('an address of this node is reached locally, and answers come from the address that the client used', async (t) => {
  const node = await udpNode(t);
  const outer = { host: '203.0.113.7', port: 4121 };
  const helper = await lendingHelper(t, { outer: [outer, node.address] });
  const client = await borrow(t, helper.url);
  client.send(1, outer, tagged());
  await eventually('the datagram', () => node.arrivals.length === 1);
  const [arrival] = node.arrivals;
  assert.ok(arrival !== undefined);
  await node.send(answered('answer'), arrival.from);
  await eventually('the answer', () => client.received.length === 1);
  assert.deepEqual(client.received[0]?.remote, outer);
});

test('clients of one helper reach each other at its address in front of a NAT', async (t) => {
  const outer = { host: '203.0.113.7', port: 4121 };
  const node = await udpNode(t);
  const helper = await lendingHelper(t, { outer: [outer, node.address] });
  const [one, two] = [await borrow(t, helper.url), await borrow(t, helper.url)];
  for (const client of [one, two]) client.send(1, outer, tagged());
  await eventually('both ports', () => node.arrivals.length === 2);
  const [first, second] = node.arrivals.map(({ from }) => ({ host: outer.host, port: from.port }));
  assert.ok(first !== undefined && second !== undefined);
  const local = node.arrivals[0]?.from ?? first;
  assert.deepEqual([helper.server.outer(local), helper.server.local(first)], [first, local]);
  const others = [node.address, { host: '198.51.100.1', port: first.port }];
  assert.deepEqual(
    [others.map((one) => helper.server.outer(one)), others.map((one) => helper.server.local(one))],
    [others, others],
  );
  one.send(1, second, OPENING);
  await eventually('the datagram', () => two.received.length === 1);
  two.send(1, first, OPENING);
  await eventually('the answer', () => one.received.length === 1);
  assert.deepEqual(one.received[0]?.remote, second);
  one.send(1, { host: outer.host, port: 4123 }, tagged());
  await eventually('a port that is not lent gets nothing', () => helper.server.usage.datagrams === 7);
});

test('an invalid message ends the connection, and its ports are kept', async (t) => {
  const helper = await lendingHelper(t);
  const node = await udpNode(t);
  const client = await borrow(t, helper.url);
  client.send(1, node.address, tagged());
  await eventually('the datagram', () => node.arrivals.length === 1);
  client.socket.send(Buffer.concat([encodeEntry(closingEntry(2)), Buffer.from([0])]));
  await client.closed;
  assert.equal(helper.server.usage.ports, 1);
});

test('listeners open and close with the role of a helper, and clients remain', async (t) => {
  let helps = false;
  const helper = await lendingHelper(t, { helps: () => helps });
  assert.deepEqual(helper.server.addresses, []);
  helps = true;
  helper.server.update();
  const [address] = await eventually('the listener', () => {
    const { addresses } = helper.server;
    return addresses.length === 1 && addresses;
  });
  const url = `wss://127.0.0.1:${address?.port}/svcd/1`;
  const node = await udpNode(t);
  const client = await borrow(t, url);
  helps = false;
  helper.server.update();
  await eventually('the listener is closed', () => helper.server.addresses.length === 0);
  client.send(1, node.address, tagged());
  await eventually('the datagram', () => node.arrivals.length === 1);
});

test('a port that cannot be opened is reported with its reason', async (t) => {
  const holder = createServer();
  holder.listen(0, '127.0.0.1');
  await once(holder, 'listening');
  t.after(() => holder.close());
  const { port } = holder.address() as AddressInfo;
  const helper = await lendingHelper(t, { port });
  assert.deepEqual(helper.server.addresses, []);
  assert.deepEqual(helper.server.failed, [{ host: '127.0.0.1', port, isNamed: true, trouble: 'in_use' }]);
  assert.deepEqual((await lendingHelper(t)).server.failed, []);
});

test('a listener whose port was in use is opened at the next update', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const helper = await lendingHelper(t, { port });
  assert.deepEqual(helper.server.addresses, []);
  other.close();
  await once(other, 'close');
  helper.server.update();
  const [opened] = await eventually('the listener', () => {
    const { addresses } = helper.server;
    return addresses.length === 1 && addresses;
  });
  assert.equal(opened?.port, port);
  assert.deepEqual(helper.server.failed, []);
});

test('a helper without sessions does not listen', async (t) => {
  const helper = await lendingHelper(t, { sessions: 0 });
  assert.deepEqual(helper.server.addresses, []);
});

test('a certificate from files is used, and read again when it has changed', async (t) => {
  const folder = temporaryDirectory(t);
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const write = async (name: string): Promise<void> => {
    const { cert, key } = selfSigned(name);
    await writeFile(files.cert, cert);
    await writeFile(files.key, key);
  };
  await write('first.test');
  const helper = await lendingHelper(t, { certificate: files });
  const subject = async (): Promise<unknown> => {
    const socket = connectTls({ port: helper.port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const { CN } = socket.getPeerCertificate().subject;
    socket.destroy();
    await once(socket, 'close');
    return CN;
  };
  assert.equal(await subject(), 'first.test');
  await write('second.test');
  await eventually('the end of the connection', () => helper.clock.timers === 1);
  helper.clock.advance(60 * 60_000);
  await eventually('the new certificate', async () => (await subject()) === 'second.test');
});

test('two keys of one client are two clients', async (t) => {
  const helper = await lendingHelper(t);
  const clients = [await borrow(t, helper.url), await borrow(t, helper.url, { key: KeyPair.generate() })];
  assert.ok(clients.every(({ reply }) => reply?.status === TLS_STATUS.ok));
  assert.equal(helper.server.usage.clients, 2);
});

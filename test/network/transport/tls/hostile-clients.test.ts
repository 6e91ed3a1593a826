/** Clients that try to use a helper as an open UDP proxy, or to exhaust it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { Socket } from 'node:dgram';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { DialGuard } from '../../../../src/network/reachability/dial-guard.ts';
import { MAX_UNANSWERED_PACKETS } from '../../../../src/network/transport/tls/destinations.ts';
import { MAX_UNSENT_BYTES } from '../../../../src/network/transport/tls/pacing.ts';
import { MIN_CHARGED_BYTES } from '../../../../src/network/transport/tls/pairs.ts';
import { DESTINATIONS_PER_CLIENT, REFUSED_ENTRIES_PER_SOURCE } from '../../../../src/network/transport/tls/server.ts';
import { closingEntry, encodeEntry, TLS_PURPOSE, TLS_STATUS } from '../../../../src/network/transport/tls/wire.ts';
import { eventually } from '../../../support/eventually.ts';
import { answered, borrow, lendingHelper, tagged, udpNode } from './borrower.ts';

const PUBLIC_CLIENT = { 'X-Forwarded-For': '203.0.113.7' };

/** Destinations of all datagrams that sockets of this process send. No datagram leaves. */
function recordSent(
  t: TestContext,
): readonly { readonly host: string; readonly port: number; readonly bytes: number }[] {
  const sent: { host: string; port: number; bytes: number }[] = [];
  t.mock.method(Socket.prototype, 'send', (datagram: Uint8Array, port: number, host: string) => {
    sent.push({ host, port, bytes: datagram.length });
  });
  return sent;
}

function initial(): Uint8Array {
  const packet = Buffer.alloc(1200, 7);
  packet[0] = 0xc3;
  packet.writeUInt32BE(1, 1);
  return new Uint8Array(packet);
}

/** A helper on a public host with a private interface, and a way to wait until it has handled all messages. */
async function publicHelper(t: TestContext) {
  const dialGuard = new DialGuard({
    interfaces: () => [{ address: '10.0.0.5', cidr: '10.0.0.5/8' }],
    usesLoopback: () => true,
  });
  return await lendingHelper(t, { isTls: false, mayDial: (address) => dialGuard.mayDial(address) });
}

test('no datagram leaves for private, loopback, multicast or low-port destinations', async (t) => {
  const sent = recordSent(t);
  const helper = await publicHelper(t);
  const client = await borrow(t, helper.url, { headers: PUBLIC_CLIENT });
  const hosts = ['10.0.0.1', '10.0.0.5', '192.168.0.1', '127.0.0.1', '169.254.169.254', '224.0.0.251', '239.1.1.1'];
  const hosts6 = ['::1', 'fe80::1', 'fd00::1', 'ff02::fb', '64:ff9b::7f00:1', '2002:a00:1::'];
  const ports = [53, 123, 1023, 1900, 4121, 5353, 11_211];
  let count = 0;
  for (const host of [...hosts, ...hosts6, '0.0.0.0', '255.255.255.255'])
    for (const port of ports)
      for (const datagram of [tagged(), initial()]) {
        client.send(1 + (count % 32), { host, port }, datagram);
        count++;
      }
  for (const port of ports.filter((one) => one < 1024 && one !== 443))
    client.send(1, { host: '198.51.100.1', port }, tagged());
  count += 3;
  await eventually('everything is dropped', () => helper.server.usage.dropped === count);
  assert.deepEqual(sent, []);
});

test('a destination that does not answer gets three packets, and a client reaches 64 of them', async (t) => {
  const sent = recordSent(t);
  const helper = await publicHelper(t);
  const client = await borrow(t, helper.url, { headers: PUBLIC_CLIENT });
  const destinations = 200;
  const repeats = 10;
  for (let i = 0; i < repeats; i++)
    for (let port = 2000; port < 2000 + destinations; port++)
      client.send(1 + (i % 32), { host: '198.51.100.1', port }, i % 2 === 0 ? tagged() : initial());
  const { usage } = helper.server;
  assert.equal(usage.datagrams, 0);
  await eventually('all messages', () => {
    const { datagrams, dropped } = helper.server.usage;
    return datagrams + dropped === destinations * repeats;
  });
  const counts = Map.groupBy(sent, ({ port }) => port);
  assert.equal(counts.size, DESTINATIONS_PER_CLIENT);
  for (const [, packets] of counts) assert.equal(packets.length, MAX_UNANSWERED_PACKETS);
});

test('payloads of other protocols are not forwarded', async (t) => {
  const sent = recordSent(t);
  const helper = await publicHelper(t);
  const client = await borrow(t, helper.url, { headers: PUBLIC_CLIENT });
  const payloads = ['\xff\xff\xff\xffgetinfo', 'M-SEARCH * HTTP/1.1', 'x'.repeat(1400)].map((text) =>
    Buffer.from(text),
  );
  const dns = Buffer.from('12340100000100000000000007657861 6d706c6503636f6d0000010001'.replace(' ', ''), 'hex');
  const all = [...payloads, dns, Buffer.alloc(0)];
  for (const payload of all) client.send(1, { host: '198.51.100.1', port: 27_960 }, payload);
  await eventually('everything is dropped', () => helper.server.usage.dropped === all.length);
  assert.deepEqual(sent, []);
});

test('many keys of one source share a rate of new destinations', async (t) => {
  const sent = recordSent(t);
  const helper = await publicHelper(t);
  const clients = 12;
  for (let n = 0; n < clients; n++) {
    const client = await borrow(t, helper.url, { headers: PUBLIC_CLIENT, key: KeyPair.generate() });
    assert.equal(client.reply?.status, TLS_STATUS.ok);
    for (let i = 0; i < DESTINATIONS_PER_CLIENT; i++)
      client.send(1, { host: '198.51.100.1', port: 2000 + 100 * n + i }, tagged());
  }
  await eventually('all messages', () => {
    const { datagrams, dropped } = helper.server.usage;
    return datagrams + dropped === clients * DESTINATIONS_PER_CLIENT;
  });
  assert.equal(sent.length, 512);
});

test('a client that does not read costs a bounded number of bytes, and is cut off', async (t) => {
  const helper = await lendingHelper(t);
  const node = await udpNode(t);
  const client = await borrow(t, helper.url);
  client.send(1, node.address, tagged());
  await eventually('the datagram', () => node.arrivals.length === 1);
  const [first] = node.arrivals;
  assert.ok(first !== undefined);
  client.socket.pause();
  const before = process.memoryUsage().arrayBuffers;
  const datagram = answered('x'.repeat(1400));
  while (helper.server.usage.dropped === 0) {
    for (let i = 0; i < 50; i++) await node.send(datagram, first.from);
    await turn();
    helper.clock.advance(2);
  }
  const grown = process.memoryUsage().arrayBuffers - before;
  assert.ok(grown < MAX_UNSENT_BYTES + 32 * 1024 * 1024, `${grown} bytes`);
  helper.clock.advance(20_000);
  assert.equal(helper.server.usage.ports, 1, 'its ports are kept for a while');
  helper.clock.advance(30_000);
  assert.equal(helper.server.usage.ports, 0);
});

test('messages of 64 KiB with the smallest entries are handled', async (t) => {
  const helper = await publicHelper(t);
  const client = await borrow(t, helper.url, { headers: PUBLIC_CLIENT });
  const entry = encodeEntry({ number: 1, remote: { host: '10.0.0.1', port: 4121 }, datagram: new Uint8Array() });
  const count = Math.floor((64 * 1024) / entry.length);
  client.socket.send(Buffer.concat(Array.from({ length: count }, () => entry)));
  await eventually('all entries', () => helper.server.usage.dropped === count);
});

test('a client with too many entries that are not permitted is cut off, also when it comes again', async (t) => {
  const helper = await publicHelper(t);
  const key = KeyPair.generate();
  const entry = encodeEntry({ number: 1, remote: { host: '10.0.0.1', port: 4121 }, datagram: new Uint8Array() });
  const message = Buffer.concat(Array.from({ length: 6000 }, () => entry));
  const client = await borrow(t, helper.url, { headers: PUBLIC_CLIENT, key });
  client.socket.send(message);
  client.socket.send(message);
  await eventually('it is cut off', () => helper.server.usage.clients === 0);
  const { dropped } = helper.server.usage;
  assert.ok(dropped < 8500, `${dropped} entries were examined`);
  const again = await borrow(t, helper.url, { headers: PUBLIC_CLIENT, key });
  again.socket.send(message);
  await eventually('it is cut off again', () => helper.server.usage.clients === 0);
  assert.ok(helper.server.usage.dropped < dropped + 100);
});

test('closing entries for ports that are not open are not permitted', async (t) => {
  const helper = await publicHelper(t);
  const client = await borrow(t, helper.url, { headers: PUBLIC_CLIENT });
  const closing = encodeEntry(closingEntry(3));
  const message = Buffer.concat(Array.from({ length: 6000 }, () => closing));
  client.socket.send(message);
  client.socket.send(message);
  await eventually('it is cut off', () => helper.server.usage.clients === 0);
});

for (const what of ['ports', 'a lane'] as const)
  test(`pings of a client with ${what} are paid from the budgets, and too many without budget cut it off`, async (t) => {
    let spent = 0;
    let hasBudget = true;
    const spend = (bytes: number): boolean => {
      if (hasBudget) spent += bytes;
      return hasBudget;
    };
    const helper = await lendingHelper(t, { spend });
    const options = what === 'ports' ? {} : { purpose: TLS_PURPOSE.lane, token: new Uint8Array(16).fill(7) };
    const client = await borrow(t, helper.url, options);
    if (what === 'a lane') await borrow(t, helper.url, options);
    let answered = 0;
    client.socket.on('pong', () => void answered++);
    // Few at one time: a client that does not read is cut off too.
    const ping = async (count: number): Promise<void> => {
      const before = answered;
      for (let i = 0; i < count; i++) client.socket.ping();
      await eventually(
        'the answers',
        () => answered === before + count || client.socket.readyState > client.socket.OPEN,
      );
    };
    await ping(100);
    assert.equal(spent, 100 * MIN_CHARGED_BYTES);
    hasBudget = false;
    const permitted = 32 * REFUSED_ENTRIES_PER_SOURCE;
    for (let sent = 0; sent < 2 * permitted; sent += 100) await ping(100);
    await client.closed;
    assert.ok(answered >= permitted && answered <= permitted + 200, `${answered} answers`);
  });

const IDLE_CLIENTS = 500;
/** For each client with two ports, bytes. About 63 KiB are usual, mostly of OpenSSL. */
const MAX_IDLE_BYTES: number = 80 * 1024;

async function say(child: ChildProcess, message: string): Promise<number> {
  const answer = once(child, 'message') as Promise<[number]>;
  child.send(message);
  return (await answer)[0];
}

test('an idle client costs a helper little memory', async (t) => {
  const path = new URL('idle-helper.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [path], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  t.after(() => child.kill());
  const [port] = (await once(child, 'message')) as [number];
  const node = await udpNode(t);
  const url = `wss://127.0.0.1:${port}/svcd/1`;
  const connect = async (): Promise<void> => {
    const client = await borrow(t, url);
    assert.equal(client.reply?.status, TLS_STATUS.ok);
    client.send(1, node.address, tagged());
    client.send(2, node.address, tagged());
  };
  const connectMany = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 25) await Promise.all(Array.from({ length: 25 }, connect));
  };
  // Code and caches are loaded first.
  await connectMany(50);
  await eventually('their ports', async () => (await say(child, 'ports')) === 100);
  const before = await say(child, 'memory');
  await connectMany(IDLE_CLIENTS);
  await eventually('their ports', async () => (await say(child, 'ports')) === 100 + 2 * IDLE_CLIENTS);
  // Buffers of the handshakes are free when their streams are idle, which takes longer on a busy machine.
  await eventually(`at most ${MAX_IDLE_BYTES} bytes for each client`, async () => {
    const each = ((await say(child, 'memory')) - before) / IDLE_CLIENTS;
    return each <= MAX_IDLE_BYTES;
  });
});

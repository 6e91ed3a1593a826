import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import multicastDns from 'multicast-dns';
import type { Address } from '../../../src/foundation/address.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { networkTag } from '../../../src/network/dht/wire.ts';
import { LanDiscovery } from '../../../src/network/reach/lan.ts';
import { decodeAnnouncement, encodeAnnouncement } from '../../../src/network/reach/lan-announcement.ts';
import { testKeys } from '../../support/agents.ts';
import { eventually } from '../../support/eventually.ts';
import { quietPort } from '../../support/programs.ts';
import { TestClock } from '../../support/test-clock.ts';

type PacketRecord = multicastDns.Packet['answers'][number];

/** TXT texts come as buffers. */
function asOnWire(data: unknown): unknown {
  return Array.isArray(data) ? data.map((text) => Buffer.from(String(text))) : data;
}

interface Lan {
  readonly mdnsPort: number;
  readonly t: Pick<TestContext, 'after'>;
}

interface Daemon {
  readonly discovery: LanDiscovery;
  readonly found: Address[];
}

/** Starts the discovery of node `n`, whose DHT listens at port `n`; all traffic stays on the loopback interface. */
async function start({ mdnsPort, t }: Lan, n: number, network = '', clock = systemClock): Promise<Daemon> {
  const found: Address[] = [];
  const discovery = new LanDiscovery(
    { network: networkTag(network), nodeKey: testKeys(n).publicKey, interface: '127.0.0.1', mdnsPort },
    { clock, log: silentLog, dhtPort: () => n, onFound: (address) => found.push(address) },
  );
  await discovery.start();
  t.after(() => discovery.stop());
  return { discovery, found };
}

test('daemons on one machine find each other', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const a = await start(lan, 1001);
  const b = await start(lan, 1002);
  await eventually('b finds a', () => b.found.length > 0);
  await eventually('a finds b', () => a.found.length > 0);
  assert.deepEqual(b.found, [{ host: '127.0.0.1', port: 1001 }]);
  assert.deepEqual(a.found, [{ host: '127.0.0.1', port: 1002 }]);
});

test('another network is not found, and no daemon finds itself', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const stranger = await start(lan, 1001, 'other');
  const a = await start(lan, 1002);
  const b = await start(lan, 1003);
  await eventually('a and b find each other', () => a.found.length > 0 && b.found.length > 0);
  assert.deepEqual(stranger.found, []);
  assert.deepEqual(a.found, [{ host: '127.0.0.1', port: 1003 }]);
});

test('a stranger who floods the LAN is heard only so often', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const clock = new TestClock();
  const a = await start(lan, 1001, '', clock);
  const stranger = multicastDns({ bind: '0.0.0.0', interface: '127.0.0.1', port: lan.mdnsPort });
  t.after(() => new Promise<void>((resolve) => stranger.destroy(resolve)));
  await once(stranger, 'ready');
  const nodeKey = testKeys(2).publicKey;
  const announce = async (port: number): Promise<void> => {
    const heard = once(stranger, 'response');
    stranger.respond(encodeAnnouncement({ network: networkTag(''), nodeKey, port }));
    await heard;
  };
  for (let port = 1; port <= 60; port++) await announce(port);
  await eventually('the flood comes in', () => a.found.length >= 15);
  assert.ok(a.found.length <= 21, `${a.found.length} reports`);
  await eventually('a calm word is heard again', async () => {
    clock.advance(60_000);
    await announce(2000);
    return a.found.some(({ port }) => port === 2000);
  });
});

test('256 nodes are remembered as reported, and the one before them is reported anew', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const clock = new TestClock();
  const a = await start(lan, 1001, '', clock);
  const others = multicastDns({ bind: '0.0.0.0', interface: '127.0.0.1', port: lan.mdnsPort });
  t.after(() => new Promise<void>((resolve) => others.destroy(resolve)));
  await once(others, 'ready');
  /** Fewer than are read at once, and then the time in which as many more are, with some for our own questions. */
  const announce = async (ports: readonly number[]): Promise<void> => {
    for (const port of ports) {
      const heard = once(others, 'response');
      others.respond(encodeAnnouncement({ network: networkTag(''), nodeKey: testKeys(2).publicKey, port }));
      await heard;
    }
    await eventually(`${ports.at(-1)} is heard`, () => a.found.at(-1)?.port === ports.at(-1));
    clock.advance(ports.length * 225);
  };
  const ports = Array.from({ length: 257 }, (_, i) => i + 1);
  for (let i = 0; i < ports.length; i += 12) await announce(ports.slice(i, i + 12));
  assert.deepEqual(
    a.found.map(({ port }) => port),
    ports,
  );
  // Both of them within the minute of their reports.
  await announce([257, 1]);
  assert.deepEqual(
    a.found.slice(257).map(({ port }) => port),
    [1],
  );
});

test('answers at most once a second, and loses no question', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const clock = new TestClock();
  await start(lan, 1001, '', clock);
  const asker = multicastDns({ bind: '0.0.0.0', interface: '127.0.0.1', port: lan.mdnsPort });
  t.after(() => new Promise<void>((resolve) => asker.destroy(resolve)));
  let answers = 0;
  asker.on('response', () => answers++);
  await once(asker, 'ready');
  for (let i = 0; i < 10; i++) {
    const heard = once(asker, 'query');
    asker.query([{ name: '_svcd._udp.local', type: 'PTR' }]);
    await heard;
  }
  await eventually('the answer waits', () => clock.timers === 2);
  assert.ok(answers <= 1, 'only the greeting may have been heard');
  clock.advance(1000);
  await eventually('one answer for all', () => answers >= 1);
});

test('questions for other services are left to others', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const clock = new TestClock();
  const a = await start(lan, 1001, '', clock);
  const asker = multicastDns({ bind: '0.0.0.0', interface: '127.0.0.1', port: lan.mdnsPort });
  t.after(() => new Promise<void>((resolve) => asker.destroy(resolve)));
  await once(asker, 'ready');
  // Its own questions, now and after a second, reach it too; the third comes three seconds later.
  for (const ms of [0, 1000]) {
    clock.advance(ms);
    await eventually('the answer waits', () => clock.timers === 2);
  }
  clock.advance(1000);
  assert.equal(clock.timers, 1);
  asker.query([
    { name: '_ipp._tcp.local', type: 'PTR' },
    { name: '_svcd._udp.local', type: 'TXT' },
  ]);
  // What is sent after them is heard after them.
  asker.respond(encodeAnnouncement({ network: networkTag(''), nodeKey: testKeys(2).publicKey, port: 2000 }));
  await eventually('the announcement is heard', () => a.found.length > 0);
  assert.equal(clock.timers, 1, 'nothing is to be answered');
});

test('announcements that are none are ignored', () => {
  const good = encodeAnnouncement({ network: networkTag('x'), nodeKey: testKeys(1).publicKey, port: 4121 });
  const packet = (change: (record: PacketRecord) => PacketRecord | null): multicastDns.Packet => ({
    questions: [],
    answers: good.answers,
    additionals: good.additionals
      .map((r): PacketRecord => ({ ...r, data: asOnWire(r.data) }))
      .map(change)
      .filter((r) => r !== null),
  });
  assert.equal(decodeAnnouncement(packet((r) => r))?.port, 4121);
  assert.equal(decodeAnnouncement(packet((r) => (r.type === 'TXT' ? null : r))), null);
  assert.equal(decodeAnnouncement(packet((r) => (r.type === 'SRV' ? null : r))), null);
  assert.equal(decodeAnnouncement(packet((r) => (r.type === 'SRV' ? { ...r, data: { port: 0 } } : r))), null);
  assert.equal(decodeAnnouncement(packet((r) => (r.type === 'TXT' ? { ...r, data: [Buffer.from('v=1')] } : r))), null);
  assert.equal(decodeAnnouncement(packet((r) => ({ ...r, name: `other.${r.name}` })))?.port, 4121);
  assert.equal(decodeAnnouncement(packet((r) => ({ ...r, name: 'printer._ipp._tcp.local' }))), null);
});

test('no record of a stranger makes the decoder throw', () => {
  const data = fc.oneof(
    fc.anything(),
    fc.array(fc.uint8Array().map((bytes) => Buffer.from(bytes))),
    fc.record({ port: fc.anything() }),
  );
  const record = fc.record({
    name: fc.constantFrom('a._svcd._udp.local', '_svcd._udp.local', 'x'),
    type: fc.constantFrom('SRV', 'TXT', 'PTR'),
    data,
  });
  fc.assert(
    fc.property(fc.array(record), (answers) => {
      const decoded = decodeAnnouncement({ questions: [], answers, additionals: [] });
      assert.ok(decoded === null || (decoded.port >= 1 && decoded.port <= 65_535));
    }),
    { seed: 7, numRuns: 500 },
  );
});

test('stopping leaves nothing behind', async () => {
  const clock = new TestClock();
  const { discovery } = await start({ t: { after: () => {} }, mdnsPort: await quietPort() }, 1001, '', clock);
  assert.ok(clock.timers > 0);
  await discovery.stop();
  assert.equal(clock.timers, 0);
});

import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { Address } from '../../../src/foundation/address.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import type { InterfaceAddress } from '../../../src/network/reachability/dial-guard.ts';
import { INTERFACES_PERIOD_MS, LanDiscovery, MdnsSocket } from '../../../src/network/reachability/lan-discovery.ts';
import {
  DNS_TYPE,
  decodeAnnouncement,
  decodePacket,
  encodeAnnouncement,
  encodeQuery,
  encodeQuestion,
  type MdnsPacket,
  type MdnsRecord,
} from '../../../src/network/reachability/mdns-messages.ts';
import { networkTag } from '../../../src/network/records/node-address.ts';
import { testKeys } from '../../support/agents.ts';
import { eventually } from '../../support/eventually.ts';
import { quietPort } from '../../support/programs.ts';
import { TestClock } from '../../support/test-clock.ts';

interface Lan {
  readonly mdnsPort: number;
  /** Interfaces of the machine; loopback by default. */
  readonly interfaces?: readonly InterfaceAddress[];
  readonly t: Pick<TestContext, 'after'>;
}

interface Daemon {
  readonly discovery: LanDiscovery;
  readonly found: Address[];
}

const LOOPBACK: InterfaceAddress = { address: '127.0.0.1', cidr: '127.0.0.1/8' };

/** Starts the discovery of node `n` with its DHT at port `n`. All traffic uses the loopback interface. */
async function start(
  { mdnsPort, interfaces = [LOOPBACK], t }: Lan,
  n: number,
  network = '',
  clock = systemClock,
): Promise<Daemon> {
  const found: Address[] = [];
  const discovery = new LanDiscovery(
    { network: networkTag(network), nodeKey: testKeys(n).publicKey, interface: '127.0.0.1', mdnsPort },
    {
      clock,
      log: silentLog,
      dhtPort: () => n,
      interfaces: () => interfaces,
      onFound: (address) => found.push(address),
    },
  );
  await discovery.start();
  t.after(() => discovery.stop());
  return { discovery, found };
}

/** Another program in the LAN. It sends packets and receives all packets, including its own. */
class Stranger extends EventEmitter<{ query: []; response: [] }> {
  readonly #socket: MdnsSocket;

  constructor(port: number) {
    super();
    const onMessage = (bytes: Buffer): void => {
      this.emit(decodePacket(bytes)?.isResponse === true ? 'response' : 'query');
    };
    this.#socket = new MdnsSocket({ interface: '127.0.0.1', port }, { onMessage, onError: assert.ifError });
  }

  static async start({ mdnsPort, t }: Lan): Promise<Stranger> {
    const stranger = new Stranger(mdnsPort);
    await stranger.#socket.open();
    t.after(() => stranger.#socket.close());
    return stranger;
  }

  /** Sends a packet and waits until it arrives. */
  async send(event: 'query' | 'response', packet: Uint8Array): Promise<void> {
    const arrived = once(this, event);
    this.#socket.send(packet);
    await arrived;
  }
}

/** The announcement of another node in this network. */
function announcementAt(port: number): Uint8Array {
  return encodeAnnouncement({ network: networkTag(''), nodeKey: testKeys(2).publicKey, port });
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

test('another network is ignored, and a daemon ignores itself', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const stranger = await start(lan, 1001, 'other');
  const a = await start(lan, 1002);
  const b = await start(lan, 1003);
  await eventually('a and b find each other', () => a.found.length > 0 && b.found.length > 0);
  assert.deepEqual(stranger.found, []);
  assert.deepEqual(a.found, [{ host: '127.0.0.1', port: 1003 }]);
});

test('announcements of a flooding stranger are rate-limited', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const clock = new TestClock();
  const a = await start(lan, 1001, '', clock);
  const stranger = await Stranger.start(lan);
  const announce = (port: number): Promise<void> => stranger.send('response', announcementAt(port));
  for (let port = 1; port <= 60; port++) await announce(port);
  await eventually('the flood arrives', () => a.found.length >= 15);
  assert.ok(a.found.length <= 21, `${a.found.length} reports`);
  await eventually('a later announcement is accepted again', async () => {
    clock.advance(60_000);
    await announce(2000);
    return a.found.some(({ port }) => port === 2000);
  });
});

test('the last 256 reported nodes are cached, and an older one is reported again', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const clock = new TestClock();
  const a = await start(lan, 1001, '', clock);
  const others = await Stranger.start(lan);
  /** Announces fewer nodes than one burst allows, then advances the clock until the limit has recovered. */
  const announce = async (ports: readonly number[]): Promise<void> => {
    for (const port of ports) await others.send('response', announcementAt(port));
    await eventually(`${ports.at(-1)} is found`, () => a.found.at(-1)?.port === ports.at(-1));
    clock.advance(ports.length * 225);
  };
  const ports = Array.from({ length: 257 }, (_, i) => i + 1);
  for (let i = 0; i < ports.length; i += 12) await announce(ports.slice(i, i + 12));
  assert.deepEqual(
    a.found.map(({ port }) => port),
    ports,
  );
  // Both are within a minute of their reports.
  await announce([257, 1]);
  assert.deepEqual(
    a.found.slice(257).map(({ port }) => port),
    [1],
  );
});

test('answers are sent at most once a second, and no query is lost', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const clock = new TestClock();
  await start(lan, 1001, '', clock);
  const stranger = await Stranger.start(lan);
  let answers = 0;
  stranger.on('response', () => answers++);
  for (let i = 0; i < 10; i++) await stranger.send('query', encodeQuestion());
  await eventually('the answer is scheduled', () => clock.timers === 3);
  assert.ok(answers <= 1, 'only the greeting may have arrived');
  clock.advance(1000);
  await eventually('one answer for all queries', () => answers >= 1);
});

test('queries for other services are not answered', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const clock = new TestClock();
  const a = await start(lan, 1001, '', clock);
  const stranger = await Stranger.start(lan);
  // The node also receives its own queries, immediately and after a second. The third follows three seconds later.
  for (const ms of [0, 1000]) {
    clock.advance(ms);
    await eventually('the answer is scheduled', () => clock.timers === 3);
  }
  clock.advance(1000);
  assert.equal(clock.timers, 2);
  await stranger.send('query', encodeQuery({ name: '_ipp._tcp.local', type: DNS_TYPE.ptr }));
  await stranger.send('query', encodeQuery({ name: '_svcd._udp.local', type: DNS_TYPE.txt }));
  // Packets arrive in order.
  await stranger.send('response', announcementAt(2000));
  await eventually('the announcement arrives', () => a.found.length > 0);
  assert.equal(clock.timers, 2, 'no answer is scheduled');
});

test('invalid announcements are ignored', () => {
  const good = decodePacket(
    encodeAnnouncement({ network: networkTag('x'), nodeKey: testKeys(1).publicKey, port: 4121 }),
  );
  assert.ok(good !== null);
  const packet = (change: (record: MdnsRecord) => MdnsRecord | null): MdnsPacket => ({
    ...good,
    records: good.records.map(change).filter((r) => r !== null),
  });
  const { srv, txt } = DNS_TYPE;
  const ofPort = (data: Uint8Array): Uint8Array => Buffer.concat([data.subarray(0, 4), Buffer.alloc(2)]);
  assert.equal(decodeAnnouncement(packet((r) => r))?.port, 4121);
  assert.equal(decodeAnnouncement(packet((r) => (r.type === txt ? null : r))), null);
  assert.equal(decodeAnnouncement(packet((r) => (r.type === srv ? null : r))), null);
  assert.equal(decodeAnnouncement(packet((r) => (r.type === srv ? { ...r, data: ofPort(r.data) } : r))), null);
  assert.equal(
    decodeAnnouncement(packet((r) => (r.type === txt ? { ...r, data: Buffer.from('\u0003v=1') } : r))),
    null,
  );
  assert.equal(decodeAnnouncement(packet((r) => ({ ...r, name: `other.${r.name}` })))?.port, 4121);
  assert.equal(decodeAnnouncement(packet((r) => ({ ...r, name: 'printer._ipp._tcp.local' }))), null);
  assert.equal(decodeAnnouncement({ ...good, isResponse: false }), null);
});

test('no record of a stranger makes the decoder throw', () => {
  const record = fc.record({
    name: fc.constantFrom('a._svcd._udp.local', '_svcd._udp.local', 'x'),
    type: fc.constantFrom(...Object.values(DNS_TYPE)),
    data: fc.uint8Array(),
  });
  fc.assert(
    fc.property(fc.array(record), (records) => {
      const decoded = decodeAnnouncement({ isResponse: true, questions: [], records });
      assert.ok(decoded === null || (decoded.port >= 1 && decoded.port <= 65_535));
    }),
    { seed: 7, numRuns: 500 },
  );
});

test('a packet that is too large for an Ethernet frame is ignored', async (t) => {
  const lan = { t, mdnsPort: await quietPort() };
  const a = await start(lan, 1001);
  const b = createSocket('udp4');
  t.after(() => b.close());
  const large = Buffer.concat([announcementAt(3000), Buffer.alloc(1500)]);
  await new Promise((resolve) => b.send(large, lan.mdnsPort, '127.0.0.1', resolve));
  await new Promise((resolve) => b.send(announcementAt(3001), lan.mdnsPort, '127.0.0.1', resolve));
  await eventually('the smaller packet arrives', () => a.found.length > 0);
  assert.deepEqual(
    a.found.map(({ port }) => port),
    [3001],
  );
});

test('a packet from outside the networks of this machine is ignored', {
  skip: process.platform !== 'linux' && 'only Linux has all addresses in 127.0.0.0/8',
}, async (t) => {
  const interfaces: InterfaceAddress[] = [
    { address: '127.0.0.1', cidr: '127.0.0.1/24' },
    { address: 'fe80::1', cidr: 'fe80::1/64' },
  ];
  const lan = { t, mdnsPort: await quietPort(), interfaces };
  const a = await start(lan, 1001);
  const sender = async (host: string): Promise<(port: number) => Promise<void>> => {
    const socket = createSocket('udp4');
    t.after(() => socket.close());
    socket.bind(0, host);
    await once(socket, 'listening');
    return (port) =>
      new Promise((resolve) => socket.send(announcementAt(port), lan.mdnsPort, '127.0.0.1', () => resolve()));
  };
  const [outside, onLink] = [await sender('127.0.1.5'), await sender('127.0.0.5')];
  await outside(3000);
  await onLink(3001);
  await eventually('the packet of the local network arrives', () => a.found.some(({ port }) => port === 3001));
  assert.deepEqual(a.found, [{ host: '127.0.0.5', port: 3001 }]);
});

test('a stop clears all timers', async () => {
  const clock = new TestClock();
  const { discovery } = await start({ t: { after: () => {} }, mdnsPort: await quietPort() }, 1001, '', clock);
  assert.ok(clock.timers > 0);
  await discovery.stop();
  assert.equal(clock.timers, 0);
});

test('discovery begins when the port of multicast DNS becomes free', async (t) => {
  const clock = new TestClock();
  const lan = { t, mdnsPort: await quietPort() };
  const exclusive = createSocket('udp4');
  exclusive.bind(lan.mdnsPort, '0.0.0.0');
  await once(exclusive, 'listening');
  const late = await start(lan, 1001, '', clock);
  exclusive.close();
  await once(exclusive, 'close');
  const other = await start(lan, 1002);
  clock.advance(INTERFACES_PERIOD_MS);
  await eventually('both find each other', () => {
    clock.advance(1000);
    return late.found.length > 0 && other.found.length > 0;
  });
});

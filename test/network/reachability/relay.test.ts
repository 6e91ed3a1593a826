import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import {
  DEFAULT_RELAY_LIMITS,
  MAX_RELAYED,
  RELAY_IDLE_MS,
  RELAY_JOIN_MS,
  RELAY_TOKEN_BYTES,
  Relay,
  type RelayLimits,
  type RelayOffer,
  relayLimits,
} from '../../../src/network/reachability/relay.ts';
import { RELAY_BYTES_PER_DAY, RELAY_BYTES_PER_S } from '../../../src/network/reachability/relay-budgets.ts';
import { TestClock } from '../../support/test-clock.ts';

const CALLER = { host: '203.0.113.7', port: 5000 };
const CALLED = { host: '198.51.100.7', port: 6000 };
const SECOND_MS = 1000;
const DAY_MS = 24 * 60 * 60 * SECOND_MS;

/** Similar to the first packet of a QUIC handshake. */
function initial(length = 1200): Uint8Array {
  const datagram = new Uint8Array(length).fill(7);
  datagram[0] = 0xc3;
  return datagram;
}

class FakeSocket {
  static #lastPort = 30_000;
  readonly sent: { readonly datagram: Uint8Array; readonly to: Address }[] = [];
  isOpen = false;
  isBindable = true;
  #read: (datagram: Uint8Array, from: Address) => void = () => {};
  #port = 0;

  on(_event: 'message', listener: (datagram: Uint8Array, from: Address) => void): void {
    this.#read = listener;
  }

  bind(): void {
    if (!this.isBindable) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' });
    this.isOpen = true;
    this.#port = ++FakeSocket.#lastPort;
  }

  address(): Address {
    return { host: '0.0.0.0', port: this.#port };
  }

  trySend(datagram: Uint8Array, port: number, host: string): void {
    this.sent.push({ datagram, to: { host, port } });
  }

  async close(): Promise<void> {
    this.isOpen = false;
  }

  receive(datagram: Uint8Array, from: Address): void {
    this.#read(datagram, from);
  }
}

function world(limits: Partial<RelayLimits> = {}) {
  const clock = new TestClock();
  const sockets: FakeSocket[] = [];
  const createSocket = (): FakeSocket => {
    const socket = new FakeSocket();
    sockets.push(socket);
    return socket;
  };
  const relay = new Relay(limits, { clock, log: silentLog, createSocket });
  const socketAt = (port: number): FakeSocket => {
    const socket = sockets.find((one) => one.address().port === port);
    assert.ok(socket);
    return socket;
  };
  const open = (host = CALLER.host) => {
    const offer = relay.open(host, CALLED.host);
    assert.ok(offer);
    return { offer, caller: socketAt(offer.callerPort), called: socketAt(offer.calledPort) };
  };
  /** A session with both ends connected. */
  const joined = (host = CALLER.host) => {
    const session = open(host);
    session.called.receive(session.offer.token, CALLED);
    session.called.sent.length = 0;
    session.caller.receive(initial(), { ...CALLER, host });
    return session;
  };
  return { clock, relay, sockets, open, joined };
}

test('datagrams of two nodes are forwarded, each from the port that its receiver uses', () => {
  const { relay, open } = world();
  const { offer, caller, called } = open();
  called.receive(offer.token, CALLED);
  assert.deepEqual(called.sent, [{ datagram: offer.token, to: CALLED }], 'the token is echoed');
  const hello = initial();
  caller.receive(hello, CALLER);
  assert.deepEqual(called.sent.at(-1), { datagram: hello, to: CALLED });
  const answer = new Uint8Array(50);
  called.receive(answer, CALLED);
  assert.deepEqual(caller.sent, [{ datagram: answer, to: CALLER }]);
  assert.deepEqual(relay.usage, { sessions: 1, datagrams: 2, bytes: 1250, dropped: 0 });
});

test('a token is echoed again if its echo was lost, and never forwarded', () => {
  const { offer, caller, called } = world().joined();
  called.receive(offer.token, CALLED);
  assert.deepEqual(called.sent.at(-1), { datagram: offer.token, to: CALLED });
  assert.equal(caller.sent.length, 0);
});

test("datagrams with another token, from another host than the caller's, or before a handshake are dropped", () => {
  const { relay, open } = world();
  const { offer, caller, called } = open();
  called.receive(new Uint8Array(RELAY_TOKEN_BYTES), CALLED);
  called.receive(new Uint8Array(100), CALLED);
  caller.receive(initial(), { ...CALLER, host: '203.0.113.8' });
  caller.receive(initial(1199), CALLER);
  caller.receive(new Uint8Array(1200), CALLER);
  assert.deepEqual([caller.sent, called.sent], [[], []]);
  called.receive(offer.token, CALLED);
  caller.receive(initial(), CALLER);
  assert.equal(called.sent.length, 2, 'the echo of the token, and the handshake of the caller');
  const [before, dropped] = [called.sent.length, relay.usage.dropped];
  caller.receive(initial(), { ...CALLER, port: 5001 });
  called.receive(offer.token, { ...CALLED, port: 6001 });
  assert.equal(called.sent.length, before);
  assert.equal(caller.sent.length, 0);
  assert.equal(relay.usage.dropped, dropped + 2);
});

test("a token from another host than the called node's causes no packets to that host", () => {
  const { relay, open } = world();
  const { offer, caller, called } = open();
  const victim = { host: '192.0.2.80', port: 7000 };
  called.receive(offer.token, victim);
  caller.receive(initial(), CALLER);
  assert.deepEqual([caller.sent, called.sent], [[], []]);
  assert.equal(relay.usage.dropped, 2);
  called.receive(offer.token, CALLED);
  caller.receive(initial(), CALLER);
  assert.deepEqual(
    called.sent.map(({ to }) => to),
    [CALLED, CALLED],
  );
});

test('a called node may change its IPv6 address within its network', () => {
  const { relay, sockets } = world();
  const offer = relay.open('2001:db8:1::1', '2001:db8:2::1');
  assert.ok(offer);
  const called = sockets[1];
  called?.receive(offer.token, { host: '2001:db8:2:1::1', port: 6000 });
  assert.deepEqual(called?.sent, []);
  called?.receive(offer.token, { host: '2001:db8:2::2', port: 6000 });
  assert.equal(called?.sent.length, 1);
});

test('datagrams above the maximum path MTU are dropped', () => {
  const { relay, joined } = world();
  const { caller, called } = joined();
  caller.receive(new Uint8Array(1501), CALLER);
  assert.equal(called.sent.length, 1);
  assert.equal(relay.usage.dropped, 1);
});

test('sessions are limited in total and per source, and a closed one frees its slot', () => {
  const { relay } = world({ sessions: 3, sessionsPerSource: 2 });
  const open = (host: string): RelayOffer | null => relay.open(host, CALLED.host);
  const first = open('203.0.113.1');
  assert.ok(first !== null && open('203.0.113.1') !== null);
  assert.equal(open('203.0.113.1'), null, 'the limit per source');
  assert.ok(open('203.0.113.2'));
  assert.equal(open('203.0.113.2'), null, 'the total limit, and no source has more sessions than this one');
  first.cancel();
  first.cancel();
  assert.ok(open('203.0.113.3'));
  assert.equal(open('203.0.113.4'), null);
  assert.equal(relay.usage.sessions, 3);
});

test('a new source replaces a session of a source with two', () => {
  const { relay } = world({ sessions: 3, sessionsPerSource: 2 });
  for (const host of ['203.0.113.1', '203.0.113.1', '203.0.113.2']) assert.ok(relay.open(host, CALLED.host));
  assert.ok(relay.open('198.51.100.3', CALLED.host));
  assert.equal(relay.usage.sessions, 3);
  assert.equal(relay.open('203.0.113.9', CALLED.host), null, 'each source has one session');
});

test('a network has the sessions and bytes of two sources', () => {
  const { relay, joined } = world({ sessions: 30, sessionsPerSource: 2, bytesPerDayPerSource: 60_000 });
  for (let i = 1; i <= 4; i++) relay.open(`203.0.113.${i}`, CALLED.host);
  assert.equal(relay.open('203.0.113.5', CALLED.host), null);
  assert.ok(relay.open('203.0.114.5', CALLED.host));
  let passed = 0;
  for (let i = 1; i <= 2; i++) passed += forward(joined(`192.0.2.${i}`), 100, `192.0.2.${i}`);
  assert.ok(passed <= 100, `${passed} datagrams of two sources`);
  assert.equal(relay.open('192.0.2.3', CALLED.host), null, 'the network used up its daily limit');
});

/** How many of these datagrams of 1,200 bytes are forwarded. */
function forward(
  { caller, called }: { readonly caller: FakeSocket; readonly called: FakeSocket },
  count: number,
  host = CALLER.host,
) {
  const before = called.sent.length;
  for (let i = 0; i < count; i++) caller.receive(initial(), { ...CALLER, host });
  return called.sent.length - before;
}

test('a source is limited to its rate, and other sources are not affected', () => {
  const { clock, joined } = world({ bytesPerSecondPerSource: 120_000, bytesPerSecond: 1_200_000 });
  const greedy = joined();
  const modest = joined('203.0.113.9');
  forward(greedy, 1000);
  assert.equal(forward(greedy, 1000), 0);
  let total = 0;
  for (let ms = 0; ms < 10 * SECOND_MS; ms += 20) {
    clock.advance(20);
    total += forward(greedy, 50);
  }
  assert.ok(total > 950 && total <= 1000, `${total} datagrams in 10 s`);
  assert.equal(forward(modest, 10, '203.0.113.9'), 10);
});

test('all sources together are limited to the rate of the helper', () => {
  const { joined } = world({ bytesPerSecond: 480_000 });
  const sessions = Array.from({ length: 5 }, (_, i) => ({
    host: `203.0.113.${i + 1}`,
    ...joined(`203.0.113.${i + 1}`),
  }));
  const total = sessions.reduce((sum, session) => sum + forward(session, 1000, session.host), 0);
  // The burst is a quarter of a second, three quarters of it for strangers. Five datagrams were handshakes.
  assert.equal(total, 75 - 5);
});

test('after the daily limit is used up, sessions close and no new one opens until the next day', () => {
  const { clock, relay, joined, sockets } = world({ bytesPerDayPerSource: 12_000 });
  const session = joined();
  assert.equal(forward(session, 100), 9);
  clock.advance(SECOND_MS);
  assert.equal(relay.usage.sessions, 0);
  assert.ok(sockets.every(({ isOpen }) => !isOpen));
  assert.equal(relay.open(CALLER.host, CALLED.host), null);
  const other = joined('203.0.113.9');
  assert.equal(forward(other, 3, '203.0.113.9'), 3);
  clock.advance(DAY_MS);
  assert.ok(relay.open(CALLER.host, CALLED.host));
});

test('an unused session closes, sooner if an end never connected', () => {
  const { clock, relay, open, joined } = world();
  open();
  clock.advance(RELAY_JOIN_MS - SECOND_MS);
  assert.equal(relay.usage.sessions, 1);
  clock.advance(3 * SECOND_MS);
  assert.equal(relay.usage.sessions, 0);
  const used = joined();
  for (let s = 0; s < 60; s++) {
    forward(used, 1);
    clock.advance(SECOND_MS);
  }
  assert.equal(relay.usage.sessions, 1);
  clock.advance(RELAY_IDLE_MS + 3 * SECOND_MS);
  assert.equal(relay.usage.sessions, 0);
});

test('a stop closes every port and clears all timers', async () => {
  const { clock, relay, joined, sockets } = world();
  joined();
  joined('203.0.113.9');
  await relay.stop();
  assert.ok(sockets.every(({ isOpen }) => !isOpen));
  assert.equal(clock.timers, 0);
});

test('a source gets a part of the configured limits, and a node with `help_others` off relays nothing', () => {
  const settings = {
    help_others: true,
    relay_sessions: MAX_RELAYED,
    relay_bytes_per_second: RELAY_BYTES_PER_S,
    relay_bytes_per_day: RELAY_BYTES_PER_DAY,
  };
  assert.deepEqual(relayLimits(settings), DEFAULT_RELAY_LIMITS);
  const few = relayLimits({ ...settings, relay_sessions: 3, relay_bytes_per_second: 1000 });
  assert.deepEqual([few.sessions, few.sessionsPerSource, few.bytesPerSecondPerSource], [3, 1, 500]);
  assert.equal(relayLimits({ ...settings, help_others: false }).sessions, 0);
});

test('without a free descriptor no session is opened, and nothing of the quota stays taken', () => {
  const sockets: FakeSocket[] = [];
  let bindable = 0;
  const createSocket = (): FakeSocket => {
    const socket = new FakeSocket();
    socket.isBindable = bindable-- > 0;
    sockets.push(socket);
    return socket;
  };
  const relay = new Relay(
    { sessions: 1, sessionsPerSource: 1 },
    { clock: new TestClock(), log: silentLog, createSocket },
  );
  for (const count of [0, 1]) {
    bindable = count;
    assert.equal(relay.open(CALLER.host, CALLED.host), null);
    assert.ok(sockets.every(({ isOpen }) => !isOpen));
  }
  bindable = 2;
  assert.ok(relay.open(CALLER.host, CALLED.host));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Address, formatAddress } from '../../../src/foundation/address.ts';
import { PortLender } from '../../../src/network/reachability/port-lender.ts';
import { EngineLentPort } from '../../../src/network/transport/quic/lent-port.ts';
import type { EndpointParts } from '../../../src/network/transport/quic/native-endpoint.ts';
import { TestClock } from '../../support/test-clock.ts';

const KEY = new Uint8Array(32).fill(1);
const CALLER = { host: '198.51.100.1', port: 5000 };
const OBSERVERS = [
  { host: '203.0.113.10', port: 4000 },
  { host: '203.0.113.11', port: 4000 },
];
const FIRST_PORT = 40_000;
const OUTER_HOST = '192.0.2.1';

class StubServer {
  inboundConnection(): Promise<never> {
    return new Promise(() => {});
  }
  port(): number {
    return 0;
  }
  stats() {
    return { acceptedHandshakes: 0 };
  }
  async abort(): Promise<void> {}
}

const PARTS: EndpointParts = {
  engine: {
    QuinnConfig: StubServer,
    Server: StubServer,
    Client: class {
      outboundConnection(): Promise<never> {
        return new Promise(() => {});
      }
      abort(): void {}
    },
  },
  config: {},
};

/** An engine whose servers fail with texts of the system, one for each attempt, and the ports of all attempts. */
function failingEngine(...texts: readonly string[]): { readonly parts: EndpointParts; readonly ports: number[] } {
  const ports: number[] = [];
  class Server extends StubServer {
    constructor(_config: object, _host: string, port: number) {
      super();
      const text = texts[ports.push(port) - 1];
      if (text !== undefined) throw new Error(text);
    }
  }
  return { ports, parts: { ...PARTS, engine: { ...PARTS.engine, Server } } };
}

/** A lender behind a router with configurable port mapping, and the log of its ports. */
function world(outer: (port: number, to: Address) => number, parts = PARTS) {
  const clock = new TestClock();
  const router = { outer, isSilent: false, changedAt: clock.now() };
  const done: string[] = [];
  let next = FIRST_PORT;
  const lender = new PortLender({
    clock,
    listen: (options) => new EngineLentPort(options, parts, clock),
    observers: () => OBSERVERS,
    isOwnHost: () => false,
    natUnchangedSince: () => router.changedAt,
    openPort: () => {
      const port = next++;
      return {
        port,
        seenBy: async (node) => {
          await turn();
          done.push(`asked of ${port}`);
          return router.isSilent ? null : { host: OUTER_HOST, port: router.outer(port, node) };
        },
        send: async (datagram, to) => void done.push(`${datagram.length} bytes to ${formatAddress(to)}`),
        waitForDatagram: () => new Promise(() => {}),
        handOver: () => null,
        close: async () => void done.push(`closed ${port}`),
      };
    },
  });
  const lend = async (needsFullHops = false): Promise<Address> => {
    const { address } = await lender.lend({ expectedKey: KEY, targets: [CALLER], needsFullHops, ownIpv6: null });
    return address;
  };
  const settled = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) await turn();
  };
  return { clock, lender, router, done, lend, settled };
}

test('if a router preserves ports, a port is lent without a request, and the next one is checked', async () => {
  const { lender, router, done, lend, settled } = world((port) => port);
  await lender.detectMapping();
  done.length = 0;
  assert.deepEqual(await lend(), { host: OUTER_HOST, port: FIRST_PORT + 1 });
  const asked = done.filter((what) => what === `asked of ${FIRST_PORT + 1}`);
  assert.deepEqual(asked, [], 'no request for the lent port');
  await settled();
  assert.equal(done.filter((what) => what === `asked of ${FIRST_PORT + 2}`).length, OBSERVERS.length);
  router.outer = (port) => port + 1;
  await lend();
  await settled();
  assert.deepEqual(await lend(), { host: OUTER_HOST, port: FIRST_PORT + 6 }, 'the change is noticed');
  await lender.stop();
});

test('a distant dialer gets a port that was checked', async () => {
  const { lender, router, lend } = world((port) => port);
  await lender.detectMapping();
  router.outer = (port) => port + 7;
  assert.deepEqual(await lend(true), { host: OUTER_HOST, port: FIRST_PORT + 8 });
  await lender.stop();
});

test('observations from before a reconnect to a helper are ignored, because the address may have changed', async () => {
  const { clock, lender, router, lend } = world((port) => port);
  await lender.detectMapping();
  clock.advance(1);
  router.changedAt = clock.now();
  router.outer = (port) => port + 7;
  assert.deepEqual(await lend(), { host: OUTER_HOST, port: FIRST_PORT + 8 });
  await lender.stop();
});

test('observations are dropped if the next port has no consistent address', async () => {
  for (const change of ['silent', 'symmetric'] as const) {
    const { lender, router, lend, settled } = world((port) => port);
    await lender.detectMapping();
    if (change === 'silent') router.isSilent = true;
    else router.outer = (port, to) => port + Number(to.host.slice(-1));
    await lend();
    await settled();
    await assert.rejects(lend(), { code: 'connect_failed' });
    await lender.stop();
  }
});

test('a port that was being opened during the stop is not lent', async () => {
  const { lender, done, lend } = world((port) => port);
  const waiting = assert.rejects(lend(), { code: 'cancelled' });
  await lender.stop();
  await waiting;
  assert.equal(done.at(-1), `closed ${FIRST_PORT}`);
});

test('the token is sent to a relay several times, and the port is lent before the answer', async () => {
  const { lender, done } = world((port) => port);
  const [relay = CALLER] = OBSERVERS;
  const port = await lender.lendToHelperRelay(relay, new Uint8Array(16), KEY);
  const sent = `16 bytes to ${formatAddress(relay)}`;
  assert.deepEqual(done, [sent, sent, sent, `closed ${FIRST_PORT}`]);
  assert.equal(port.port, FIRST_PORT);
  await lender.stop();
});

const TAKEN = 'Address already in use (os error 98)';

test('if another program takes the port before the engine binds it, another port is lent', async () => {
  const { parts, ports } = failingEngine(TAKEN);
  const { lender, lend } = world((port) => port, parts);
  assert.deepEqual(await lend(), { host: OUTER_HOST, port: FIRST_PORT + 1 });
  assert.deepEqual(ports, [FIRST_PORT, FIRST_PORT + 1]);
  await lender.stop();
  const local = world((port) => port, failingEngine(TAKEN).parts);
  assert.equal((await local.lender.lendLocally(KEY)).port, FIRST_PORT + 1);
  await local.lender.stop();
});

test('three ports are tried, and a port without a descriptor is not tried again', async () => {
  const taken = failingEngine(TAKEN, TAKEN, TAKEN, TAKEN);
  const first = world((port) => port, taken.parts);
  await assert.rejects(first.lend(), { code: 'connect_failed', message: /Another program has bound the port/ });
  assert.equal(taken.ports.length, 3);
  const scarce = failingEngine('Too many open files (os error 24)');
  const second = world((port) => port, scarce.parts);
  const message = 'This machine cannot open another UDP port (Too many open files (os error 24)).';
  await assert.rejects(second.lend(), { code: 'connect_failed', message });
  assert.equal(scarce.ports.length, 1);
});

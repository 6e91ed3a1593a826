import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { DIAL_TIMEOUT_MS } from '../../../../src/network/transport/connection-limits.ts';
import type { EngineConnection } from '../../../../src/network/transport/engine-connection.ts';
import { Dialer } from '../../../../src/network/transport/quic/dialer.ts';
import type { QuicEngine } from '../../../../src/network/transport/quic/engine.ts';
import { idle } from '../../../support/idle.ts';
import { TestClock } from '../../../support/test-clock.ts';

const KEY = KeyPair.generate().publicKey;
const ADDRESS = { host: '192.0.2.1', port: 4122 };

/** An engine with dials that end when the test decides. */
function setUp() {
  const clock = new TestClock();
  const dials: { host: string; family: number; outcome: PromiseWithResolvers<EngineConnection> }[] = [];
  const state = { clients: 0, ended: 0, aborted: 0, hasDescriptors: true };
  class Client {
    readonly #family: number;
    constructor(_config: object, family: 0 | 1) {
      if (!state.hasDescriptors) throw new Error('Too many open files (os error 24)');
      state.clients++;
      this.#family = family;
    }
    outboundConnection(host: string): Promise<EngineConnection> {
      const outcome = Promise.withResolvers<EngineConnection>();
      dials.push({ host, family: this.#family, outcome });
      return outcome.promise;
    }
    abort(): void {
      state.ended++;
    }
  }
  class Server {
    inboundConnection = (): Promise<EngineConnection> => Promise.reject(new Error('a dialer does not listen'));
    port = (): number => 0;
    stats = () => ({ acceptedHandshakes: 0 });
    abort = async (): Promise<void> => {};
  }
  const engine: QuicEngine = { Client, Server, QuinnConfig: Server };
  const connection: EngineConnection = {
    inboundStream: () => new Promise(() => {}),
    outboundStream: () => new Promise(() => {}),
    remoteMultiaddr: () => '/ip4/192.0.2.1/udp/4122/quic-v1/p2p/other',
    rtt: () => 0,
    stats: () => ({ udpTxDatagrams: 0, udpTxBytes: 0, udpRxBytes: 0, pathSentPackets: 0, pathLostPackets: 0 }),
    closed: () => new Promise(() => {}),
    abort: () => void state.aborted++,
  };
  const dialer = new Dialer({ engine, config: {} }, { clock });
  return { clock, dials, state, connection, dialer };
}

test('only an IP address and a port are dialed, from one socket per family', async () => {
  const { dials, state, dialer } = setUp();
  for (const address of [
    { host: 'example.org', port: 1 },
    { host: '', port: 1 },
    { host: '192.0.2.1', port: 0 },
    { host: '192.0.2.1', port: 65_536 },
    { host: '192.0.2.1', port: 1.5 },
  ])
    await assert.rejects(dialer.dial(address, KEY, {}), { code: 'connect_failed' });
  assert.equal(dials.length, 0);
  for (const host of ['192.0.2.1', '192.0.2.2', '2001:db8::1'])
    void dialer.dial({ host, port: 65_535 }, KEY, {}).catch(() => {});
  await idle();
  assert.deepEqual(
    dials.map(({ family }) => family),
    [0, 0, 1],
  );
  assert.equal(state.clients, 2);
  dialer.stop();
  assert.equal(state.ended, 2);
});

test('a silent address that was reachable is dialed from a new port, and the old port closes with its last connection', async () => {
  const { clock, dials, state, connection, dialer } = setUp();
  const closed = Promise.withResolvers<void>();
  const reach = async (): Promise<void> => {
    const dialing = dialer.dial(ADDRESS, KEY, {});
    dials.at(-1)?.outcome.resolve({ ...connection, closed: () => closed.promise });
    await dialing.catch(() => {});
  };
  const fail = async (host: string): Promise<void> => {
    const dialing = assert.rejects(dialer.dial({ ...ADDRESS, host }, KEY, {}), { code: 'timeout' });
    clock.advance(DIAL_TIMEOUT_MS);
    await dialing;
  };
  await fail('192.0.2.9');
  await fail('192.0.2.9');
  assert.equal(state.clients, 1, 'an address that was never reachable does not count');
  await reach();
  await fail(ADDRESS.host);
  void dialer.dial(ADDRESS, KEY, {}).catch(() => {});
  assert.deepEqual([state.clients, state.ended], [2, 0]);
  closed.resolve();
  for (const { outcome } of dials.slice(0, -1)) outcome.reject(new Error('timed out'));
  await idle();
  assert.deepEqual([state.clients, state.ended], [2, 1]);
  dialer.stop();
  assert.equal(state.ended, 2);
});

test('a dial times out, and a late connection is closed', async () => {
  const { clock, dials, state, connection, dialer } = setUp();
  const late = assert.rejects(dialer.dial(ADDRESS, KEY, {}), { code: 'timeout' });
  clock.advance(DIAL_TIMEOUT_MS);
  await late;
  const cancel = new AbortController();
  const cancelled = assert.rejects(dialer.dial(ADDRESS, KEY, { signal: cancel.signal }), { code: 'cancelled' });
  cancel.abort();
  await cancelled;
  await assert.rejects(dialer.dial(ADDRESS, KEY, { signal: cancel.signal }), { code: 'cancelled' });
  const stopped = assert.rejects(dialer.dial(ADDRESS, KEY, {}), { code: 'cancelled' });
  dialer.stop();
  await stopped;
  await assert.rejects(dialer.dial(ADDRESS, KEY, {}), { code: 'cancelled' });
  assert.equal(dials.length, 3);
  for (const { outcome } of dials) outcome.resolve(connection);
  await idle();
  assert.equal(state.aborted, 3);
  assert.equal(clock.timers, 0);
});

test('a dial fails with the error of the engine, or if another node answers', async () => {
  const { clock, dials, state, connection, dialer } = setUp();
  const refused = assert.rejects(dialer.dial(ADDRESS, KEY, {}), { code: 'connect_failed' });
  dials[0]?.outcome.reject(new Error('no answer'));
  await refused;
  const other = assert.rejects(dialer.dial(ADDRESS, KEY, {}), { code: 'connect_failed' });
  dials[1]?.outcome.resolve(connection);
  await other;
  assert.equal(state.aborted, 1);
  assert.equal(clock.timers, 0);
});

test('without a free descriptor a dial fails with a cause, and a later one works', async () => {
  const { state, dials, dialer } = setUp();
  state.hasDescriptors = false;
  await assert.rejects(dialer.dial(ADDRESS, KEY, {}), { code: 'connect_failed', message: /Too many open files/ });
  state.hasDescriptors = true;
  void dialer.dial(ADDRESS, KEY, {}).catch(() => {});
  await idle();
  assert.equal(dials.length, 1);
});

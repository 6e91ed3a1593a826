import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../../src/foundation/log.ts';
import type { EngineConnection, EngineConnectionStats } from '../../../../src/network/transport/engine-connection.ts';
import {
  Acceptor,
  FLOOD_HANDSHAKES,
  MAX_UNFINISHED_HANDSHAKES,
  QUIET_ADAPT_INTERVAL_MS,
  SPARE_ACCEPTS,
} from '../../../../src/network/transport/quic/acceptor.ts';
import type { EngineServer } from '../../../../src/network/transport/quic/engine.ts';
import { TestClock } from '../../../support/test-clock.ts';

const IDLE_TIMEOUT_MS = 15_000;

/** A server with handshakes that begin and end when the test decides. */
class FakeServer implements EngineServer {
  readonly waiting: { resolve(connection: EngineConnection): void; reject(error: Error): void }[] = [];
  acceptedHandshakes = 0;
  checks = 0;

  inboundConnection(): Promise<EngineConnection> {
    return new Promise((resolve, reject) => this.waiting.push({ resolve, reject }));
  }
  stats(): { acceptedHandshakes: number } {
    this.checks++;
    return { acceptedHandshakes: this.acceptedHandshakes };
  }
  /** Assigns handshakes to pending accept calls without finishing them. */
  begin(count: number): void {
    this.acceptedHandshakes += count;
  }
  port(): number {
    return 1;
  }
  async abort(): Promise<void> {}
}

class FakeConnection implements EngineConnection {
  aborted = false;
  abort(): void {
    this.aborted = true;
  }
  remoteMultiaddr(): string {
    return '';
  }
  rtt(): number {
    return 0;
  }
  stats(): EngineConnectionStats {
    return { udpTxDatagrams: 0, udpTxBytes: 0, udpRxBytes: 0, pathSentPackets: 0, pathLostPackets: 0 };
  }
  inboundStream(): Promise<never> {
    return new Promise(() => {});
  }
  outboundStream(): Promise<never> {
    return new Promise(() => {});
  }
  closed(): Promise<void> {
    return new Promise(() => {});
  }
}

interface World {
  readonly server: FakeServer;
  readonly clock: TestClock;
  readonly acceptor: Acceptor;
  readonly accepted: EngineConnection[];
  /** How often a flood was reported. */
  readonly floods: () => number;
}

function setUp(): World {
  const server = new FakeServer();
  const clock = new TestClock();
  const accepted: EngineConnection[] = [];
  let floods = 0;
  const options = {
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    onConnection: (c: EngineConnection) => void accepted.push(c),
    onFlood: () => void floods++,
  };
  const acceptor = new Acceptor(server, options, { clock, log: silentLog });
  acceptor.start();
  return { server, clock, acceptor, accepted, floods: () => floods };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('accept calls are pending from the start, and a finished one is replaced', async () => {
  const { server, clock, accepted } = setUp();
  assert.equal(server.waiting.length, SPARE_ACCEPTS);
  server.begin(2);
  server.waiting[0]?.resolve(new FakeConnection());
  server.waiting[1]?.reject(new Error('bad certificate'));
  await settled();
  assert.equal(accepted.length, 1);
  clock.advance(100);
  assert.ok(server.waiting.length - 2 >= SPARE_ACCEPTS);
});

test('without handshakes there are few checks, and a failed handshake is replaced soon', async () => {
  const { server, clock } = setUp();
  clock.advance(100);
  server.checks = 0;
  clock.advance(10 * QUIET_ADAPT_INTERVAL_MS);
  assert.equal(server.checks, 10);
  server.waiting.pop()?.reject(new Error('bad certificate'));
  await settled();
  clock.advance(100);
  assert.equal(server.waiting.length, SPARE_ACCEPTS);
});

test('a few unfinished handshakes never use up the accept calls, and are not a flood', () => {
  const { server, clock, floods } = setUp();
  let unfinished = 0;
  for (const more of [3, 6, 12, 24]) {
    server.begin(more);
    unfinished += more;
    clock.advance(100);
    assert.ok(server.waiting.length >= unfinished + SPARE_ACCEPTS);
  }
  assert.equal(floods(), 0);
});

test('a flood is reported, and accepted slowly and up to a limit', () => {
  const { server, clock, floods } = setUp();
  server.begin(FLOOD_HANDSHAKES);
  clock.advance(100);
  assert.equal(floods(), 1);
  server.begin(100_000);
  clock.advance(1_000);
  assert.equal(floods(), 11);
  const soon = server.waiting.length;
  assert.ok(soon < FLOOD_HANDSHAKES + SPARE_ACCEPTS + 10, `${soon} after a second`);
  for (let s = 0; s < 60; s++) {
    server.begin(100_000);
    clock.advance(1_000);
  }
  assert.equal(server.waiting.length, MAX_UNFINISHED_HANDSHAKES + SPARE_ACCEPTS);
});

test('many concurrent connections that finish their handshakes are not a flood', async () => {
  const { server, clock, floods } = setUp();
  for (let i = 0; i < 10; i++) {
    server.begin(10);
    for (const call of server.waiting.splice(0, 10)) call.resolve(new FakeConnection());
    await settled();
  }
  server.begin(FLOOD_HANDSHAKES);
  clock.advance(1_000);
  assert.equal(floods(), 0);
  server.begin(100);
  clock.advance(100);
  assert.equal(floods(), 1);
});

test('failed handshakes in a flood are replaced slowly, because each is expensive', async () => {
  const { server, clock } = setUp();
  server.begin(1000);
  clock.advance(100);
  const before = server.waiting.length;
  for (const call of server.waiting.splice(0, 40)) call.reject(new Error('timed out'));
  await settled();
  assert.equal(server.waiting.length, before - 40);
  clock.advance(100);
  assert.equal(server.waiting.length, before - 20);
  // A successful handshake is replaced immediately.
  server.waiting.shift()?.resolve(new FakeConnection());
  await settled();
  assert.equal(server.waiting.length, before - 20);
});

test('handshakes that timed out in the engine no longer count against new ones', async () => {
  const { server, clock, floods } = setUp();
  server.begin(500);
  clock.advance(10_000);
  assert.ok(server.waiting.length > SPARE_ACCEPTS + FLOOD_HANDSHAKES);
  clock.advance(IDLE_TIMEOUT_MS + 2_000);
  const reported = floods();
  for (const call of server.waiting.splice(0)) call.reject(new Error('timed out'));
  await settled();
  clock.advance(100);
  assert.equal(server.waiting.length, SPARE_ACCEPTS);
  assert.equal(floods(), reported);
});

test('successful connections do not increase the number of accept calls', async () => {
  const { server, clock } = setUp();
  for (let i = 0; i < 300; i++) {
    server.begin(1);
    server.waiting.shift()?.resolve(new FakeConnection());
    await settled();
  }
  clock.advance(1_000);
  assert.equal(server.waiting.length, SPARE_ACCEPTS);
});

test('after a stop no accept call is added, and a late connection is closed', async () => {
  const { server, clock, acceptor, accepted } = setUp();
  acceptor.stop();
  assert.equal(clock.timers, 0);
  const late = new FakeConnection();
  server.waiting.shift()?.resolve(late);
  await settled();
  assert.ok(late.aborted);
  assert.equal(accepted.length, 0);
  assert.equal(server.waiting.length, SPARE_ACCEPTS - 1);
});

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/foundation/clock.ts';
import { settle } from '../../support/link-world.ts';
import { MemoryNetwork } from '../../support/memory-network.ts';
import { TestClock } from '../../support/test-clock.ts';
import { endpointConformance } from './conformance.ts';
import { connect, failure, type Node, openPair, type Pair, readAll, startNode } from './world.ts';

const network = new MemoryNetwork({ clock: systemClock });

endpointConformance('in memory', {
  create: (key, options) => network.endpoint({ publicKey: key.publicKey, ...options }),
  silentAddress: async () => ({ host: '127.0.0.1', port: network.freePort() }),
  delay: (t, random) => {
    const { delayMs } = network;
    network.delayMs = () => random.below(4);
    t.after(() => {
      network.delayMs = delayMs;
    });
  },
});

const IDLE_TIMEOUT_MS = 30_000;

interface World {
  readonly network: MemoryNetwork;
  readonly clock: TestClock;
  readonly a: Node;
  readonly b: Node;
}

async function world(t: TestContext, idleTimeoutMs?: number): Promise<World> {
  const clock = new TestClock();
  const line = new MemoryNetwork({ clock, ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }) });
  const harness = {
    create: (key: { readonly publicKey: Uint8Array }) => line.endpoint({ publicKey: key.publicKey }),
    silentAddress: async () => ({ host: '127.0.0.1', port: line.freePort() }),
  };
  return { network: line, clock, a: await startNode(t, harness), b: await startNode(t, harness) };
}

/** The text that a stream of the pair has received so far. */
async function hear(pair: Pair): Promise<{ readonly write: (text: string) => void; readonly heard: () => string }> {
  const { ours, theirs } = await openPair(pair);
  let text = '';
  theirs.on('data', (chunk: Buffer) => {
    text += String(chunk);
  });
  theirs.resume();
  return { write: (piece) => void ours.write(piece), heard: () => text };
}

test('a dial takes one round trip, and bytes take the delay of their direction', async (t) => {
  const { network, clock, a, b } = await world(t);
  const there = await hear(await connect(a, b));
  network.delayMs = (from) => (from === a.endpoint.address ? 40 : 60);
  const dial = a.endpoint.dial(b.endpoint.address, b.key.publicKey);
  clock.advance(99);
  assert.equal(await Promise.race([dial, settle().then(() => 'not yet')]), 'not yet');
  clock.advance(1);
  assert.equal((await dial).rtt(), 100);
  there.write('late');
  clock.advance(39);
  await settle();
  assert.equal(there.heard(), '');
  clock.advance(1);
  await settle();
  assert.equal(there.heard(), 'late');
});

test('bytes stay in order if the delay falls', async (t) => {
  const { network, clock, a, b } = await world(t);
  const there = await hear(await connect(a, b));
  network.delayMs = () => 100;
  there.write('first ');
  network.delayMs = () => 1;
  there.write('second');
  clock.advance(99);
  await settle();
  assert.equal(there.heard(), '');
  clock.advance(1);
  await settle();
  assert.equal(there.heard(), 'first second');
});

test('over a cut line nothing arrives and dials time out; afterwards everything arrives in order', async (t) => {
  const { network, clock, a, b } = await world(t);
  const there = await hear(await connect(a, b));
  network.cut(a.endpoint.address, b.endpoint.address);
  for (const text of ['one ', 'two ', 'three']) there.write(text);
  await settle();
  assert.equal(there.heard(), '');
  const dial = assert.rejects(a.endpoint.dial(b.endpoint.address, b.key.publicKey, { timeoutMs: 50 }), {
    code: 'timeout',
  });
  await settle();
  clock.advance(50);
  await dial;
  network.heal(a.endpoint.address, b.endpoint.address);
  await settle();
  assert.equal(there.heard(), 'one two three');
});

test('a line that is cut in one direction still carries bytes in the other one', async (t) => {
  const { network, a, b } = await world(t);
  const pair = await connect(a, b);
  const { ours, theirs } = await openPair(pair);
  network.cut(a.endpoint.address, b.endpoint.address);
  theirs.end('still here');
  assert.equal(String(await readAll(ours)), 'still here');
});

test('a cut line loses the connection on both sides after the idle timeout, but not if it heals before', async (t) => {
  const { network, clock, a, b } = await world(t, IDLE_TIMEOUT_MS);
  const pair = await connect(a, b);
  const { ours, theirs } = await openPair(pair);
  const [from, to] = [a.endpoint.address, b.endpoint.address];
  network.cut(from, to);
  clock.advance(IDLE_TIMEOUT_MS - 1);
  network.heal(from, to);
  clock.advance(IDLE_TIMEOUT_MS);
  assert.equal(ours.destroyed || theirs.destroyed, false);
  const seen = [failure(ours), failure(theirs)];
  network.cut(from, to);
  clock.advance(IDLE_TIMEOUT_MS);
  assert.deepEqual(await Promise.all(seen), ['connection_lost', 'connection_lost']);
});

test('a crash leaves a half-open connection until the idle timeout', async (t) => {
  const { network, clock, a } = await world(t, IDLE_TIMEOUT_MS);
  const endpoint = network.endpoint({ publicKey: a.key.publicKey });
  endpoint.onConnection(() => {});
  await endpoint.start();
  const connection = await a.endpoint.dial(endpoint.address, a.key.publicKey);
  const stream = await connection.openStream();
  endpoint.crash();
  stream.write('no reader');
  await settle();
  assert.equal(stream.destroyed, false);
  const seen = failure(stream);
  clock.advance(IDLE_TIMEOUT_MS);
  assert.equal(await seen, 'connection_lost');
  await connection.closed;
});

test('an endpoint can refuse dials immediately', async (t) => {
  const { network, a, b } = await world(t);
  network.refuse(b.endpoint.address);
  await assert.rejects(a.endpoint.dial(b.endpoint.address, b.key.publicKey), { code: 'connect_failed' });
});

test('a given scheduler runs every event, in the same order each time', async () => {
  const run = async (): Promise<readonly string[]> => {
    const clock = new TestClock();
    const tasks: (() => void)[] = [];
    const line = new MemoryNetwork({ clock, defer: (task) => tasks.push(task) });
    const log: string[] = [];
    const nodes = [1, 2].map((n) => line.endpoint({ publicKey: new Uint8Array(32).fill(n) }));
    const [from, to] = [nodes[0] ?? assert.fail(), nodes[1] ?? assert.fail()];
    to.onConnection((connection) => {
      log.push('accepted');
      connection.onStream((stream) => stream.on('data', (chunk: Buffer) => log.push(String(chunk))));
    });
    for (const node of nodes) await node.start();
    const opened = from.dial(to.address, to.publicKey).then(async (connection) => {
      log.push('dialed');
      for (const text of ['one', 'two']) (await connection.openStream()).write(text);
    });
    for (let i = 0; i < 20; i++) {
      tasks.shift()?.();
      await new Promise((resolve) => process.nextTick(resolve));
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    }
    await opened;
    return log;
  };
  const first = await run();
  assert.deepEqual([...first].sort(), ['accepted', 'dialed', 'one', 'two']);
  assert.deepEqual(await run(), first);
});

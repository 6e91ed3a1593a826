/** Nodes, connections and streams for the tests of this folder. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { TestContext } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { type Clock, systemClock } from '../../../src/foundation/clock.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import type { ConnectionLimits } from '../../../src/network/transport/connection-limits.ts';
import { DIAL_TIMEOUT_MS, OPEN_STREAM_TIMEOUT_MS } from '../../../src/network/transport/connection-limits.ts';
import type { Connection, Endpoint, Stream } from '../../../src/network/transport/types.ts';
import type { Random } from '../../support/random.ts';

/** Timeouts that can expire on an overloaded machine. */
const LIMITS_MS: ReadonlySet<number> = new Set([DIAL_TIMEOUT_MS, OPEN_STREAM_TIMEOUT_MS]);

/** The system clock without timeouts of dials and of opening streams. */
export const clockWithoutDialTimeouts: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  after: (ms, run) => (LIMITS_MS.has(ms) ? { cancel: () => {} } : systemClock.after(ms, run)),
};

export interface EndpointOptions {
  readonly limits?: Partial<ConnectionLimits>;
  readonly streamsPerConnection?: number;
  readonly clock?: Clock;
}

export interface Harness {
  /** A new endpoint on a free loopback port, not started. */
  create(key: KeyPair, options: EndpointOptions): Endpoint;
  /** An address that does not answer. */
  silentAddress(t: TestContext): Promise<Address>;
  /** Delays packets at random until the test ends. */
  delay?(t: TestContext, random: Random): void;
}

export const MIB = 1024 * 1024;

export interface Node {
  readonly key: KeyPair;
  readonly endpoint: Endpoint;
  /** The next connection that the endpoint accepts. */
  readonly accepted: () => Promise<Connection>;
  /** Stops it before the test ends. */
  readonly stop: () => Promise<void>;
}

/** Queues the items of a handler, so that a test can wait for each. */
export function inbox<T>(): { push: (item: T) => void; next: () => Promise<T> } {
  const items: T[] = [];
  const waiting: ((item: T) => void)[] = [];
  return {
    push(item) {
      const receiver = waiting.shift();
      if (receiver === undefined) items.push(item);
      else receiver(item);
    },
    next() {
      const item = items.shift();
      return item === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(item);
    },
  };
}

export async function startNode(t: TestContext, harness: Harness, options: EndpointOptions = {}): Promise<Node> {
  const key = KeyPair.generate();
  const endpoint = harness.create(key, options);
  const connections = inbox<Connection>();
  endpoint.onConnection((connection) => connections.push(connection));
  await endpoint.start();
  let running = true;
  const stop = async (): Promise<void> => {
    if (running) await endpoint.stop();
    running = false;
  };
  t.after(stop);
  return { key, endpoint, accepted: connections.next, stop };
}

/** Two nodes between which streams can be opened. */
export interface StreamPair<S extends Duplex = Stream> {
  readonly client: Pick<Connection, 'stats' | 'close' | 'closed'> & { openStream(): Promise<S> };
  readonly server: Pick<Connection, 'closed'>;
  /** The next stream that the client has opened. */
  readonly incoming: () => Promise<S>;
}

export interface Pair extends StreamPair {
  readonly client: Connection;
  readonly server: Connection;
}

export async function connect(from: Node, to: Node): Promise<Pair> {
  const [client, server] = await Promise.all([
    from.endpoint.dial(to.endpoint.address, to.key.publicKey),
    to.accepted(),
  ]);
  const streams = inbox<Stream>();
  server.onStream((stream) => streams.push(stream));
  return { client, server, incoming: streams.next };
}

/** Two connected nodes. */
export async function connectedPair(t: TestContext, harness: Harness, options: EndpointOptions = {}): Promise<Pair> {
  const [a, b] = await Promise.all([startNode(t, harness, options), startNode(t, harness, options)]);
  return await connect(a, b);
}

/** Both ends of a stream. The first byte, which announces the stream to the other side, is already read. */
export async function openPair<S extends Duplex>({ client, incoming }: StreamPair<S>): Promise<{ ours: S; theirs: S }> {
  const ours = await client.openStream();
  ours.write('!');
  const theirs = await incoming();
  const [first] = await once(theirs, 'data');
  theirs.pause();
  assert.equal(String(first), '!');
  return { ours, theirs };
}

export async function readAll(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk)).resume();
  await finished(stream, { writable: false });
  return Buffer.concat(chunks);
}

/** The code of the error that ends a stream. Fails if the stream ends without an error. */
export async function failure(stream: Duplex): Promise<unknown> {
  stream.resume();
  const error: unknown = await finished(stream).then(
    () => null,
    (cause: unknown) => cause,
  );
  assert.ok(error instanceof Error, 'the stream ended cleanly');
  return Reflect.get(error, 'code');
}

/** The behavior that every adapter of the transport must have: its streams, and its endpoints. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, type TestContext, test } from 'node:test';
import type { Clock } from '../../../src/foundation/clock.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { OPEN_STREAM_TIMEOUT_MS } from '../../../src/network/transport/connection-limits.ts';
import type { Stream } from '../../../src/network/transport/types.ts';
import { LATE_SEEDS, lateClock, paceAtRandom, readLate, writeLate } from '../../support/late.ts';
import { LeapClock } from '../../support/leap-clock.ts';
import { Random } from '../../support/random.ts';
import { standsStill } from '../../support/stands-still.ts';
import {
  clockWithoutDialTimeouts,
  connect,
  connectedPair,
  failure,
  type Harness,
  MIB,
  openPair,
  readAll,
  type StreamPair,
  startNode,
} from './world.ts';

export function endpointConformance(name: string, harness: Harness): void {
  streamConformance(name, (t, late) => {
    if (late !== undefined) harness.delay?.(t, late.random);
    return connectedPair(t, harness, late === undefined ? {} : { clock: late.clock });
  });

  describe(`${name}: endpoint`, () => {
    test('both sides see the proven key of the peer', async (t) => {
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      const { client, server } = await connect(a, b);
      assert.deepEqual(Buffer.from(client.remoteKey), Buffer.from(b.key.publicKey));
      assert.deepEqual(Buffer.from(server.remoteKey), Buffer.from(a.key.publicKey));
      assert.deepEqual(client.path.remote, b.endpoint.address);
      assert.equal(server.path.remote.host, '127.0.0.1');
      assert.equal(client.outbound, true);
      assert.equal(server.outbound, false);
      assert.ok(client.rtt() >= 0);
    });

    test('both sides can open streams', async (t) => {
      const { client, server, incoming } = await connectedPair(t, harness);
      const fromServer = new Promise<Stream>((resolve) => client.onStream(resolve));
      const a = await client.openStream();
      a.end('from the client');
      const b = await server.openStream();
      b.end('from the server');
      assert.equal(String(await readAll(await incoming())), 'from the client');
      assert.equal(String(await readAll(await fromServer)), 'from the server');
      assert.equal(a.connection, client);
      assert.equal(b.connection, server);
    });

    test('streams that arrive before the handler is set are kept', async (t) => {
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      const [client, server] = await Promise.all([a.endpoint.dial(b.endpoint.address, b.key.publicKey), b.accepted()]);
      for (const text of ['one', 'two', 'three']) (await client.openStream()).end(text);
      const seen = new Promise<string[]>((resolve) => {
        const texts: string[] = [];
        server.onStream((stream) => {
          void readAll(stream).then((text) => {
            texts.push(String(text));
            if (texts.length === 3) resolve(texts.sort());
          });
        });
      });
      assert.deepEqual(await seen, ['one', 'three', 'two']);
    });

    test('at the stream limit, openStream waits and then times out', async (t) => {
      const clock = new LeapClock();
      const pair = await connectedPair(t, harness, { streamsPerConnection: 2, clock });
      const first = await openPair(pair);
      await openPair(pair);
      const late = assert.rejects(pair.client.openStream(), { code: 'timeout' });
      clock.pass(OPEN_STREAM_TIMEOUT_MS);
      await late;
      const third = pair.client.openStream();
      first.ours.end();
      first.theirs.end();
      await Promise.all([readAll(first.ours), readAll(first.theirs)]);
      (await third).end('there is room again');
      assert.equal(String(await readAll(await pair.incoming())), 'there is room again');
    });

    test('a closed connection ends on both sides and opens no streams', async (t) => {
      const pair = await connectedPair(t, harness);
      const { ours } = await openPair(pair);
      const seen = failure(ours);
      pair.client.close();
      await Promise.all([pair.client.closed, pair.server.closed]);
      assert.equal(await seen, 'connection_lost');
      await assert.rejects(pair.client.openStream(), { code: 'connect_failed' });
      await assert.rejects(pair.server.openStream(), { code: 'connect_failed' });
      pair.client.close();
    });

    test('a node that proves another key is refused', async (t) => {
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      const stranger = KeyPair.generate().publicKey;
      await assert.rejects(a.endpoint.dial(b.endpoint.address, stranger), { code: 'connect_failed' });
      await (await b.accepted()).closed;
    });

    test('a dial without an answer times out', async (t) => {
      const a = await startNode(t, harness);
      const address = await harness.silentAddress(t);
      const dial = a.endpoint.dial(address, a.key.publicKey, { timeoutMs: 100 });
      await assert.rejects(dial, { name: 'SvcError', code: 'timeout' });
    });

    test('a dial can be canceled before and during it', async (t) => {
      const a = await startNode(t, harness);
      const address = await harness.silentAddress(t);
      const cancel = new AbortController();
      const dial = a.endpoint.dial(address, a.key.publicKey, { signal: cancel.signal });
      cancel.abort();
      await assert.rejects(dial, { code: 'cancelled' });
      await assert.rejects(a.endpoint.dial(address, a.key.publicKey, { signal: cancel.signal }), { code: 'cancelled' });
    });

    test('stop ends dials and connections', async (t) => {
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      const { client, server } = await connect(a, b);
      const address = await harness.silentAddress(t);
      const dial = assert.rejects(a.endpoint.dial(address, a.key.publicKey), { code: 'cancelled' });
      await a.stop();
      await Promise.all([dial, client.closed, server.closed]);
      await assert.rejects(a.endpoint.dial(b.endpoint.address, b.key.publicKey), { code: 'connect_failed' });
    });

    test('connections above the total limit are refused until one ends', async (t) => {
      const server = await startNode(t, harness, { limits: { connections: 2 } });
      const [a, b, c] = await Promise.all([startNode(t, harness), startNode(t, harness), startNode(t, harness)]);
      const first = await connect(a, server);
      await connect(b, server);
      const refused = await c.endpoint.dial(server.endpoint.address, server.key.publicKey);
      await refused.closed;
      first.client.close();
      await first.server.closed;
      await connect(c, server);
    });

    test('connections above the limit of a source are refused', async (t) => {
      const server = await startNode(t, harness, { limits: { connectionsPerSource: 1, countLoopback: true } });
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      await connect(a, server);
      const refused = await b.endpoint.dial(server.endpoint.address, server.key.publicKey);
      await refused.closed;
    });

    test('a connection above the limit of a key evicts its oldest one', async (t) => {
      const server = await startNode(t, harness, { limits: { connectionsPerKey: 2 } });
      const a = await startNode(t, harness);
      const oldest = await connect(a, server);
      const pairs = [await connect(a, server), await connect(a, server)];
      await oldest.client.closed;
      for (const pair of pairs) {
        const { ours } = await openPair(pair);
        ours.destroy();
      }
    });
  });
}

function pattern(bytes: number): Buffer {
  const data = Buffer.alloc(bytes);
  for (let i = 0; i < bytes; i += 4) data.writeUInt32LE(i, Math.min(i, bytes - 4));
  return data;
}

/** How the streams of an adapter differ. */
export interface StreamTraits {
  /** Maximum number of concurrent streams of a pair of nodes. */
  readonly streams?: number;
  /** Maximum number of bytes that a writer is ahead of a paused reader. */
  readonly maxAheadBytes?: number;
  /** Effect of a paused reader: the writer waits, or the stream fails. */
  readonly unread?: 'waits' | 'lost';
}

/** Callbacks and round trips that are late at random. */
export interface Late {
  readonly clock: Clock;
  readonly random: Random;
}

/** @param connect two nodes between which streams can be opened */
export function streamConformance<S extends Duplex>(
  name: string,
  connect: (t: TestContext, late?: Late) => Promise<StreamPair<S>>,
  { streams = 200, maxAheadBytes = 16 * MIB, unread = 'waits' }: StreamTraits = {},
): void {
  describe(`${name}: streams`, () => {
    test('an echo is complete, and both halves end cleanly', async (t) => {
      const pair = await connect(t);
      const ours = await pair.client.openStream();
      const data = pattern(3 * MIB + 7);
      ours.end(data);
      const theirs = await pair.incoming();
      const [echo] = await Promise.all([readAll(ours), pipeline(theirs, theirs)]);
      assert.ok(echo.equals(data));
      assert.ok(pair.client.stats().bytesSent >= data.length);
      assert.ok(pair.client.stats().bytesReceived >= data.length);
    });

    for (const seed of LATE_SEEDS)
      test(`nothing waits for itself if callbacks and round trips are late at random (seed ${seed})`, async (t) => {
        const random = new Random(seed);
        const late = { clock: lateClock(clockWithoutDialTimeouts, random), random };
        const { ours, theirs } = await openPair(await connect(t, late));
        for (const stream of [ours, theirs]) paceAtRandom(stream, late.clock, random);
        const data = pattern(8 * MIB + 4 * random.below(MIB));
        const read = (stream: S): Promise<Buffer> => readLate(stream, random, unread === 'waits');
        const [there, back] = await Promise.all([
          read(theirs),
          read(ours),
          writeLate(ours, data, random),
          writeLate(theirs, data, random),
        ]);
        assert.ok(there.equals(data) && back.equals(data));
      });

    test('the caller may end its half and still read', async (t) => {
      const { ours, theirs } = await openPair(await connect(t));
      ours.end('question');
      assert.equal(String(await readAll(theirs)), 'question');
      assert.equal(theirs.writable, true);
      theirs.end('answer');
      assert.equal(String(await readAll(ours)), 'answer');
    });

    test('the other side may end its half and still read', async (t) => {
      const { ours, theirs } = await openPair(await connect(t));
      theirs.end('that is all');
      assert.equal(String(await readAll(ours)), 'that is all');
      assert.equal(ours.writable, true);
      ours.end('understood');
      assert.equal(String(await readAll(theirs)), 'understood');
    });

    test('both sides may end in the same turn, and both ends close', async (t) => {
      const { ours, theirs } = await openPair(await connect(t));
      const closed = [ours, theirs].map((stream) => once(stream, 'close'));
      theirs.on('data', () => theirs.end()).resume();
      ours.resume().end('the last word');
      await Promise.all(closed);
    });

    test('destroying a stream is a reset on the other side, never a clean end', async (t) => {
      const pair = await connect(t);
      for (const destroyer of ['ours', 'theirs'] as const) {
        const streams = await openPair(pair);
        const other = streams[destroyer === 'ours' ? 'theirs' : 'ours'];
        streams[destroyer].write('a beginning');
        await once(other.resume(), 'data');
        const seen = failure(other);
        streams[destroyer].destroy();
        assert.equal(await seen, 'stream_reset');
      }
    });

    test('a writer gets an error after its reader is destroyed', async (t) => {
      const { ours, theirs } = await openPair(await connect(t));
      ours.end();
      theirs.resume();
      await once(theirs, 'end');
      const seen = failure(theirs);
      ours.destroy();
      const source = Readable.from(
        (function* endless() {
          for (;;) yield Buffer.alloc(64 * 1024);
        })(),
      );
      await assert.rejects(pipeline(source, theirs));
      assert.equal(await seen, 'stream_reset');
    });

    test('bytes sent before a clean end arrive even if the stream is destroyed afterwards', async (t) => {
      const { ours, theirs } = await openPair(await connect(t));
      ours.end(pattern(MIB));
      await once(ours, 'finish');
      ours.destroy();
      assert.ok((await readAll(theirs)).equals(pattern(MIB)));
    });

    if (unread === 'lost')
      test('a stream with a paused reader fails, and no other stream does', async (t) => {
        const pair = await connect(t);
        const [slow, quick] = [await openPair(pair), await openPair(pair)];
        const seen = failure(slow.ours);
        slow.ours.write(Buffer.alloc(maxAheadBytes + 4 * MIB));
        assert.equal(await seen, 'connection_lost');
        quick.ours.end(pattern(MIB));
        assert.ok((await readAll(quick.theirs)).equals(pattern(MIB)));
      });

    const ifWaiting = { skip: unread !== 'waits' && 'only for streams that wait' };
    test('a writer waits for a paused reader, and no byte is lost', ifWaiting, async (t) => {
      const pair = await connect(t);
      const { ours, theirs } = await openPair(pair);
      const total = 24 * MIB;
      let produced = 0;
      const source = Readable.from(
        (function* chunks() {
          for (; produced < total; produced += MIB) yield Buffer.alloc(MIB, (produced / MIB) % 251);
        })(),
        { highWaterMark: 1 },
      );
      const sent = pipeline(source, ours);
      await standsStill(
        () => produced,
        async () => {
          const other = await openPair(pair);
          other.ours.end(pattern(MIB));
          assert.equal((await readAll(other.theirs)).length, MIB);
        },
      );
      assert.ok(
        produced > 0 && produced <= maxAheadBytes,
        `the writer ran ${produced / MIB} MiB ahead of a paused reader`,
      );
      const [data] = await Promise.all([readAll(theirs), sent]);
      assert.equal(data.length, total);
      for (let at = 0; at < total; at += MIB) assert.equal(data[at], (at / MIB) % 251);
    });

    test('eight paused streams do not block another one', ifWaiting, async (t) => {
      const pair = await connect(t);
      for (let i = 0; i < 8; i++) {
        const slow = await openPair(pair);
        slow.ours.write(Buffer.alloc(8 * MIB));
      }
      const quick = await openPair(pair);
      quick.ours.end(pattern(32 * MIB));
      assert.equal((await readAll(quick.theirs)).length, 32 * MIB);
    });

    test('many small writes arrive complete and in order', async (t) => {
      const { ours, theirs } = await openPair(await connect(t));
      let expected = '';
      for (let i = 0; i < 5_000; i++) {
        const line = `line ${i}\n`;
        expected += line;
        ours.write(line);
      }
      ours.end();
      assert.equal(String(await readAll(theirs)), expected);
    });

    test('many streams at the same time', async (t) => {
      const pair = await connect(t);
      const opened = await Promise.all(Array.from({ length: streams }, () => pair.client.openStream()));
      const answers = opened.map(async (stream, i) => {
        stream.end(`request ${i}`);
        return String(await readAll(stream));
      });
      for (let i = 0; i < opened.length; i++) {
        const theirs = await pair.incoming();
        void readAll(theirs).then((request) => theirs.end(`answer to ${String(request)}`));
      }
      assert.deepEqual(
        await Promise.all(answers),
        opened.map((_, i) => `answer to request ${i}`),
      );
    });

    test('closing the connection ends its streams on both sides with `connection_lost`', async (t) => {
      const pair = await connect(t);
      const { ours, theirs } = await openPair(pair);
      const idle = await openPair(pair);
      const seen = [ours, theirs].map(failure);
      const idleClosed = [idle.ours, idle.theirs].map(
        (stream) => new Promise((resolve) => stream.once('close', resolve)),
      );
      pair.client.close();
      await Promise.all([pair.client.closed, pair.server.closed]);
      assert.deepEqual(await Promise.all(seen), ['connection_lost', 'connection_lost']);
      await Promise.all(idleClosed);
    });
  });
}

/** What every QUIC endpoint must do, whatever carries its bytes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, test } from 'node:test';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { OPEN_STREAM_TIMEOUT_MS } from '../../../src/network/quic/native-connection.ts';
import type { QuicStream } from '../../../src/network/quic/types.ts';
import { LeapClock } from '../../support/leap-clock.ts';
import { standsStill } from '../../support/stands-still.ts';
import { connect, connectedPair, failure, type Harness, MIB, openPair, readAll, startNode } from './world.ts';

function pattern(bytes: number): Buffer {
  const data = Buffer.alloc(bytes);
  for (let i = 0; i < bytes; i += 4) data.writeUInt32LE(i, Math.min(i, bytes - 4));
  return data;
}

export function quicCompliance(name: string, harness: Harness): void {
  describe(`${name}: QUIC endpoint`, () => {
    test('both sides see the proven key of the other', async (t) => {
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

    test('an echo comes back whole, and both halves end cleanly', async (t) => {
      const pair = await connectedPair(t, harness);
      const ours = await pair.client.openStream();
      const data = pattern(3 * MIB + 7);
      ours.end(data);
      const theirs = await pair.incoming();
      const [echo] = await Promise.all([readAll(ours), pipeline(theirs, theirs)]);
      assert.ok(echo.equals(data));
      assert.ok(pair.client.stats().bytesSent >= data.length);
      assert.ok(pair.client.stats().bytesReceived >= data.length);
    });

    test('streams go both ways on one connection', async (t) => {
      const { client, server, incoming } = await connectedPair(t, harness);
      const fromServer = new Promise<QuicStream>((resolve) => client.onStream(resolve));
      const a = await client.openStream();
      a.end('from the client');
      const b = await server.openStream();
      b.end('from the server');
      assert.equal(String(await readAll(await incoming())), 'from the client');
      assert.equal(String(await readAll(await fromServer)), 'from the server');
      assert.equal(a.connection, client);
      assert.equal(b.connection, server);
    });

    test('the caller may end its half and still read', async (t) => {
      const { ours, theirs } = await openPair(await connectedPair(t, harness));
      ours.end('question');
      assert.equal(String(await readAll(theirs)), 'question');
      assert.equal(theirs.writable, true);
      theirs.end('answer');
      assert.equal(String(await readAll(ours)), 'answer');
    });

    test('the called side may end its half and still read', async (t) => {
      const { ours, theirs } = await openPair(await connectedPair(t, harness));
      theirs.end('that is all');
      assert.equal(String(await readAll(ours)), 'that is all');
      assert.equal(ours.writable, true);
      ours.end('understood');
      assert.equal(String(await readAll(theirs)), 'understood');
    });

    test('a destroyed stream is an error on the other side, never a clean end', async (t) => {
      const pair = await connectedPair(t, harness);
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

    test('a writer learns that its reader is gone', async (t) => {
      const { ours, theirs } = await openPair(await connectedPair(t, harness));
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

    test('bytes sent before a clean end survive the destruction that follows', async (t) => {
      const { ours, theirs } = await openPair(await connectedPair(t, harness));
      ours.end(pattern(MIB));
      await once(ours, 'finish');
      ours.destroy();
      assert.ok((await readAll(theirs)).equals(pattern(MIB)));
    });

    test('a paused reader holds its writer back, and loses nothing', async (t) => {
      const pair = await connectedPair(t, harness);
      const { ours, theirs } = await openPair(pair);
      const total = 24 * MIB;
      let taken = 0;
      const source = Readable.from(
        (function* chunks() {
          for (; taken < total; taken += MIB) yield Buffer.alloc(MIB, (taken / MIB) % 251);
        })(),
        { highWaterMark: 1 },
      );
      const sent = pipeline(source, ours);
      await standsStill(
        () => taken,
        async () => {
          const other = await openPair(pair);
          other.ours.end(pattern(MIB));
          assert.equal((await readAll(other.theirs)).length, MIB);
        },
      );
      assert.ok(taken > 0 && taken <= 16 * MIB, `the writer ran ${taken / MIB} MiB ahead of a paused reader`);
      const [data] = await Promise.all([readAll(theirs), sent]);
      assert.equal(data.length, total);
      for (let at = 0; at < total; at += MIB) assert.equal(data[at], (at / MIB) % 251);
    });

    test('eight paused streams do not hold up another one', async (t) => {
      const pair = await connectedPair(t, harness);
      for (let i = 0; i < 8; i++) {
        const slow = await openPair(pair);
        slow.ours.write(Buffer.alloc(8 * MIB));
      }
      const quick = await openPair(pair);
      quick.ours.end(pattern(32 * MIB));
      assert.equal((await readAll(quick.theirs)).length, 32 * MIB);
    });

    test('many small writes arrive whole and in order', async (t) => {
      const { ours, theirs } = await openPair(await connectedPair(t, harness));
      let expected = '';
      for (let i = 0; i < 5_000; i++) {
        const line = `line ${i}\n`;
        expected += line;
        ours.write(line);
      }
      ours.end();
      assert.equal(String(await readAll(theirs)), expected);
    });

    test('many streams run side by side', async (t) => {
      const pair = await connectedPair(t, harness);
      const opened = await Promise.all(Array.from({ length: 200 }, () => pair.client.openStream()));
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

    test('streams that arrive before their handler is set are kept', async (t) => {
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

    test('over the stream limit, openStream waits for a free place, then gives up', async (t) => {
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

    test('closing a connection ends it and its streams on both sides', async (t) => {
      const pair = await connectedPair(t, harness);
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
      await assert.rejects(pair.client.openStream(), { code: 'connect_failed' });
      await assert.rejects(pair.server.openStream(), { code: 'connect_failed' });
      pair.client.close();
    });

    test('a node with another key than expected is refused', async (t) => {
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      const stranger = KeyPair.generate().publicKey;
      await assert.rejects(a.endpoint.dial(b.endpoint.address, stranger), { code: 'connect_failed' });
      await (await b.accepted()).closed;
    });

    test('a dial that is not answered times out', async (t) => {
      const a = await startNode(t, harness);
      const address = await harness.silentAddress(t);
      const dial = a.endpoint.dial(address, a.key.publicKey, { timeoutMs: 100 });
      await assert.rejects(dial, { name: 'SvcError', code: 'timeout' });
    });

    test('a dial can be cancelled, before and while it runs', async (t) => {
      const a = await startNode(t, harness);
      const address = await harness.silentAddress(t);
      const cancel = new AbortController();
      const dial = a.endpoint.dial(address, a.key.publicKey, { signal: cancel.signal });
      cancel.abort();
      await assert.rejects(dial, { code: 'cancelled' });
      await assert.rejects(a.endpoint.dial(address, a.key.publicKey, { signal: cancel.signal }), { code: 'cancelled' });
    });

    test('stop ends dials and connections, and the address is free again', async (t) => {
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      const { client, server } = await connect(a, b);
      const address = await harness.silentAddress(t);
      const dial = assert.rejects(a.endpoint.dial(address, a.key.publicKey), { code: 'cancelled' });
      await a.stop();
      await Promise.all([dial, client.closed, server.closed]);
      await assert.rejects(a.endpoint.dial(b.endpoint.address, b.key.publicKey), { code: 'connect_failed' });
    });

    test('connections over the total are refused, and room returns when one ends', async (t) => {
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

    test('connections over the number for one address are refused', async (t) => {
      const server = await startNode(t, harness, { limits: { connectionsPerSource: 1, countLoopback: true } });
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      await connect(a, server);
      const refused = await b.endpoint.dial(server.endpoint.address, server.key.publicKey);
      await refused.closed;
    });

    test('a key over its number of connections loses its oldest one', async (t) => {
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

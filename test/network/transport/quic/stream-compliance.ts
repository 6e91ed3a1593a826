/** What streams between two nodes must do, whatever carries their bytes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, type TestContext, test } from 'node:test';
import { standsStill } from '../../../support/stands-still.ts';
import { failure, MIB, openPair, readAll, type StreamPair } from './world.ts';

function pattern(bytes: number): Buffer {
  const data = Buffer.alloc(bytes);
  for (let i = 0; i < bytes; i += 4) data.writeUInt32LE(i, Math.min(i, bytes - 4));
  return data;
}

/** @param connect two nodes between which streams can be opened */
export function streamCompliance(name: string, connect: (t: TestContext) => Promise<StreamPair>): void {
  describe(`${name}: streams`, () => {
    test('an echo comes back whole, and both halves end cleanly', async (t) => {
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

    test('the caller may end its half and still read', async (t) => {
      const { ours, theirs } = await openPair(await connect(t));
      ours.end('question');
      assert.equal(String(await readAll(theirs)), 'question');
      assert.equal(theirs.writable, true);
      theirs.end('answer');
      assert.equal(String(await readAll(ours)), 'answer');
    });

    test('the called side may end its half and still read', async (t) => {
      const { ours, theirs } = await openPair(await connect(t));
      theirs.end('that is all');
      assert.equal(String(await readAll(ours)), 'that is all');
      assert.equal(ours.writable, true);
      ours.end('understood');
      assert.equal(String(await readAll(theirs)), 'understood');
    });

    test('a destroyed stream is an error on the other side, never a clean end', async (t) => {
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

    test('a writer learns that its reader is gone', async (t) => {
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

    test('bytes sent before a clean end survive the destruction that follows', async (t) => {
      const { ours, theirs } = await openPair(await connect(t));
      ours.end(pattern(MIB));
      await once(ours, 'finish');
      ours.destroy();
      assert.ok((await readAll(theirs)).equals(pattern(MIB)));
    });

    test('a paused reader holds its writer back, and loses nothing', async (t) => {
      const pair = await connect(t);
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
      const pair = await connect(t);
      for (let i = 0; i < 8; i++) {
        const slow = await openPair(pair);
        slow.ours.write(Buffer.alloc(8 * MIB));
      }
      const quick = await openPair(pair);
      quick.ours.end(pattern(32 * MIB));
      assert.equal((await readAll(quick.theirs)).length, 32 * MIB);
    });

    test('many small writes arrive whole and in order', async (t) => {
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

    test('many streams run side by side', async (t) => {
      const pair = await connect(t);
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

    test('closing the connection ends its streams on both sides', async (t) => {
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

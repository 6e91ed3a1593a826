/** A LAN TCP connection carries one stream after another. Remains of one stream do not affect the next. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { FrameOpener } from '../../../../src/network/transport/lan-tcp/greeting.ts';
import type { Stream } from '../../../../src/network/transport/types.ts';
import { eventually } from '../../../support/eventually.ts';
import { LeapClock } from '../../../support/leap-clock.ts';
import { failure, MIB, readAll } from '../world.ts';
import { type ConnectionPair, connectionEnd, connectionPair, quicPair, sealsOf, socketPair } from './world.ts';

/** Longer than a side lingers, milliseconds. */
const LATE_MS = 2_100;

/** A local stream with its remote end, after its first byte arrived. */
async function openOn({ ours, incoming }: ConnectionPair): Promise<[Stream, Stream]> {
  const stream = ours.connection.begin();
  stream.write('!');
  const theirs = await incoming();
  await once(theirs, 'data');
  theirs.pause();
  return [stream, theirs];
}

/** Writes until even the system buffers are full. Returns the number of bytes. */
function fill(stream: Stream, { ours }: ConnectionPair): number {
  let bytes = 0;
  const piece = Buffer.alloc(16 * 1024, 3);
  for (; ours.socket.writableLength === 0; bytes += piece.length) stream.write(piece);
  return bytes;
}

/** Writes until the stream fails, and returns the error. */
async function pump(stream: Stream): Promise<unknown> {
  const seen = failure(stream);
  const source = Readable.from(
    (function* endless() {
      for (;;) yield Buffer.alloc(64 * 1024);
    })(),
  );
  await assert.rejects(pipeline(source, stream));
  return await seen;
}

for (const isSealed of [false, true]) {
  const what = isSealed ? 'sealed' : 'open';

  test(`${what}: a stream can follow after both sides closed the previous one`, async (t) => {
    const pair = await connectionPair(t, { isSealed });
    for (let i = 0; i < 5; i++) {
      const [ours, theirs] = await openOn(pair);
      const first = i % 2 === 0 ? ours : theirs;
      const second = i % 2 === 0 ? theirs : ours;
      first.end('from the first side');
      assert.equal(String(await readAll(second)), 'from the first side');
      assert.equal(pair.ours.idle, i);
      second.end('from the second side');
      assert.equal(String(await readAll(first)), 'from the second side');
      await eventually('both ends are free again', () => pair.ours.idle === i + 1 && pair.theirs.idle === i + 1);
    }
    assert.ok(!pair.ours.isClosed && !pair.theirs.isClosed);
  });

  test(`${what}: a stream that was not read to its end does not block the next one`, async (t) => {
    const pair = await connectionPair(t, { isSealed });
    const [first, unread] = await openOn(pair);
    unread.end();
    first.resume().end(Buffer.alloc(MIB / 4, 7));
    await eventually('the first stream is over', () => pair.ours.idle === 1 && pair.theirs.idle === 1);
    const [second, theirs] = await openOn(pair);
    second.end(Buffer.alloc(2 * MIB, 8));
    assert.equal((await readAll(theirs)).length, 2 * MIB);
    assert.deepEqual(await readAll(unread), Buffer.alloc(MIB / 4, 7));
  });

  test(`${what}: a destroyed stream closes its connection, and the other side sees a reset`, async (t) => {
    for (const who of ['ours', 'theirs'] as const) {
      const pair = await connectionPair(t, { isSealed });
      const [ours, theirs] = await openOn(pair);
      const seen = failure(who === 'ours' ? theirs : ours);
      if (who === 'ours') ours.destroy();
      else theirs.destroy();
      assert.equal(await seen, 'stream_reset');
      await eventually('both ends are closed', () => pair.ours.isClosed && pair.theirs.isClosed);
      assert.equal(pair.ours.idle + pair.theirs.idle, 0);
    }
  });

  test(`${what}: a writer learns immediately that its reader destroyed the stream`, async (t) => {
    for (let i = 0; i < 20; i++) {
      const pair = await connectionPair(t, { isSealed });
      const [ours, theirs] = await openOn(pair);
      const sent = pump(theirs);
      await once(ours.resume(), 'data');
      ours.destroy();
      assert.equal(await sent, 'stream_reset');
    }
  });

  test(`${what}: a writer also learns this if its reader ended its own half before`, async (t) => {
    for (let i = 0; i < 20; i++) {
      const pair = await connectionPair(t, { isSealed });
      const [ours, theirs] = await openOn(pair);
      ours.end();
      const sent = pump(theirs);
      await once(ours.resume(), 'data');
      ours.destroy();
      assert.equal(await sent, 'stream_reset');
    }
  });

  test(`${what}: all bytes before an end reach a slow reader`, async (t) => {
    for (const isMuch of [false, true]) {
      const clock = new LeapClock();
      const pair = await connectionPair(t, { isSealed, clock });
      const [ours, theirs] = await openOn(pair);
      const bytes = isMuch ? fill(ours, pair) : 8;
      ours.end(isMuch ? '' : 'a little');
      await once(ours, 'finish');
      ours.destroy();
      theirs.read(0);
      await eventually('the reader has buffered what it may', () => theirs.readableLength >= Math.min(bytes, MIB / 4));
      for (let i = 0; i < 3; i++) {
        clock.pass(LATE_MS);
        await quicPair(t);
      }
      assert.equal((await readAll(theirs)).length, bytes);
      theirs.write('and?');
      assert.equal(await failure(theirs), 'stream_reset');
      await eventually('both ends are closed', () => pair.ours.isClosed && pair.theirs.isClosed);
    }
  });

  test(`${what}: a retired idle connection closes after its last bytes are sent`, async (t) => {
    const pair = await connectionPair(t, { isSealed });
    const [ours, theirs] = await openOn(pair);
    theirs.end();
    await finished(ours.resume(), { writable: false });
    const bytes = fill(ours, pair);
    ours.end();
    await once(ours, 'close');
    assert.equal(pair.ours.idle, 1);
    pair.ours.connection.retire();
    assert.equal((await readAll(theirs)).length, bytes);
    await eventually('both ends are closed', () => pair.ours.isClosed && pair.theirs.isClosed);
  });

  test(`${what}: remaining data for a destroyed stream is discarded`, async (t) => {
    const pair = await connectionPair(t, { isSealed });
    const [ours, theirs] = await openOn(pair);
    ours.end();
    await finished(theirs.resume(), { writable: false });
    ours.destroy();
    theirs.end(Buffer.alloc(10_000));
    await eventually('the connection is free again', () => pair.ours.idle === 1 && pair.theirs.idle === 1);
    const [next] = await openOn(pair);
    assert.ok(!next.destroyed);
  });

  test(`${what}: a destroyed stream that the other side does not end is given up`, async (t) => {
    const clock = new LeapClock();
    const pair = await connectionPair(t, { isSealed, clock });
    const [ours, theirs] = await openOn(pair);
    ours.end();
    await finished(theirs.resume(), { writable: false });
    const seen = failure(theirs);
    ours.destroy();
    clock.pass(LATE_MS);
    theirs.write('still there?');
    assert.equal(await seen, 'stream_reset');
    await eventually('both ends are closed', () => pair.ours.isClosed && pair.theirs.isClosed);
  });

  test(`${what}: a crashed process fails its streams`, async (t) => {
    for (const [who, other] of [
      ['ours', 'theirs'],
      ['theirs', 'ours'],
    ] as const) {
      const pair = await connectionPair(t, { isSealed });
      const [ours, theirs] = await openOn(pair);
      const seen = failure(who === 'ours' ? theirs : ours);
      pair[who].socket.resetAndDestroy();
      assert.equal(await seen, 'connection_lost');
      await eventually('the other end is closed', () => pair[other].isClosed);
    }
  });

  test(`${what}: a closed TCP connection is not a clean end of the stream`, async (t) => {
    const pair = await connectionPair(t, { isSealed });
    const [ours, theirs] = await openOn(pair);
    const seen = failure(theirs);
    pair.ours.socket.end();
    assert.equal(await seen, 'connection_lost');
    assert.equal(await failure(ours), 'connection_lost');
  });
}

test('the last bytes of a stream and its end are sent in one write', async (t) => {
  const quic = await quicPair(t);
  const [local, remote] = await socketPair(t);
  const { connection } = connectionEnd(local, sealsOf(false)[0], { isSealed: false, quic }, null);
  const pieces = t.mock.method(local, 'write');
  const uncork = t.mock.method(local, 'uncork', () => {});
  const stream = connection.begin();
  stream.end('the last');
  assert.equal(pieces.mock.callCount(), 2, 'both frames are queued');
  assert.equal(uncork.mock.callCount(), 1);
  uncork.mock.restore();
  local.uncork();
  const [last]: Buffer[] = await once(remote, 'data');
  const frames = [...new FrameOpener().feed(last ?? assert.fail())];
  assert.deepEqual(
    frames.map(({ kind, payload }) => [kind, String(payload)]),
    [
      ['data', 'the last'],
      ['end', ''],
    ],
  );
});

for (const isSealed of [false, true])
  test(`a pulse is answered between streams, ${isSealed ? 'sealed' : 'plain'}`, async (t) => {
    const { ours, theirs, incoming } = await connectionPair(t, { isSealed });
    for (let i = 1; i <= 3; i++) {
      ours.connection.pulse();
      await eventually('the pulse is answered', () => ours.pulses === i);
    }
    // A pulse in transit does not affect the next stream.
    ours.connection.pulse();
    const stream = ours.connection.begin();
    stream.end('a question');
    const other = await incoming();
    assert.equal(String(await readAll(other)), 'a question');
    other.end('an answer');
    assert.equal(String(await readAll(stream)), 'an answer');
    assert.equal(ours.pulses, 4);
    assert.deepEqual([ours.isClosed, theirs.isClosed], [false, false]);
  });

test('a late reset of the previous stream does not affect the next one', async (t) => {
  for (const isHeard of [false, true]) {
    const quic = await quicPair(t);
    const [local, remote] = await socketPair(t);
    remote.resume();
    const [seals, theirs] = sealsOf(false);
    const ours = connectionEnd(local, seals, { isSealed: false, quic }, null);
    const first = ours.connection.begin();
    first.end('a question');
    remote.write(theirs.sealer.seal('data', Buffer.from('no')));
    remote.write(theirs.sealer.seal('end'));
    assert.equal(String(await readAll(first)), 'no');
    await eventually('the connection is idle', () => ours.idle === 1);
    const second = ours.connection.begin();
    second.write('still there?');
    const seen = failure(second);
    if (isHeard) remote.write(theirs.sealer.seal('data', Buffer.from('yes')));
    remote.write(theirs.sealer.seal('reset'));
    second.resume();
    assert.equal(await seen, isHeard ? 'stream_reset' : 'connection_lost');
  }
});

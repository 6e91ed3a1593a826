/** A channel carries one stream after the other, and what one of them leaves behind hurts no other. */
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
import { type ChannelPair, channelEnd, channelPair, quicPair, sealsOf, socketPair } from './world.ts';

/** Longer than a side lingers for the other one, milliseconds. */
const LATE_MS = 2_100;

/** A stream of our end with its other end, once its first byte has come. */
async function openOn({ ours, incoming }: ChannelPair): Promise<[Stream, Stream]> {
  const stream = ours.channel.begin();
  stream.write('!');
  const theirs = await incoming();
  await once(theirs, 'data');
  theirs.pause();
  return [stream, theirs];
}

/** Writes until not even the system takes more; returns how many bytes. */
function fill(stream: Stream, { ours }: ChannelPair): number {
  let bytes = 0;
  const piece = Buffer.alloc(16 * 1024, 3);
  for (; ours.socket.writableLength === 0; bytes += piece.length) stream.write(piece);
  return bytes;
}

/** Writes until the stream fails, and says how. */
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

  test(`${what}: streams follow each other once both sides have ended`, async (t) => {
    const pair = await channelPair(t, { isSealed });
    for (let i = 0; i < 5; i++) {
      const [ours, theirs] = await openOn(pair);
      const first = i % 2 === 0 ? ours : theirs;
      const second = i % 2 === 0 ? theirs : ours;
      first.end('from who ends first');
      assert.equal(String(await readAll(second)), 'from who ends first');
      assert.equal(pair.ours.idle, i);
      second.end('from who ends last');
      assert.equal(String(await readAll(first)), 'from who ends last');
      await eventually('both ends are free again', () => pair.ours.idle === i + 1 && pair.theirs.idle === i + 1);
    }
    assert.ok(!pair.ours.isClosed && !pair.theirs.isClosed);
  });

  test(`${what}: a stream that nobody has read to its end does not hold up the next one`, async (t) => {
    const pair = await channelPair(t, { isSealed });
    const [first, unread] = await openOn(pair);
    unread.end();
    first.resume().end(Buffer.alloc(MIB / 4, 7));
    await eventually('the first stream is over', () => pair.ours.idle === 1 && pair.theirs.idle === 1);
    const [second, theirs] = await openOn(pair);
    second.end(Buffer.alloc(2 * MIB, 8));
    assert.equal((await readAll(theirs)).length, 2 * MIB);
    assert.deepEqual(await readAll(unread), Buffer.alloc(MIB / 4, 7));
  });

  test(`${what}: a channel on which a stream was given up ends, and its stream with a reset`, async (t) => {
    for (const who of ['ours', 'theirs'] as const) {
      const pair = await channelPair(t, { isSealed });
      const [ours, theirs] = await openOn(pair);
      const seen = failure(who === 'ours' ? theirs : ours);
      if (who === 'ours') ours.destroy();
      else theirs.destroy();
      assert.equal(await seen, 'stream_reset');
      await eventually('both ends are closed', () => pair.ours.isClosed && pair.theirs.isClosed);
      assert.equal(pair.ours.idle + pair.theirs.idle, 0);
    }
  });

  test(`${what}: whoever writes learns at once that its reader has given the stream up`, async (t) => {
    for (let i = 0; i < 20; i++) {
      const pair = await channelPair(t, { isSealed });
      const [ours, theirs] = await openOn(pair);
      const sent = pump(theirs);
      await once(ours.resume(), 'data');
      ours.destroy();
      assert.equal(await sent, 'stream_reset');
    }
  });

  test(`${what}: whoever writes much learns so too where its reader has ended its own half`, async (t) => {
    for (let i = 0; i < 20; i++) {
      const pair = await channelPair(t, { isSealed });
      const [ours, theirs] = await openOn(pair);
      ours.end();
      const sent = pump(theirs);
      await once(ours.resume(), 'data');
      ours.destroy();
      assert.equal(await sent, 'stream_reset');
    }
  });

  test(`${what}: bytes before an end come whole to a reader that takes its time`, async (t) => {
    for (const isMuch of [false, true]) {
      const clock = new LeapClock();
      const pair = await channelPair(t, { isSealed, clock });
      const [ours, theirs] = await openOn(pair);
      const bytes = isMuch ? fill(ours, pair) : 8;
      ours.end(isMuch ? '' : 'a little');
      await once(ours, 'finish');
      ours.destroy();
      theirs.read(0);
      await eventually('the reader has taken what it may', () => theirs.readableLength >= Math.min(bytes, MIB / 4));
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

  test(`${what}: an idle channel that is of no more use ends when its last bytes have gone`, async (t) => {
    const pair = await channelPair(t, { isSealed });
    const [ours, theirs] = await openOn(pair);
    theirs.end();
    await finished(ours.resume(), { writable: false });
    const bytes = fill(ours, pair);
    ours.end();
    await once(ours, 'close');
    assert.equal(pair.ours.idle, 1);
    pair.ours.channel.retire();
    assert.equal((await readAll(theirs)).length, bytes);
    await eventually('both ends are closed', () => pair.ours.isClosed && pair.theirs.isClosed);
  });

  test(`${what}: what the other side still says on a stream that nobody reads is thrown away`, async (t) => {
    const pair = await channelPair(t, { isSealed });
    const [ours, theirs] = await openOn(pair);
    ours.end();
    await finished(theirs.resume(), { writable: false });
    ours.destroy();
    theirs.end(Buffer.alloc(10_000));
    await eventually('the channel is free again', () => pair.ours.idle === 1 && pair.theirs.idle === 1);
    const [next] = await openOn(pair);
    assert.ok(!next.destroyed);
  });

  test(`${what}: a stream that nobody reads and the other side does not end is given up`, async (t) => {
    const clock = new LeapClock();
    const pair = await channelPair(t, { isSealed, clock });
    const [ours, theirs] = await openOn(pair);
    ours.end();
    await finished(theirs.resume(), { writable: false });
    const seen = failure(theirs);
    ours.destroy();
    clock.pass(LATE_MS);
    theirs.write('is anybody there?');
    assert.equal(await seen, 'stream_reset');
    await eventually('both ends are closed', () => pair.ours.isClosed && pair.theirs.isClosed);
  });

  test(`${what}: a process that dies without a word takes its streams along`, async (t) => {
    for (const [who, other] of [
      ['ours', 'theirs'],
      ['theirs', 'ours'],
    ] as const) {
      const pair = await channelPair(t, { isSealed });
      const [ours, theirs] = await openOn(pair);
      const seen = failure(who === 'ours' ? theirs : ours);
      pair[who].socket.resetAndDestroy();
      assert.equal(await seen, 'connection_lost');
      await eventually('its other end is closed', () => pair[other].isClosed);
    }
  });

  test(`${what}: an end of the TCP connection is no end of the stream`, async (t) => {
    const pair = await channelPair(t, { isSealed });
    const [ours, theirs] = await openOn(pair);
    const seen = failure(theirs);
    pair.ours.socket.end();
    assert.equal(await seen, 'connection_lost');
    assert.equal(await failure(ours), 'connection_lost');
  });
}

test('the last bytes of a stream and its end go out in one piece', async (t) => {
  const quic = await quicPair(t);
  const [near, far] = await socketPair(t);
  const { channel } = channelEnd(near, sealsOf(false)[0], { isSealed: false, quic }, null);
  const pieces = t.mock.method(near, 'write');
  const uncork = t.mock.method(near, 'uncork', () => {});
  const stream = channel.begin();
  stream.end('the last');
  assert.equal(pieces.mock.callCount(), 2, 'both are there, and wait');
  assert.equal(uncork.mock.callCount(), 1);
  uncork.mock.restore();
  near.uncork();
  const [last]: Buffer[] = await once(far, 'data');
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
  test(`a sign of life is answered between streams, ${isSealed ? 'sealed' : 'in the open'}`, async (t) => {
    const { ours, theirs, incoming } = await channelPair(t, { isSealed });
    for (let i = 1; i <= 3; i++) {
      ours.channel.pulse();
      await eventually('it is answered', () => ours.pulses === i);
    }
    // One that is still under way does not disturb the stream behind it.
    ours.channel.pulse();
    const stream = ours.channel.begin();
    stream.end('a question');
    const other = await incoming();
    assert.equal(String(await readAll(other)), 'a question');
    other.end('an answer');
    assert.equal(String(await readAll(stream)), 'an answer');
    assert.equal(ours.pulses, 4);
    assert.deepEqual([ours.isClosed, theirs.isClosed], [false, false]);
  });

test('a late reset of the stream before is not taken for one of the next', async (t) => {
  for (const isHeard of [false, true]) {
    const quic = await quicPair(t);
    const [near, far] = await socketPair(t);
    far.resume();
    const [seals, theirs] = sealsOf(false);
    const ours = channelEnd(near, seals, { isSealed: false, quic }, null);
    const first = ours.channel.begin();
    first.end('a question');
    far.write(theirs.sealer.seal('data', Buffer.from('no')));
    far.write(theirs.sealer.seal('end'));
    assert.equal(String(await readAll(first)), 'no');
    await eventually('it is idle', () => ours.idle === 1);
    const second = ours.channel.begin();
    second.write('is anybody there');
    const seen = failure(second);
    if (isHeard) far.write(theirs.sealer.seal('data', Buffer.from('yes')));
    far.write(theirs.sealer.seal('reset'));
    second.resume();
    assert.equal(await seen, isHeard ? 'stream_reset' : 'connection_lost');
  }
});

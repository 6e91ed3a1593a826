/** Invalid data on a LAN TCP connection closes that connection and nothing else. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { ConnectionSeals } from '../../../../src/network/transport/lan-tcp/greeting.ts';
import type { Stream } from '../../../../src/network/transport/types.ts';
import { eventually } from '../../../support/eventually.ts';
import { LeapClock } from '../../../support/leap-clock.ts';
import { failure, inbox } from '../world.ts';
import { connectionEnd, type End, quicPair, sealsOf, socketPair } from './world.ts';

/** Longer than a side lingers, milliseconds. */
const LATE_MS = 2_100;
const KIB = 1024;

interface Attack {
  /** The attacked end. */
  readonly end: End;
  /** The attacker's end of the TCP connection. */
  readonly socket: Socket;
  /** Seals data as the other end would. */
  readonly seals: ConnectionSeals;
  readonly clock: LeapClock;
  readonly incoming: () => Promise<Stream>;
  /** Streams that the attacked end received. */
  count: number;
}

/** @param begins whether the attacked end opens the streams */
async function attack(t: TestContext, isSealed: boolean, begins = false): Promise<Attack> {
  const clock = new LeapClock();
  const [socket, theirs] = await socketPair(t);
  const [connects, accepts] = sealsOf(isSealed);
  const [seals, theirSeals] = begins ? [accepts, connects] : [connects, accepts];
  const streams = inbox<Stream>();
  const onStream = (stream: Stream): void => {
    attacked.count++;
    streams.push(stream);
  };
  const options = { isSealed, clock, quic: await quicPair(t) };
  const end = connectionEnd(theirs, theirSeals, options, begins ? null : onStream);
  const attacked: Attack = { end, socket, seals, clock, incoming: streams.next, count: 0 };
  return attacked;
}

async function isEnded({ end, socket }: Attack): Promise<void> {
  await eventually('the connection is closed', () => end.isClosed);
  assert.ok(end.socket.destroyed);
  socket.resume();
  if (!socket.closed) await once(socket.end(), 'close');
}

/** Sends a changed sequence of records. The stream must fail after its first bytes. */
async function sendChanged(
  t: TestContext,
  isSealed: boolean,
  change: (records: readonly Buffer[]) => readonly Buffer[],
) {
  const it = await attack(t, isSealed);
  it.socket.write(it.seals.sealer.seal('data', Buffer.from('first')));
  const stream = await it.incoming();
  const chunks: string[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(String(chunk)));
  const seen = failure(stream);
  const records = ['second', 'third', 'fourth'].map((text) => it.seals.sealer.seal('data', Buffer.from(text)));
  it.socket.write(Buffer.concat([...change(records), it.seals.sealer.seal('end')]));
  assert.equal(await seen, 'connection_lost');
  await isEnded(it);
  assert.equal(it.count, 1);
  return chunks.join(' ');
}

describe('sealed records', () => {
  const changed = (record: Buffer | undefined, at: number): Buffer => {
    const copy = Buffer.from(record ?? []);
    copy.writeUInt8((copy.at(at) ?? 0) ^ 1, at < 0 ? copy.length + at : at);
    return copy;
  };
  for (const [what, change] of [
    ['changed in the payload', ([a, b]) => [changed(a, 5), b]],
    ['changed in the tag', ([a, b]) => [changed(a, -1), b]],
    ['changed in the length', ([a, b]) => [changed(a, 2), b]],
    ['repeated', ([a, b]) => [a, a, b]],
    ['omitted', ([, b, c]) => [b, c]],
    ['reordered', ([a, b, c]) => [b, a, c]],
    ['empty', () => [Buffer.alloc(3)]],
    ['too long', () => [Buffer.from([0xff, 0xff, 0xff])]],
  ] satisfies readonly [string, (records: readonly Buffer[]) => readonly (Buffer | undefined)[]][])
    test(`sealed records that are ${what} close the connection`, async (t) => {
      const given = (records: readonly Buffer[]) => change(records).filter((one) => one !== undefined);
      assert.doesNotMatch(await sendChanged(t, true, given), /third|fourth/);
    });

  test('a truncated record closes the connection with its TCP connection', async (t) => {
    const it = await attack(t, true);
    it.socket.write(it.seals.sealer.seal('data', Buffer.from('first')));
    const seen = failure(await it.incoming());
    it.socket.end(it.seals.sealer.seal('data', Buffer.from('second')).subarray(0, -1));
    assert.equal(await seen, 'connection_lost');
    await isEnded(it);
  });

  test('a reflected record closes the connection', async (t) => {
    const it = await attack(t, true);
    const [, own] = sealsOf(true);
    it.socket.write(own.sealer.seal('data', Buffer.from('mirrored')));
    await isEnded(it);
    assert.equal(it.count, 0);
  });
});

describe('plain frames', () => {
  for (const [what, frame] of [
    ['empty', [1, 0, 0, 0]],
    ['too long', [1, 1, 0, 1]],
    ['an end with a payload', [2, 0, 0, 1, 0]],
    ['a hello', [0, 0, 0, 0]],
    ['of an unknown kind', [9, 0, 0, 1, 0]],
  ] satisfies [string, number[]][])
    test(`a frame that is ${what} closes the connection`, async (t) => {
      const chunks = await sendChanged(t, false, ([first]) => [
        ...(first === undefined ? [] : [first]),
        Buffer.from(frame),
      ]);
      assert.doesNotMatch(chunks, /third|fourth/);
    });
});

for (const isSealed of [false, true])
  describe(isSealed ? 'Sealed connections' : 'Plain connections', () => {
    test('data or an end after the end of a stream closes the connection', async (t) => {
      for (const kind of ['data', 'end'] as const) {
        const it = await attack(t, isSealed);
        it.socket.write(it.seals.sealer.seal('data', Buffer.from('all')));
        const stream = await it.incoming();
        it.socket.write(it.seals.sealer.seal('end'));
        await once(stream.resume(), 'end');
        const seen = failure(stream);
        it.socket.write(
          kind === 'end' ? it.seals.sealer.seal('end') : it.seals.sealer.seal('data', Buffer.from('more')),
        );
        assert.equal(await seen, 'connection_lost');
        await isEnded(it);
      }
    });

    test('a reset or an end before any stream closes the connection', async (t) => {
      for (const kind of ['reset', 'end'] as const)
        for (const begins of [false, true]) {
          const it = await attack(t, isSealed, begins);
          it.socket.write(it.seals.sealer.seal(kind));
          await isEnded(it);
          assert.equal(it.count, 0);
        }
    });

    test('a stream opened by the wrong side closes the connection', async (t) => {
      const it = await attack(t, isSealed, true);
      it.socket.write(it.seals.sealer.seal('data', Buffer.from('a stream')));
      await isEnded(it);
    });

    test('an empty data frame closes the connection', async (t) => {
      const it = await attack(t, isSealed);
      it.socket.write(it.seals.sealer.seal('data', Buffer.alloc(0)));
      await isEnded(it);
      assert.equal(it.count, 0);
    });

    test('random data closes the connection', async (t) => {
      const it = await attack(t, isSealed);
      it.socket.write(Buffer.alloc(200 * KIB, 0xa5));
      await isEnded(it);
      assert.equal(it.count, 0);
    });

    test('a writer that floods a closed reader receives one reset, then is disconnected', async (t) => {
      const it = await attack(t, isSealed);
      const flood = (bytes: number): void => {
        for (let at = 0; at < bytes; at += KIB) it.socket.write(it.seals.sealer.seal('data', Buffer.alloc(KIB)));
      };
      flood(KIB);
      const stream = await it.incoming();
      stream.end('enough');
      await once(stream, 'finish');
      stream.destroy();
      const replies: string[] = [];
      it.socket.on('data', (chunk: Buffer) => {
        for (const { kind } of it.seals.opener.feed(chunk)) replies.push(kind);
      });
      flood(60 * KIB);
      await eventually('the data was discarded', () => it.end.state.received > 60 * KIB);
      assert.deepEqual(replies, ['data', 'end']);
      flood(10 * KIB);
      await eventually('the writer received the reset', () => replies.length === 3);
      assert.deepEqual(replies, ['data', 'end', 'reset']);
      flood(1000 * KIB);
      await eventually('all data was received', () => it.end.state.received > 1000 * KIB);
      assert.ok(!it.end.isClosed);
      it.clock.pass(LATE_MS);
      await isEnded(it);
    });

    test('a writer that floods a paused reader is paused, and can be disconnected', async (t) => {
      const it = await attack(t, isSealed);
      const piece = Buffer.alloc(64 * KIB);
      for (let at = 0; at < 64 * KIB * KIB; at += piece.length) it.socket.write(it.seals.sealer.seal('data', piece));
      const stream = await it.incoming();
      await eventually('the reader is paused', () => it.end.socket.isPaused());
      assert.ok(stream.readableLength < 512 * KIB);
      stream.destroy();
      it.clock.pass(LATE_MS);
      await isEnded(it);
    });
  });

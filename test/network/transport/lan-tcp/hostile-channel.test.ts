/** What another side sends on a channel that it should not: it ends that channel, and nothing else. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { ConnectionSeals } from '../../../../src/network/transport/lan-tcp/greeting.ts';
import type { Stream } from '../../../../src/network/transport/types.ts';
import { eventually } from '../../../support/eventually.ts';
import { LeapClock } from '../../../support/leap-clock.ts';
import { failure, inbox } from '../world.ts';
import { channelEnd, type End, quicPair, sealsOf, socketPair } from './world.ts';

/** Longer than a side lingers for the other one, milliseconds. */
const LATE_MS = 2_100;
const KIB = 1024;

interface Attack {
  /** The end that is attacked. */
  readonly end: End;
  /** The other end of its TCP connection. */
  readonly socket: Socket;
  /** How the other end would seal what it sends. */
  readonly seals: ConnectionSeals;
  readonly clock: LeapClock;
  readonly incoming: () => Promise<Stream>;
  /** Streams that the end was told of. */
  count: number;
}

/** @param begins whether the attacked end is the one that begins streams */
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
  const end = channelEnd(theirs, theirSeals, options, begins ? null : onStream);
  const attacked: Attack = { end, socket, seals, clock, incoming: streams.next, count: 0 };
  return attacked;
}

async function isEnded({ end, socket }: Attack): Promise<void> {
  await eventually('the channel is closed', () => end.isClosed);
  assert.ok(end.socket.destroyed);
  socket.resume();
  if (!socket.closed) await once(socket.end(), 'close');
}

/** Feeds what a change makes of a few records; the stream is lost, and nothing but its first bytes has come. */
async function spoiled(t: TestContext, isSealed: boolean, change: (records: readonly Buffer[]) => readonly Buffer[]) {
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
    ['changed in what they carry', ([a, b]) => [changed(a, 5), b]],
    ['changed in their tag', ([a, b]) => [changed(a, -1), b]],
    ['changed in their length', ([a, b]) => [changed(a, 2), b]],
    ['said twice', ([a, b]) => [a, a, b]],
    ['left out', ([, b, c]) => [b, c]],
    ['put elsewhere', ([a, b, c]) => [b, a, c]],
    ['empty', () => [Buffer.alloc(3)]],
    ['longer than any', () => [Buffer.from([0xff, 0xff, 0xff])]],
  ] satisfies readonly [string, (records: readonly Buffer[]) => readonly (Buffer | undefined)[]][])
    test(`that were ${what} end the channel`, async (t) => {
      const given = (records: readonly Buffer[]) => change(records).filter((one) => one !== undefined);
      assert.doesNotMatch(await spoiled(t, true, given), /third|fourth/);
    });

  test('that were cut end the channel with their TCP connection', async (t) => {
    const it = await attack(t, true);
    it.socket.write(it.seals.sealer.seal('data', Buffer.from('first')));
    const seen = failure(await it.incoming());
    it.socket.end(it.seals.sealer.seal('data', Buffer.from('second')).subarray(0, -1));
    assert.equal(await seen, 'connection_lost');
    await isEnded(it);
  });

  test('of this end are not taken for some of the other', async (t) => {
    const it = await attack(t, true);
    const [, own] = sealsOf(true);
    it.socket.write(own.sealer.seal('data', Buffer.from('mirrored')));
    await isEnded(it);
    assert.equal(it.count, 0);
  });
});

describe('frames in the open', () => {
  for (const [what, frame] of [
    ['empty', [1, 0, 0, 0]],
    ['longer than any', [1, 1, 0, 1]],
    ['ends with something in them', [2, 0, 0, 1, 0]],
    ['of a hello', [0, 0, 0, 0]],
    ['of an unknown kind', [9, 0, 0, 1, 0]],
  ] satisfies [string, number[]][])
    test(`that are ${what} end the channel`, async (t) => {
      const chunks = await spoiled(t, false, ([first]) => [
        ...(first === undefined ? [] : [first]),
        Buffer.from(frame),
      ]);
      assert.doesNotMatch(chunks, /third|fourth/);
    });
});

for (const isSealed of [false, true])
  describe(isSealed ? 'sealed channels' : 'open channels', () => {
    test('bytes and ends behind an end are the last', async (t) => {
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

    test('a reset and an end before any stream end the channel', async (t) => {
      for (const kind of ['reset', 'end'] as const)
        for (const begins of [false, true]) {
          const it = await attack(t, isSealed, begins);
          it.socket.write(it.seals.sealer.seal(kind));
          await isEnded(it);
          assert.equal(it.count, 0);
        }
    });

    test('nobody begins streams at the end that does', async (t) => {
      const it = await attack(t, isSealed, true);
      it.socket.write(it.seals.sealer.seal('data', Buffer.from('take this')));
      await isEnded(it);
    });

    test('data without a byte is none', async (t) => {
      const it = await attack(t, isSealed);
      it.socket.write(it.seals.sealer.seal('data', Buffer.alloc(0)));
      await isEnded(it);
      assert.equal(it.count, 0);
    });

    test('noise ends the channel', async (t) => {
      const it = await attack(t, isSealed);
      it.socket.write(Buffer.alloc(200 * KIB, 0xa5));
      await isEnded(it);
      assert.equal(it.count, 0);
    });

    test('who writes on and on where nobody reads is told once, and cut off', async (t) => {
      const it = await attack(t, isSealed);
      const flood = (bytes: number): void => {
        for (let at = 0; at < bytes; at += KIB) it.socket.write(it.seals.sealer.seal('data', Buffer.alloc(KIB)));
      };
      flood(KIB);
      const stream = await it.incoming();
      stream.end('enough');
      await once(stream, 'finish');
      stream.destroy();
      const told: string[] = [];
      it.socket.on('data', (chunk: Buffer) => {
        for (const { kind } of it.seals.opener.feed(chunk)) told.push(kind);
      });
      flood(60 * KIB);
      await eventually('what came was thrown away', () => it.end.state.received > 60 * KIB);
      assert.deepEqual(told, ['data', 'end']);
      flood(10 * KIB);
      await eventually('it is told', () => told.length === 3);
      assert.deepEqual(told, ['data', 'end', 'reset']);
      flood(1000 * KIB);
      await eventually('all was taken', () => it.end.state.received > 1000 * KIB);
      assert.ok(!it.end.isClosed);
      it.clock.pass(LATE_MS);
      await isEnded(it);
    });

    test('who fills its reader and goes on is held back, and can be given up', async (t) => {
      const it = await attack(t, isSealed);
      const piece = Buffer.alloc(64 * KIB);
      for (let at = 0; at < 64 * KIB * KIB; at += piece.length) it.socket.write(it.seals.sealer.seal('data', piece));
      const stream = await it.incoming();
      await eventually('the reader is full', () => it.end.socket.isPaused());
      assert.ok(stream.readableLength < 512 * KIB);
      stream.destroy();
      it.clock.pass(LATE_MS);
      await isEnded(it);
    });
  });

/** One stream of bytes over several lanes: order, ends, resets, lost lanes, bounds. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  ackFrame,
  dataFrame,
  endFrame,
  FrameParser,
  type LaneFrame,
  widerFrame,
} from '../../../src/capabilities/tunnels/wide/frames.ts';
import { MAX_FRAMES_AHEAD, Reassembly } from '../../../src/capabilities/tunnels/wide/reassembly.ts';
import { FIRST_WINDOW_BYTES, MAX_LANES, WideStream } from '../../../src/capabilities/tunnels/wide/wide-stream.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { linkEnds, WidePair } from '../../support/lanes.ts';
import { readAll, settle } from '../../support/link-world.ts';
import { Random } from '../../support/random.ts';

const MIB = 1024 * 1024;
const SEED = { seed: 20_261 };

/** Bytes in which each place differs from its neighbours, whatever the frames. */
function sample(length: number): Buffer {
  const random = new Random(length);
  return Buffer.from(Uint8Array.from({ length }, () => random.below(256)));
}

/** Holds back what arrives at an end of a lane for a number of turns that the seed says. */
function jitter(seed: number): (near: Duplex, far: Duplex) => void {
  const random = new Random(seed);
  return (...ends) => {
    for (const end of ends) {
      const push = end.push.bind(end);
      const waiting: unknown[] = [];
      let busy = false;
      const next = (): void => {
        busy = waiting.length > 0;
        if (!busy) return;
        let turns = random.below(5);
        const tick = (): void => {
          if (turns-- > 0) return void setImmediate(tick);
          const chunk = waiting.shift();
          if (!end.destroyed) push(chunk);
          next();
        };
        setImmediate(tick);
      };
      end.push = (chunk: unknown) => {
        waiting.push(chunk);
        if (!busy) next();
        return true;
      };
    }
  };
}

test('frames are the same however their bytes are cut', () => {
  const payload = sample(1000);
  const stream = Buffer.concat([
    dataFrame(2 ** 40, [payload.subarray(0, 300), payload.subarray(300)], 1000),
    ackFrame(2 ** 41 + 5, 8 * MIB, 77),
    widerFrame(),
    endFrame(2 ** 40 + 1000),
  ]);
  const expected: LaneFrame[] = [
    { kind: 'data', offset: 2 ** 40, payload },
    { kind: 'ack', consumed: 2 ** 41 + 5, window: 8 * MIB, frames: 77 },
    { kind: 'wider' },
    { kind: 'end', offset: 2 ** 40 + 1000 },
  ];
  fc.assert(
    fc.property(fc.array(fc.nat(stream.length), { maxLength: 20 }), (cuts) => {
      const parser = new FrameParser();
      const frames: LaneFrame[] = [];
      const places = [0, ...cuts.toSorted((a, b) => a - b), stream.length];
      for (const [i, end] of places.entries()) frames.push(...parser.feed(stream.subarray(places[i - 1] ?? 0, end)));
      assert.deepEqual(frames, expected);
    }),
    SEED,
  );
});

test('frames that no sender makes are refused', () => {
  for (const bytes of [[9], [0], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 1, 0, 1]])
    assert.throws(() => [...new FrameParser().feed(Buffer.from(bytes))], { code: 'protocol_error' });
});

test('in whatever order frames come, and however often, their bytes come out in order', () => {
  const whole = sample(500);
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 20 }),
      fc.array(fc.nat(), { maxLength: 60 }),
      (sizes, picks) => {
        const frames: { offset: number; payload: Buffer }[] = [];
        let offset = 0;
        for (const size of sizes) {
          const payload = whole.subarray(offset, offset + size);
          if (payload.length > 0) frames.push({ offset, payload });
          offset += payload.length;
        }
        const reassembly = new Reassembly();
        const out: Buffer[] = [];
        const order = [...picks.map((pick) => pick % frames.length), ...frames.keys()];
        for (const [step, index] of order.entries()) {
          const frame = frames[index];
          if (frame !== undefined) reassembly.take(frame.offset, frame.payload, whole.length);
          if (step === 3) reassembly.finish(offset);
          if (step % 2 === 0)
            for (let next = reassembly.next(); next !== null; next = reassembly.next()) out.push(next);
        }
        reassembly.finish(offset);
        assert.equal(reassembly.whole, true);
        for (let next = reassembly.next(); next !== null; next = reassembly.next()) out.push(next);
        assert.equal(reassembly.ended, true);
        assert.deepEqual(Buffer.concat(out), whole.subarray(0, offset));
      },
    ),
    SEED,
  );
});

test('what is beyond the window, behind the end, in too many pieces or does not fit is refused', () => {
  const refused = { code: 'protocol_error' };
  const one = Buffer.alloc(1);
  assert.throws(() => new Reassembly().take(10, one, 10), refused);
  const ended = new Reassembly();
  ended.finish(5);
  assert.throws(() => ended.take(5, one, 100), refused);
  assert.throws(() => ended.finish(6), refused);
  const early = new Reassembly();
  early.take(5, one, 100);
  assert.throws(() => early.finish(5), refused);
  assert.throws(() => early.take(5, Buffer.alloc(2), 100), refused);
  const crumbs = new Reassembly();
  for (let i = 0; i < MAX_FRAMES_AHEAD; i++) crumbs.take(2 * i + 1, one, 1e6);
  assert.throws(() => crumbs.take(1e5, one, 1e6), refused);
  const passed = new Reassembly();
  passed.take(0, Buffer.alloc(4), 100);
  passed.next();
  assert.throws(() => passed.take(2, Buffer.alloc(4), 100), refused);
});

test('frames that overlap hold no more than the window', () => {
  const most = Buffer.alloc(600);
  const reassembly = new Reassembly();
  reassembly.take(1, most, 1000);
  assert.throws(() => reassembly.take(2, most, 1000), { code: 'protocol_error' });
  const apart = new Reassembly();
  apart.take(600, most, 1200);
  apart.take(0, most, 1200);
  apart.next();
  apart.take(1200, most, 1800);
});

test('bytes arrive in order over lanes that overtake each other, both ways, each half ending by itself', async () => {
  for (const [seed, lanes] of [
    [1, 1],
    [2, 2],
    [3, 5],
    [4, MAX_LANES],
  ] as const) {
    const { near, far } = new WidePair({ lanes, onLane: jitter(seed) });
    const [up, down] = [sample(MIB + seed), sample(300_000 + seed)];
    near.write(up.subarray(0, 10));
    near.end(up.subarray(10));
    assert.deepEqual(await readAll(far), up);
    assert.equal(near.readableEnded, false);
    far.end(down);
    assert.deepEqual(await readAll(near), down);
    await Promise.all([near.closed || once(near, 'close'), far.closed || once(far, 'close')]);
  }
});

test('what was on a lost lane comes over the others', async () => {
  for (const lost of [0, 1]) {
    const pair = new WidePair({ lanes: 3, onLane: jitter(7) });
    const up = sample(2 * MIB);
    const reading = readAll(pair.far);
    pair.near.end(up);
    await eventually('a part', () => pair.near.moved > MIB / 2);
    pair.lose(lost);
    assert.deepEqual(await reading, up);
    pair.far.end('and back');
    assert.equal((await readAll(pair.near)).toString(), 'and back');
  }
});

test('with its last lane the connection is lost, and that is no clean end', async () => {
  const pair = new WidePair({ lanes: 2 });
  const reading = assert.rejects(readAll(pair.far), { code: 'connection_lost' });
  const writing = once(pair.near, 'error');
  pair.near.write('a beginning');
  await settle();
  pair.lose(0);
  pair.lose(1);
  await reading;
  const [error]: unknown[] = await writing;
  assert.ok(error instanceof Error && 'code' in error && error.code === 'connection_lost');
});

test('a reset passes to the other side over any number of lanes', async () => {
  for (const lanes of [1, 4]) {
    const pair = new WidePair({ lanes });
    pair.near.write('some');
    await once(pair.far, 'data');
    const broken = once(pair.far, 'error');
    pair.near.destroy();
    const [error]: unknown[] = await broken;
    assert.ok(error instanceof Error && 'code' in error && error.code === 'stream_reset');
  }
});

test('a lane that ends before all has been said breaks the connection off', async () => {
  const [ours, theirs] = linkEnds();
  theirs.on('error', () => {});
  const pair = new WidePair();
  pair.far.add(ours);
  theirs.end();
  await settle();
  assert.equal(pair.far.destroyed, false);
  const broken = once(pair.far, 'error');
  pair.lanes[0]?.[0].end();
  const [error]: unknown[] = await broken;
  assert.ok(error instanceof Error && 'code' in error && error.code === 'stream_reset');
});

test('an other side that ends its lanes has all bytes, though its last acknowledgement was lost', async () => {
  const [ours, theirs] = linkEnds();
  const stream = new WideStream(ours, { clock: systemClock, widen: () => true });
  stream.end('all');
  stream.resume();
  const done = once(stream, 'close');
  theirs.resume();
  theirs.end(endFrame(0));
  await done;
  assert.equal(stream.errored, null);
});

test('a reader that does not read holds its writer back, and loses nothing', async () => {
  const pair = new WidePair({ lanes: 4, widen: () => false });
  const up = sample(2 * MIB);
  let written = 0;
  for (let at = 0; at < up.length; at += 64 * 1024)
    pair.near.write(up.subarray(at, at + 64 * 1024), () => {
      written = at;
    });
  pair.near.end();
  await settle(200);
  // What the window lets through, and what either end buffers on its own.
  assert.ok(pair.near.moved <= FIRST_WINDOW_BYTES + 2 * 256 * 1024, `${pair.near.moved}`);
  assert.ok(written < up.length / 2);
  assert.deepEqual(await readAll(pair.far), up);
});

test('the window grows for a reader that keeps up, where there is room', async () => {
  let grown = 0;
  const pair = new WidePair({
    widen: () => {
      grown++;
      return true;
    },
  });
  const reading = readAll(pair.far);
  pair.near.end(sample(2 * MIB));
  await reading;
  // By the reader first, and then by its writer, who has heard of it.
  assert.ok(grown >= 2);
});

test('an end that loses packets can ask the other for more lanes', async () => {
  const pair = new WidePair();
  pair.far.askWider();
  await eventually('the question', () => pair.asked === 1);
});

test('acknowledgements of what was never sent break the connection off', async () => {
  const [ours, theirs] = linkEnds();
  theirs.on('error', () => {});
  const pair = new WidePair();
  pair.near.add(ours);
  const broken = once(pair.near, 'error');
  theirs.write(ackFrame(1_000_000, 1000, 0));
  const [error]: unknown[] = await broken;
  assert.ok(error instanceof Error);
});

test('acknowledgements that nobody reads do not pile up, and the last one still comes', async () => {
  const [ours, theirs] = linkEnds();
  const stream = new WideStream(ours, { clock: systemClock, widen: () => true });
  stream.resume();
  theirs.on('error', () => {});
  const many = 100_000;
  theirs.write(Buffer.concat(Array.from({ length: many }, () => endFrame(0))));
  await eventually('all of it is read', () => theirs.writableLength === 0);
  assert.ok(ours.writableLength <= ours.writableHighWaterMark + 100, `${ours.writableLength} bytes wait`);
  const parser = new FrameParser();
  let acknowledged = 0;
  theirs.on('data', (chunk: Buffer) => {
    for (const frame of parser.feed(chunk)) if (frame.kind === 'ack') acknowledged = frame.frames;
  });
  await eventually('the last acknowledgement', () => acknowledged === many);
  stream.destroy();
});

test('bytes that come in frames of one byte are few pieces for a reader that is behind', async () => {
  const [lane, far] = linkEnds();
  lane.on('error', () => {});
  const stream = new WideStream(far, { clock: systemClock, widen: () => false });
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => {
    pieces.push(piece);
    stream.pause();
  });
  lane.resume();
  const frames = 1000;
  const bytes = sample(20 * frames);
  for (let at = 0; at < bytes.length; at += frames) {
    lane.write(
      Buffer.concat(
        Array.from({ length: frames }, (_, i) => dataFrame(at + i, [bytes.subarray(at + i, at + i + 1)], 1)),
      ),
    );
    await settle(1);
  }
  assert.ok(stream.readableLength > bytes.length / 2);
  while (stream.readableLength > 0) {
    stream.resume();
    await settle(1);
  }
  assert.deepEqual(Buffer.concat(pieces), bytes);
  assert.ok(pieces.length <= 40, `${pieces.length} pieces`);
  stream.destroy();
});

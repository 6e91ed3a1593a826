import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ChatFrameReader, encodeFrame, type Frame, MAX_FRAME_BYTES } from '../../../src/capabilities/chat/wire.ts';
import { encodeCbor } from '../../../src/foundation/cbor.ts';
import { MAX_TEXT_BYTES } from '../../../src/foundation/domain/chat.ts';

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const text = (max: number) => fc.string({ unit: 'grapheme', maxLength: max });
const answer = fc.constantFrom('ok' as const, 'gone' as const, 'busy' as const, 'unknown' as const);
const file = fc.record({
  objectId: bytes(32).map((id) => Buffer.from(id).toString('hex')),
  name: fc.constantFrom('a', 'notes.txt', 'ä b.pdf'),
  size: fc.maxSafeNat(),
});
const frame: fc.Arbitrary<Frame> = fc.oneof(
  fc.record({ kind: fc.constant('request' as const), n: fc.nat(), stream: bytes(16), note: text(100) }),
  fc.record({ kind: fc.constant('accept' as const), n: fc.nat(), stream: bytes(16), re: bytes(16) }),
  fc.record({
    kind: fc.constant('gone' as const),
    n: fc.nat(),
    stream: fc.option(bytes(16)),
    re: fc.option(bytes(16)),
  }),
  fc.record({
    kind: fc.constant('message' as const),
    stream: bytes(16),
    after: fc.option(bytes(16)),
    content: fc.record({ id: bytes(16), at: fc.nat(), text: text(200), file: fc.option(file) }),
  }),
  fc.record({ kind: fc.constant('heard' as const), n: fc.nat(), answer }),
  fc.record({ kind: fc.constant('receipt' as const), stream: bytes(16), last: fc.option(bytes(16)), answer }),
  fc.record({ kind: fc.constant('check' as const), stream: bytes(16), after: bytes(16) }),
);

/** The frames that a reader decodes from chunks. */
function readIn(pieces: readonly Uint8Array[]): Frame[] {
  const reader = new ChatFrameReader();
  return pieces.flatMap((piece) => reader.take(piece));
}

function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, v: unknown) => (v instanceof Uint8Array ? Buffer.from(v).toString('hex') : v)),
  );
}

test('frames are decoded from any chunks', () => {
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 8 }), fc.array(fc.integer({ min: 1, max: 300 })), (frames, cuts) => {
      const all = Buffer.concat([Uint8Array.of(1), ...frames.map(encodeFrame)]);
      const pieces: Uint8Array[] = [];
      let at = 0;
      for (let i = 0; at < all.length; i++) {
        const size = cuts[i % Math.max(1, cuts.length)] ?? all.length;
        pieces.push(all.subarray(at, at + size));
        at += size;
      }
      assert.deepEqual(plain(readIn(pieces)), plain(frames));
    }),
    { seed: 7, numRuns: 300 },
  );
});

test('random bytes are rejected', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (noise) => {
      const reader = new ChatFrameReader();
      try {
        reader.take(Uint8Array.of(1));
        reader.take(noise);
      } catch (error) {
        assert.ok(error instanceof RangeError);
      }
    }),
    { seed: 7, numRuns: 500 },
  );
  assert.throws(() => new ChatFrameReader().take(Uint8Array.of(2)), RangeError);
});

function framed(value: Parameters<typeof encodeCbor>[0]): Uint8Array {
  const body = encodeCbor(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return Buffer.concat([Uint8Array.of(1), length, body]);
}

test('frames that exceed a limit are rejected', () => {
  const s = new Uint8Array(16);
  const good = { k: 4, s, i: s, t: 1, b: 'x' };
  assert.equal(readIn([framed(good)]).length, 1);
  const bad = [
    { ...good, k: 9 },
    { ...good, s: new Uint8Array(15) },
    { ...good, p: s.slice(1) },
    { ...good, i: new Uint8Array(17) },
    { ...good, b: 'x'.repeat(MAX_TEXT_BYTES + 1) },
    { k: 4, s, i: s, t: 1 },
    { ...good, f: [new Uint8Array(31), 'n', 1] },
    { ...good, f: [new Uint8Array(32), '../n', 1] },
    { ...good, f: [new Uint8Array(32), 'a\u0000', 1] },
    { ...good, f: [new Uint8Array(32), 'x'.repeat(256), 1] },
    { k: 1, n: 1, s, o: 'x'.repeat(281) },
    { k: 5, n: 1, c: 4 },
  ];
  for (const value of bad) assert.throws(() => readIn([framed(value)]), RangeError, JSON.stringify(value));
  const long = Buffer.alloc(5, 1);
  long.writeUInt32BE(MAX_FRAME_BYTES + 1, 1);
  assert.throws(() => readIn([long]), RangeError);
});

test('a frame that arrives byte by byte costs no more than its size', (t) => {
  const stream = new Uint8Array(16);
  const content = { id: stream, at: 1, text: 'x'.repeat(MAX_TEXT_BYTES), file: null };
  const all = Buffer.concat([Uint8Array.of(1), encodeFrame({ kind: 'message', stream, after: null, content })]);
  const reader = new ChatFrameReader();
  let copied = 0;
  const concat = Buffer.concat.bind(Buffer);
  t.mock.method(Buffer, 'concat', (list: readonly Uint8Array[], length?: number) => {
    copied += list.reduce((sum, one) => sum + one.length, 0);
    return concat(list, length);
  });
  let frames = 0;
  for (const byte of all) frames += reader.take(Uint8Array.of(byte)).length;
  assert.equal(frames, 1);
  assert.ok(copied < 4 * all.length, `${copied} bytes were copied for ${all.length}`);
});

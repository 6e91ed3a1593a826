import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import {
  BULK_SECRET_BYTES,
  laneKeys,
  MAX_RECORD_PAYLOAD_BYTES,
  RecordOpener,
  RecordSealer,
} from '../../../src/network/transport/sealed-records.ts';

const SECRET = new Uint8Array(BULK_SECRET_BYTES).fill(5);

/** The node that offers a lane seals, the other one opens. */
function pair() {
  const [offers, accepts] = [laneKeys(SECRET, true), laneKeys(SECRET, false)];
  return { sealer: new RecordSealer(offers.seal), opener: new RecordOpener(accepts.open), offers, accepts };
}

function read(opener: RecordOpener, ...chunks: readonly Uint8Array[]): [string, string][] {
  return chunks.flatMap((chunk) => [...opener.feed(chunk)].map(({ kind, payload }) => [kind, payload.toString()]));
}

test('records arrive unchanged, independent of their chunks', () => {
  for (const size of [1, 2, 3, 7, 1000]) {
    const { sealer, opener } = pair();
    const bytes = Buffer.concat([
      sealer.seal('hello'),
      sealer.seal('data', Buffer.from('first')),
      sealer.seal('data', Buffer.from('second')),
      sealer.seal('end'),
    ]);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    assert.deepEqual(read(opener, ...chunks), [
      ['hello', ''],
      ['data', 'first'],
      ['data', 'second'],
      ['end', ''],
    ]);
  }
});

test('a record has a maximum size', () => {
  const { sealer, opener } = pair();
  const payload = randomBytes(MAX_RECORD_PAYLOAD_BYTES);
  const [record] = [...opener.feed(sealer.seal('data', payload))];
  assert.deepEqual(record?.payload, payload);
  assert.throws(() => sealer.seal('data', Buffer.alloc(MAX_RECORD_PAYLOAD_BYTES + 1)), RangeError);
});

test('a changed, omitted, repeated or swapped record does not open', () => {
  const records = () => {
    const { sealer, opener } = pair();
    const [a, b] = [sealer.seal('data', Buffer.from('a')), sealer.seal('data', Buffer.from('b'))];
    return { a, b, opener };
  };
  const wrong = { code: 'protocol_error' };
  {
    const { b, opener } = records();
    assert.throws(() => read(opener, b), wrong);
  }
  {
    const { a, opener } = records();
    assert.throws(() => read(opener, a, a), wrong);
  }
  const { length } = records().a;
  for (let bit = 0; bit < 8 * length; bit++) {
    const { a, b, opener } = records();
    a[bit >> 3] = (a[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    // If the length was increased, the opener waits for more bytes before it fails.
    assert.throws(() => read(opener, a, b, Buffer.alloc(256 * 1024)), wrong, `bit ${bit}`);
  }
});

test('each direction and each secret has its own keys', () => {
  const { offers, accepts } = pair();
  assert.deepEqual(offers.seal, accepts.open);
  assert.deepEqual(offers.open, accepts.seal);
  const other = laneKeys(new Uint8Array(BULK_SECRET_BYTES).fill(6), true);
  const all = [offers.seal, offers.open, other.seal, other.open].map((key) => Buffer.from(key).toString('hex'));
  assert.equal(new Set(all).size, 4);
  // A reflected record does not open.
  assert.throws(() => read(new RecordOpener(offers.open), new RecordSealer(offers.seal).seal('hello')), {
    code: 'protocol_error',
  });
});

test('invalid lengths are rejected before anything is buffered', () => {
  const { opener } = pair();
  for (const length of [0, 16, MAX_RECORD_PAYLOAD_BYTES + 18]) {
    const head = Buffer.alloc(3);
    head.writeUIntBE(length, 0, 3);
    assert.throws(() => [...new RecordOpener(SECRET).feed(head)], { code: 'protocol_error' }, `${length}`);
  }
  assert.deepEqual(read(opener, new Uint8Array()), []);
});

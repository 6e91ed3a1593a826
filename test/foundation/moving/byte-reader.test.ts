import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import * as fc from 'fast-check';
import { ByteReader } from '../../../src/foundation/moving/byte-reader.ts';

/** A source of chunks that counts requests. */
function counted(pieces: readonly string[]): { source: Iterable<Uint8Array>; asked: () => number } {
  let asked = 0;
  function* source(): Generator<Uint8Array> {
    for (const piece of pieces) {
      asked += 1;
      yield Buffer.from(piece);
    }
  }
  return { source: source(), asked: () => asked };
}

function reader(...pieces: string[]): ByteReader {
  return new ByteReader(counted(pieces).source);
}

test('reads the requested number of bytes from any chunks, and fewer at the end', async () => {
  const bytes = reader('ab', '', 'cdef', 'g', 'h');
  assert.equal((await bytes.read(3)).toString(), 'abc');
  assert.equal((await bytes.read(0)).toString(), '');
  assert.equal((await bytes.read(3)).toString(), 'def');
  assert.equal((await bytes.read(9)).toString(), 'gh');
  assert.equal((await bytes.read(9)).toString(), '');
});

test('requests no more chunks than necessary', async () => {
  const { source, asked } = counted(['ab', 'cd', 'ef']);
  const bytes = new ByteReader(source);
  await bytes.read(2);
  assert.equal(asked(), 1);
  await bytes.read(1);
  assert.equal(asked(), 2);
  assert.equal(await bytes.atEnd(), false);
  assert.equal((await bytes.readSome(9)).toString(), 'd');
  assert.equal(asked(), 2);
  assert.equal(await bytes.atEnd(), false);
  assert.equal(asked(), 3);
});

test('does not ask again behind the end', async () => {
  let asked = 0;
  const next = async () => {
    asked += 1;
    return { done: true, value: undefined } as const;
  };
  const bytes = new ByteReader({ [Symbol.asyncIterator]: () => ({ next }) });
  assert.equal(await bytes.atEnd(), true);
  assert.equal((await bytes.read(1)).length, 0);
  assert.equal(asked, 1);
});

test('passes on buffered chunks first', async () => {
  const bytes = reader('', 'abc', 'de');
  assert.equal((await bytes.readSome(2)).toString(), 'ab');
  assert.equal((await bytes.readSome(9)).toString(), 'c');
  assert.equal((await bytes.readSome(2)).toString(), 'de');
  assert.equal((await bytes.readSome(2)).toString(), '');
});

test('reads a line with its break, and no longer one', async () => {
  const bytes = reader('a', 'b\nc\n', '\nlast');
  assert.equal((await bytes.readLine(3))?.toString(), 'ab\n');
  assert.equal((await bytes.readLine(9))?.toString(), 'c\n');
  assert.equal((await bytes.readLine(1))?.toString(), '\n');
  assert.equal(await bytes.readLine(9), null, 'no break comes');
  assert.equal((await bytes.read(9)).toString(), 'last');
  assert.equal(await reader('ab\n').readLine(2), null);
  assert.equal(await reader('ab', 'cd').readLine(3), null);
  const { source, asked } = counted(['abc', 'd\n']);
  assert.equal(await new ByteReader(source).readLine(3), null);
  assert.equal(asked(), 1, 'does not wait for more of a line that is too long');
});

test('knows the end, also behind empty pieces', async () => {
  const bytes = reader('a', '', '');
  assert.equal(await bytes.atEnd(), false);
  await bytes.read(1);
  assert.equal(await bytes.atEnd(), true);
  assert.equal(await reader().atEnd(), true);
});

test('returns all bytes in order for any requests and chunks', async () => {
  const step = fc.record({ how: fc.constantFrom('take', 'some', 'line'), count: fc.integer({ min: 1, max: 6 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.stringMatching(/^[ab\n]{0,4}$/)), fc.array(step), async (pieces, steps) => {
      const bytes = reader(...pieces);
      const all = pieces.join('');
      let got = '';
      for (const { how, count } of steps) {
        const rest = all.slice(got.length);
        const part =
          how === 'take'
            ? await bytes.read(count)
            : how === 'some'
              ? await bytes.readSome(count)
              : await bytes.readLine(count);
        if (how === 'take') assert.equal(part?.length, Math.min(count, rest.length));
        if (how === 'some') assert.ok(part !== null && part.length <= count && part.length > 0 === (rest !== ''));
        if (how === 'line') {
          const end = rest.slice(0, count).indexOf('\n');
          assert.equal(part?.toString(), end < 0 ? undefined : rest.slice(0, end + 1));
        }
        got += part?.toString() ?? '';
      }
      got += (await bytes.read(all.length)).toString();
      assert.equal(got, all);
      assert.equal(await bytes.atEnd(), true);
    }),
    { seed: 1, numRuns: 200 },
  );
});

test('a long line in many pieces is copied once', async () => {
  const pieces = Array.from({ length: 2000 }, () => 'x'.repeat(100));
  const concat = Buffer.concat.bind(Buffer);
  let copied = 0;
  const counting = mock.method(Buffer, 'concat', (list: readonly Uint8Array[], length?: number) => {
    copied += list.reduce((total, piece) => total + piece.length, 0);
    return concat(list, length);
  });
  try {
    assert.equal(await reader(...pieces).readLine(1_000_000), null, 'it does not end');
    assert.equal((await reader(...pieces, 'y\nz').readLine(1_000_000))?.length, 200_002);
  } finally {
    counting.mock.restore();
  }
  assert.ok(copied <= 400_010, `${copied} bytes`);
});

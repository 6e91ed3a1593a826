import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { toBase64 } from '../../src/foundation/base64.ts';

const PIECE_BYTES = 384 * 1024;

for (const length of [0, 1, 2, 3, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 2])
  test(`encodes ${length} bytes like Node, at any offset`, () => {
    const memory = randomBytes(length + 7);
    const bytes = new Uint8Array(memory.buffer, memory.byteOffset + 7, length);
    assert.equal(toBase64(bytes), Buffer.from(bytes).toString('base64'));
  });

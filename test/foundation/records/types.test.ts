import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isCustomType,
  isRecordType,
  maxPayloadBytes,
  maxRecordBytes,
  maxTtlSeconds,
  RECORD,
} from '../../../src/foundation/records/types.ts';

const DAY_S = 86_400;

test('lists the known types, and types for applications', () => {
  const bytes = Array.from({ length: 257 }, (_, type) => type);
  const custom = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
  assert.deepEqual(bytes.filter(isCustomType), custom);
  assert.deepEqual(bytes.filter(isRecordType), [1, ...custom, 0x10, 0x11, 0x80]);
  assert.equal(isCustomType(2.5), false);
});

test('limits content and lifetime of each record type', () => {
  const { endpoints, profile, customLast, service, encryptionKeys, note } = RECORD;
  const limits = [endpoints, service, encryptionKeys, profile, customLast, note].map((type) => [
    maxPayloadBytes(type),
    maxRecordBytes(type),
    maxTtlSeconds(type) / DAY_S,
  ]);
  assert.deepEqual(limits, [
    [1000, 1000, 30],
    [1000, 1000, 30],
    [1000, 1000, 30],
    [4096, 5120, 30],
    [4096, 5120, 30],
    [34_816, 35_840, 7],
  ]);
});

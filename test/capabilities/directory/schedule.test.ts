import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goesOut, renewalTime, retryDelay } from '../../../src/capabilities/directory/publishing.ts';
import type { PublicationRow } from '../../../src/foundation/store/publications.ts';
import { newIdentity } from '../../support/identities.ts';

const { aid } = newIdentity();
const AT = 1_000_000_000;

function row(change: Partial<PublicationRow> = {}): PublicationRow {
  const plain = { aid, type: 1, name: '', payload: new Uint8Array(), ttl: 3600, seq: 1 };
  return { ...plain, publishedAt: AT, replicas: 8, dirty: 0, ...change };
}

test('a record is renewed at half of its lifetime, or up to a tenth earlier', () => {
  assert.equal(renewalTime([row()], 0), AT + 1_800_000);
  const latest = renewalTime([row()], 0.999999) ?? 0;
  assert.ok(latest >= AT + 1_620_000 && latest < AT + 1_621_000);
  assert.equal(renewalTime([row(), row({ ttl: 60 })], 0), AT + 30_000);
  assert.equal(renewalTime([], 0), null);
});

test('records that are nearly due are renewed too, fresh ones are not', () => {
  assert.equal(goesOut(row(), AT), false);
  assert.equal(goesOut(row(), AT + 1_439_000), false);
  assert.equal(goesOut(row(), AT + 1_440_000), true);
  assert.equal(goesOut(row({ publishedAt: null }), AT), true);
  assert.equal(goesOut(row({ dirty: 1 }), AT), true);
});

test('after the clock was set back, an agent still publishes', () => {
  assert.equal(goesOut(row(), AT - 1), true);
});

test('retry delays double up to two minutes', () => {
  assert.deepEqual(
    [1, 2, 3, 4, 7, 50].map((failures) => retryDelay(failures, 0)),
    [2000, 4000, 8000, 16_000, 120_000, 120_000],
  );
  assert.equal(retryDelay(1, 0.5), 1500);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MIGRATIONS } from '../../../src/foundation/store/migrations/index.ts';
import { type EntryFilter, pageQuery } from '../../../src/foundation/store/room-entries.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { newIdentity } from '../../support/identities.ts';

test('pages of entries are found by an index, whatever the filter', () => {
  const store = Store.open(':memory:', MIGRATIONS);
  const { aid } = newIdentity();
  const filters: EntryFilter[] = [
    {},
    { kind: 'msg' },
    { author: aid },
    { to: aid },
    { replyTo: '00'.repeat(32) },
    { sinceAt: 1, untilAt: 2 },
    { kind: 'msg', author: aid, sinceAt: 1, untilAt: 2, to: aid, replyTo: '00'.repeat(32) },
  ];
  for (const filter of filters) {
    const { sql, values } = pageQuery(1, 0, 100, 50, filter);
    const plan = store.all(`EXPLAIN QUERY PLAN ${sql}`, ...values).map((row) => String(row['detail']));
    assert.deepEqual(
      plan.filter((line) => line.startsWith('SCAN') || line.includes('TEMP B-TREE')),
      [],
      JSON.stringify([filter, plan]),
    );
  }
  store.close();
});

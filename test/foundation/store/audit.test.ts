import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AuditKind, AuditStore } from '../../../src/foundation/store/audit.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';

function entry(kind: AuditKind, at: number) {
  const reason = kind === 'refused' ? 'disabled' : null;
  return {
    kind,
    at,
    caller: testAid(1),
    nodeKey: null,
    address: null,
    method: reason === null ? 'GET' : null,
    path: reason === null ? '/status' : null,
    tools: [],
    status: null,
    reason,
  };
}

test('an entry is read as it was added, with its later tools and status', () => {
  const audit = new AuditStore(Store.open(':memory:', MIGRATIONS));
  assert.deepEqual([audit.lastRequest(), audit.lastRefusal()], [null, null]);
  const place = { nodeKey: 'ab', address: '10.0.0.1:9' };
  const write = { ...entry('write', 1), ...place, method: 'POST', path: '/mcp', tools: ['one', 'two'], status: 200 };
  const written = audit.add(write);
  assert.deepEqual(audit.lastRequest(), { ...write, id: written });
  const read = audit.add(entry('read', 2));
  const refused = audit.add(entry('refused', 3));
  assert.deepEqual(audit.lastRequest(), { ...entry('read', 2), id: read });
  assert.deepEqual(audit.lastRefusal(), { ...entry('refused', 3), id: refused });
  audit.addTool(read, 'one');
  audit.addTool(read, 'two');
  audit.setStatus(read, 404);
  assert.deepEqual(audit.page(9), [
    { ...entry('refused', 3), id: refused },
    { ...entry('read', 2), id: read, tools: ['one', 'two'], status: 404 },
    { ...write, id: written },
  ]);
});

test('each kind keeps its newest entries and does not displace other kinds', () => {
  const store = Store.open(':memory:', MIGRATIONS);
  const audit = new AuditStore(store);
  const first = audit.add(entry('write', 1));
  store.transaction(() => {
    for (let i = 0; i < 3_500; i++) audit.add(entry('read', 10 + i));
    for (let i = 0; i < 1_500; i++) audit.add(entry('refused', 10_000 + i), true);
    store.run(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5999)
       INSERT INTO admin_audit (kind, at, caller) SELECT 'write', 2, 'a' FROM n`,
    );
  });
  assert.equal(audit.page(1, first + 1)[0]?.at, 1);
  const last = audit.add(entry('write', 2));
  const count = (kind: AuditKind): unknown =>
    store.one('SELECT count(*) AS n FROM admin_audit WHERE kind = ?', kind)?.['n'];
  assert.deepEqual([count('read'), count('refused'), count('write')], [3_000, 1_000, 6_000]);
  assert.deepEqual(audit.page(1, first + 1), []);
  assert.equal(audit.lastRefusal()?.at, 11_499);
  assert.equal(audit.lastRequest()?.id, last);
});

test('pages go from the newest to the oldest without gaps', () => {
  const audit = new AuditStore(Store.open(':memory:', MIGRATIONS));
  for (let i = 1; i <= 7; i++) audit.add(entry(i % 2 === 0 ? 'read' : 'refused', i));
  const seen: number[] = [];
  let page = audit.page(3);
  while (page.length > 0) {
    seen.push(...page.map(({ at }) => at));
    page = audit.page(3, page.at(-1)?.id);
  }
  assert.deepEqual(seen, [7, 6, 5, 4, 3, 2, 1]);
});

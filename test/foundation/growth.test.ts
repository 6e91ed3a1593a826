/** No table and no field that strangers can fill is without a limit in docs/limits.md. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import { RECORD_STORE_MIGRATIONS } from '../../src/network/records/record-store.ts';
import { FIELDS, OWN, TABLES } from '../support/growth.ts';

const LIMITS = readFileSync('docs/limits.md', 'utf8').replaceAll(/\s+/g, ' ');
const FIELD = /#\w+(?:: [^=\n]+)? = new (?:Map|Set|Tally|SourceTally)[<(]/g;

function rows(reasons: Iterable<string>): string[] {
  return [...reasons].filter((one) => !one.startsWith(OWN) && !LIMITS.includes(one));
}

function tablesOf(migrations: readonly string[]): string[] {
  const store = Store.open(':memory:', migrations);
  const names = store.all`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'`;
  store.close();
  return names.map(({ name }) => String(name));
}

test('each table has a row in docs/limits.md, or strangers cannot fill it', () => {
  const named = Object.values(TABLES).flatMap((names) => names.split(' '));
  assert.deepEqual(named.toSorted(), [...tablesOf(MIGRATIONS), ...tablesOf(RECORD_STORE_MIGRATIONS)].toSorted());
  assert.deepEqual(rows(Object.keys(TABLES)), []);
});

test('each map of a file that strangers reach has a row in docs/limits.md, or strangers cannot fill it', () => {
  const files = ['network', 'capabilities', 'surfaces'].flatMap((folder) => globSync(`src/${folder}/**/*.ts`));
  const found = files.flatMap((file) => {
    const count = readFileSync(file, 'utf8').match(FIELD)?.length ?? 0;
    return count === 0 ? [] : [`${file.replaceAll('\\', '/').slice('src/'.length, -'.ts'.length)} ${count}`];
  });
  assert.deepEqual(Object.values(FIELDS).flat().toSorted(), found.toSorted());
  assert.deepEqual(rows(Object.keys(FIELDS)), []);
});

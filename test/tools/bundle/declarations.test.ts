import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memberOf } from '../../../src/foundation/json.ts';
import { operations } from '../../../src/operations/index.ts';
import { type Declaration, isOpen } from '../../../src/operations/operation.ts';
import { dataModule } from '../../../tools/bundle/declarations.ts';

test('the table of the bundled commands has everything that a client reads', async () => {
  const url = `data:text/javascript,${encodeURIComponent(dataModule(operations))}`;
  const { operations: data }: { operations: Record<string, Declaration> } = await import(url);
  const table: Readonly<Record<string, Declaration>> = operations;
  assert.deepEqual(Object.keys(data), Object.keys(table));
  for (const [name, one] of Object.entries(table)) {
    const other = data[name];
    assert.ok(other);
    for (const key of ['name', 'method', 'path', 'tag'] as const) assert.equal(other[key], one[key]);
    assert.equal(other.tool?.name, one.tool?.name);
    for (const part of ['params', 'query', 'body'] as const) {
      assert.deepEqual(Object.keys(other[part].properties), Object.keys(one[part].properties), `${name}: ${part}`);
      for (const [key, schema] of Object.entries(one[part].properties))
        for (const path of [['format'], ['items', 'format']])
          assert.equal(memberOf(other[part].properties[key], ...path), memberOf(schema, ...path), `${name}: ${key}`);
      assert.equal(isOpen(other[part]), isOpen(one[part]), `${name}: ${part}`);
    }
  }
});

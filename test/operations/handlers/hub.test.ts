/** Pages of the definitions that wait for the owner. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hubHandlers } from '../../../src/operations/handlers/hub.ts';
import type { CallContext } from '../../../src/operations/operation.ts';
import { testAid } from '../../support/agents.ts';

test('waiting definitions are listed in pages, the oldest first', async () => {
  const aid = testAid(1);
  const after = { title: '', description: '', input_schema: {}, output_schema: null, annotations: null };
  const change = (id: string, at: string) => ({ id, aid, tool: `bob/${id}`, at, before: null, after });
  const all = [
    change('b', '2026-01-01T00:00:00Z'),
    change('a', '2026-01-01T00:00:01Z'),
    change('c', '2026-01-02T00:00:00Z'),
  ];
  const unused = (): never => assert.fail();
  const hub = {
    changes: () => all,
    ...{
      sources: unused,
      add: unused,
      refresh: unused,
      remove: unused,
      decide: unused,
      find: unused,
      describe: unused,
    },
  };
  const { hubChanges } = hubHandlers({ hub, localAid: () => aid });
  const page = async (input: { readonly limit?: number; readonly cursor?: string }) => {
    const { changes, next_cursor } = await hubChanges(input, {} as CallContext);
    return { ids: changes.map(({ id }) => id), next_cursor };
  };
  assert.deepEqual(await page({}), { ids: ['b', 'a', 'c'], next_cursor: undefined });
  const { ids, next_cursor = '' } = await page({ limit: 2 });
  assert.deepEqual(ids, ['b', 'a']);
  // The first one was decided meanwhile.
  all.shift();
  assert.deepEqual(await page({ limit: 2, cursor: next_cursor }), { ids: ['c'], next_cursor: undefined });
});

/** The search of the hub: how often the tool is among the first five for keywords of a model. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Hub } from '../../../src/capabilities/hub/hub.ts';
import { SearchIndex } from '../../../src/capabilities/hub/search-index.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { HubStore } from '../../../src/foundation/store/hub.ts';
import { storeWithAgents } from '../../foundation/store/store-with-agents.ts';
import { type CatalogServer, catalog, searches } from '../../support/hub-catalog.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Searches of 100 that may miss their tool among the first results. */
const MAX_MISSED = 5;
const FIRST = 5;

const { signal } = new AbortController();

/** A hub that knows all agents of the catalog. */
function hubOfCatalog(t: TestContext) {
  const servers = catalog(14);
  const { store, aids } = storeWithAgents(1);
  const [local] = aids;
  assert.ok(local !== undefined);
  const byAid = new Map<Aid, CatalogServer>(servers.map((server) => [newIdentity().aid, server]));
  const hub = new Hub({
    clock: new TestClock(),
    log: silentLog,
    store: new HubStore(store),
    mcp: {
      list: async ({ remote }) => byAid.get(remote)?.tools ?? [],
      call: async () => ({}),
      stop: async () => {},
    },
    a2a: { list: async () => [], call: async () => ({}) },
    labels: () => Object.fromEntries([...byAid].map(([aid, { label }]) => [aid, label])),
    findAgents: async () => [],
    onHeld: () => {},
  });
  t.after(() => hub.stop());
  return {
    servers,
    find: async (query: string) => {
      const { tools } = await hub.find(local, { query, limit: FIRST, from: 'known' }, signal);
      return tools.map(({ tool: reference }) => reference);
    },
  };
}

test('the tool is among the first five of 4,172 for at least 95 of 100 searches with keywords', async (t) => {
  const { servers, find } = hubOfCatalog(t);
  assert.equal(servers.flatMap(({ tools }) => tools).length, 4172);
  const all = searches();
  assert.equal(new Set(all.map(({ query }) => query)).size, 100);
  const missed: string[] = [];
  for (const { query, server, tool } of all) {
    const isOne = (reference: string): boolean => reference.endsWith(`-${server}/${tool}`);
    assert.ok(servers.some(({ label, tools }) => tools.some(({ name }) => isOne(`${label}/${name}`))));
    const found = await find(query);
    if (!found.some(isOne)) missed.push(`${query} → ${found.join(', ')}`);
  }
  t.diagnostic(`${all.length - missed.length} of ${all.length}`);
  assert.ok(missed.length <= MAX_MISSED, missed.join('\n'));
});

test('copies of a tool at other agents come after other tools', async (t) => {
  const { find } = hubOfCatalog(t);
  const names = (await find('merge pull request')).map((reference) => reference.split('/')[1]);
  assert.equal(names.length, FIRST);
  assert.equal(new Set(names).size, FIRST);
});

test('the name of an agent in a search chooses its copy', async (t) => {
  const { find } = hubOfCatalog(t);
  for (const owner of ['work', 'nina', 'otto'])
    assert.equal((await find(`merge pull request ${owner}`))[0], `${owner}-github/merge_pull_request`);
});

function tool(id: number, name: string, description = '', agent = 'bob') {
  return { id, name, title: '', description, parameters: '', agent };
}

test('the tools of an agent are replaced as a whole', () => {
  const index = new SearchIndex();
  index.replace(1, [tool(1, 'pay bill'), tool(2, 'get weather')]);
  index.replace(2, [tool(3, 'pay rent')]);
  assert.deepEqual(
    index.search('pay').map(({ id }) => id),
    [1, 3],
  );
  index.replace(1, [tool(4, 'get weather')]);
  assert.deepEqual(
    index.search('pay').map(({ id }) => id),
    [3],
  );
  index.replace(2, []);
  assert.deepEqual(index.search('pay'), []);
  index.close();
});

test('a search in one agent is not limited by better matches of others', () => {
  const index = new SearchIndex();
  index.replace(
    1,
    Array.from({ length: 1000 }, (_, n) => tool(n + 2, 'pay bill')),
  );
  index.replace(2, [tool(1, 'look up', 'Shows who has to pay.')]);
  assert.ok(index.search('pay bill').every(({ id }) => id !== 1));
  assert.deepEqual(
    index.search('pay bill', 2).map(({ id }) => id),
    [1],
  );
  assert.deepEqual(index.search('pay bill', 3), []);
  index.close();
});

test('words of the index language have no meaning in a question', () => {
  const index = new SearchIndex();
  index.replace(1, [tool(1, 'pay bill'), tool(2, 'near place')]);
  for (const text of ['pay AND NOT bill', 'name:pay*', '"pay', 'NEAR(pay bill)', '^pay', 'pay -bill', '{pay} : (x)'])
    assert.ok(
      index.search(text).some(({ id }) => id === 1),
      text,
    );
  for (const text of ['', '"', '***', '\u0000', '((((', '12', 'x'.repeat(2000), 'a b '.repeat(500)]) index.search(text);
  assert.deepEqual(index.search('!!!'), []);
  index.close();
});

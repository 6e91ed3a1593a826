/** The search over 4,000 tools: how often the right tool is among the first five for questions as users put them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Hub } from '../../../src/capabilities/hub/hub.ts';
import { SearchIndex } from '../../../src/capabilities/hub/search-index.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { HubStore } from '../../../src/foundation/store/hub.ts';
import { storeWithAgents } from '../../foundation/store/store-with-agents.ts';
import { CATALOG_SERVERS, catalog, isRight, questions, TOOLS_PER_SERVER } from '../../support/hub-catalog.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Part of the questions whose tool must be among the first results. */
const AIM = 0.9;
const FIRST = 5;

const { signal } = new AbortController();

test('the right tool is among the first five of 4,000 for 90 % of 200 questions', async (t) => {
  const servers = catalog();
  assert.equal(servers.length, CATALOG_SERVERS);
  assert.ok(servers.every(({ tools }) => tools.length === TOOLS_PER_SERVER));
  const asked = questions();
  assert.deepEqual([asked.length, new Set(asked.map(({ text }) => text)).size], [200, 200]);
  for (const question of asked)
    assert.ok(
      servers.some((server) => server.tools.some((tool) => isRight(server, tool, question))),
      `no tool answers: ${question.text}`,
    );
  const { store, aids } = storeWithAgents(1);
  const [local] = aids;
  assert.ok(local !== undefined);
  const byAid = new Map<Aid, (typeof servers)[number]>(servers.map((server) => [newIdentity().aid, server]));
  const hub = new Hub({
    clock: new TestClock(),
    log: silentLog,
    store: new HubStore(store),
    mcp: {
      list: async ({ remote }) => byAid.get(remote)?.tools.map(({ tool }) => tool) ?? [],
      call: async () => ({}),
      stop: async () => {},
    },
    a2a: { list: async () => [], call: async () => ({}) },
    labels: () => Object.fromEntries([...byAid].map(([aid, { label }]) => [aid, label])),
    findAgents: async () => [],
    onHeld: () => {},
  });
  t.after(() => hub.stop());
  const missed: string[] = [];
  for (const question of asked) {
    const { tools } = await hub.find(local, { query: question.text, limit: FIRST, from: 'known' }, signal);
    const isFound = tools.some(({ tool: reference }) => {
      const [label = '', name = ''] = reference.split('/');
      const server = servers.find((one) => one.label === label);
      const tool = server?.tools.find((one) => one.tool.name === name);
      return server !== undefined && tool !== undefined && isRight(server, tool, question);
    });
    if (!isFound) missed.push(`${question.text} → ${tools.map(({ tool }) => tool).join(', ')}`);
  }
  t.diagnostic(`${asked.length - missed.length} of ${asked.length}`);
  assert.ok(missed.length <= asked.length * (1 - AIM), missed.join('\n'));
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

test('words of the index language have no meaning in a question', () => {
  const index = new SearchIndex();
  index.replace(1, [tool(1, 'pay bill'), tool(2, 'near place')]);
  for (const text of ['pay AND NOT bill', 'name:pay*', '"pay', 'NEAR(pay bill)', '^pay', 'pay -bill', '{pay} : (x)'])
    assert.ok(
      index.search(text).some(({ id }) => id === 1),
      text,
    );
  for (const text of ['', '"', '***', '\u0000', '((((', '12']) index.search(text);
  assert.deepEqual(index.search('!!!'), []);
  index.close();
});

test('a request that does not mention removal prefers other tools', () => {
  const index = new SearchIndex();
  index.replace(1, [tool(1, 'delete invoice', 'Delete an invoice.'), tool(2, 'send invoice', 'Send an invoice.')]);
  assert.equal(index.search('the invoice for Weber')[0]?.id, 2);
  assert.equal(index.search('remove the invoice')[0]?.id, 1);
  index.close();
});

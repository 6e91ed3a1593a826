/**
 * Programs that do not know svcd find agents: through the AI Catalog of a node, and through a search of the network.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';

interface Entry {
  readonly identifier: string;
  readonly type: string;
  readonly url?: string;
  readonly score?: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly trustManifest: { readonly identity: string };
}

test('an agent of one node is in its catalog, and another node finds it by text', async (t) => {
  const far = await TestDaemon.start();
  t.after(() => far.stop());
  const near = await TestDaemon.start({ bootstrap: [far.dhtAddress] });
  t.after(() => near.stop());
  await Promise.all([ready(near), ready(far)]);
  const aid = await far.newAgent();
  const offer = { services: ['weather.forecast'], name: 'Skies', brief: 'Forecasts for tomorrow.', protocols: ['mcp'] };
  await far.call('POST', `/agents/${aid}/services`, offer);
  await far.call('POST', `/agents/${aid}/publish`);
  const { did } = await far.call<{ did: string }>('GET', `/did/${aid}`);

  const answer = await fetch(`${far.api}/.well-known/ai-catalog.json`);
  assert.match(String(answer.headers.get('content-type')), /^application\/ai-catalog\+json(?:;|$)/);
  const { entries }: { entries: Entry[] } = JSON.parse(await answer.text());
  assert.deepEqual(
    entries.map(({ type }) => type),
    ['application/mcp-server-card+json', 'application/ai-registry+json'],
  );
  assert.deepEqual(
    [entries[0]?.identifier, entries[0]?.trustManifest.identity],
    [`urn:air:${did}:mcp:weather.forecast`, did],
  );
  assert.equal(entries[1]?.url, `${far.api}/ard/`);

  // The catalog gives the URL of the other node's search.
  const catalog: { entries: Entry[] } = JSON.parse(
    await (await fetch(`${near.api}/.well-known/ai-catalog.json`)).text(),
  );
  const [registry, ...more] = catalog.entries;
  assert.equal(more.length, 0);
  const search = async (body: object): Promise<{ results: Entry[]; pageToken?: string; referrals?: [] }> => {
    const found = await fetch(`${registry?.url}search`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(found.status, 200);
    return JSON.parse(await found.text());
  };
  const text = 'find me a tool for a weather forecast';
  await eventually('the agent in the search', async () => (await search({ query: { text } })).results.length > 0);
  const { results, referrals, pageToken } = await search({ query: { text }, federation: 'referrals', pageSize: 1 });
  assert.deepEqual(
    results.map(({ metadata, score, trustManifest }) => [metadata['aid'], score, trustManifest.identity]),
    [[aid, 100, did]],
  );
  assert.deepEqual([referrals, pageToken], [[], undefined]);
  const here = await near.call<{ results: Entry[] }>('POST', '/search', { query: { text } });
  assert.deepEqual(here.results, results);
  const type = ['application/a2a-agent-card+json'];
  assert.deepEqual((await search({ query: { text, filter: { type } } })).results, []);
});

test('a node without a network answers a search without delay, and refuses an invalid search', async () => {
  await using alone = await TestDaemon.start();
  for (const path of ['/search', '/ard/search']) {
    const query = { text: 'weather forecast tools' };
    assert.deepEqual((await alone.call<{ results: Entry[] }>('POST', path, { query })).results, []);
    await assert.rejects(alone.call('POST', path, { query: {} }), /invalid_request|400/);
    const foreign = await alone.request('POST', path, { query }, { origin: 'https://example.org' });
    assert.equal(foreign.status, 403);
  }
});

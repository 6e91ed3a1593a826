import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CatalogOffer,
  entriesOf,
  fits,
  namesIn,
  scoreOf,
  wordsOf,
} from '../../../../src/capabilities/directory/catalog.ts';
import { MAX_NAMES_PER_CALL } from '../../../../src/foundation/domain/directory.ts';
import { testAid } from '../../../support/agents.ts';
import { newIdentity } from '../../../support/identities.ts';

const { aid } = newIdentity();
const OFFER: CatalogOffer = {
  aid,
  service: 'lang.translate',
  name: 'Translator',
  brief: 'Translates German and French.',
  protocols: ['A2A'],
  tags: ['fast', 'free'],
  meta: {},
};
const API = 'http://127.0.0.1:2121';

test('a search text is split into service names, words, and pairs of words', () => {
  assert.deepEqual(wordsOf('Please find me a Weather forecast, weather!'), ['weather', 'forecast']);
  assert.deepEqual(namesIn('find lang.translate for German'), ['lang.translate', 'german']);
  assert.deepEqual(namesIn('weather forecast'), ['weather.forecast', 'forecast.weather', 'weather', 'forecast']);
  assert.deepEqual(namesIn('the agent that can'), []);
  // Service names cannot contain these characters.
  assert.deepEqual(namesIn('天気'), []);
  const many = namesIn('one two three four five six seven eight nine ten');
  assert.equal(many.length, MAX_NAMES_PER_CALL);
  assert.equal(many[0], 'one.two');
});

test('the score of an offer is the part of the search text that it contains', () => {
  assert.equal(scoreOf(OFFER, 'lang.translate'), 100);
  assert.equal(scoreOf(OFFER, 'french german'), 100);
  assert.equal(scoreOf(OFFER, 'german spanish'), 50);
  assert.equal(scoreOf(OFFER, 'weather'), 0);
  assert.equal(scoreOf(OFFER, 'find me an agent'), 0);
});

test('a filter matches by path: one of the values per path, case-insensitive', () => {
  const [entry] = entriesOf(OFFER, API);
  assert.ok(entry);
  const did = entry.trustManifest.identity;
  for (const filter of [
    {},
    { tags: ['slow', 'FREE'] },
    { type: 'application/a2a-agent-card+json', capabilities: ['lang.translate'] },
    { 'trustManifest.identityType': 'did', 'metadata.aid': aid, publisher: [did] },
  ])
    assert.ok(fits(entry, filter), JSON.stringify(filter));
  for (const filter of [
    { tags: [] },
    { tags: ['slow'] },
    { tags: ['fast'], type: ['application/mcp-server-card+json'] },
    { trustManifest: 'did' },
    { 'metadata.nothing': 'x' },
    { constructor: 'x' },
    { publisher: 'example.com' },
  ])
    assert.ok(!fits(entry, filter), JSON.stringify(filter));
});

test("an entry links to the card of its protocol through this node, and its identity is the agent's key", () => {
  const [a2a, ...others] = entriesOf(OFFER, API);
  assert.equal(others.length, 0);
  const did = a2a?.trustManifest.identity ?? '';
  assert.match(did, /^did:key:z6Mk/);
  assert.deepEqual(a2a, {
    identifier: `urn:air:${did}:a2a:lang.translate`,
    displayName: 'Translator',
    type: 'application/a2a-agent-card+json',
    url: `${API}/aid/${aid}/.well-known/agent-card.json`,
    description: 'Translates German and French.',
    tags: ['fast', 'free'],
    capabilities: ['lang.translate'],
    metadata: {
      aid,
      service: 'lang.translate',
      record: `${API}/resolve/${aid}/records`,
      card: `${API}/resolve/${aid}/card`,
    },
    trustManifest: { identity: did, identityType: 'did' },
  });
  const meta = { url: 'https://example.com/tools/mcp' };
  const both = entriesOf({ ...OFFER, protocols: ['a2a', 'MCP'], meta }, API);
  assert.deepEqual(
    both.map(({ identifier }) => identifier),
    [`urn:air:${did}:a2a:lang.translate`, `urn:air:${did}:mcp:lang.translate`],
  );
  assert.deepEqual(both[1]?.data?.['remotes'], [{ type: 'streamable-http', url: `${API}/aid/${aid}/tools/mcp` }]);
  const [plain] = entriesOf({ ...OFFER, name: '', protocols: [], service: null, aid: testAid(1) }, API);
  assert.deepEqual([plain?.displayName, plain?.type], [testAid(1), 'application/vnd.svcd.service+json']);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OfferedService } from '../../../../src/capabilities/directory/cards.ts';
import { Catalog } from '../../../../src/capabilities/directory/catalog.ts';
import type { DiscoveryEntry } from '../../../../src/capabilities/directory/discovery.ts';
import { summarize } from '../../../../src/capabilities/directory/summaries.ts';
import { SvcError } from '../../../../src/foundation/errors.ts';
import type { Aid } from '../../../../src/foundation/identity/aid.ts';
import { newIdentity } from '../../../support/identities.ts';
import { settle } from '../../../support/link-world.ts';
import { TestClock } from '../../../support/test-clock.ts';

const [node, here, held, there] = [newIdentity().aid, newIdentity().aid, newIdentity().aid, newIdentity().aid];
const OFFER: OfferedService = {
  service: 'lang.translate',
  name: 'Here',
  brief: '',
  protocols: ['a2a'],
  tags: [],
  meta: null,
  ttl: 3600,
  replicas: 1,
  expiresAt: null,
};

function foreign(service: string): DiscoveryEntry {
  const rest = {
    name: 'There',
    brief: 'German',
    protocols: [],
    tags: [],
    meta: {},
    seq: 1,
    publishedAt: 0,
    expiresAt: 0,
  };
  return { aid: there, service, ...rest };
}

function catalogWith(discover: (name: string) => Promise<readonly DiscoveryEntry[]>) {
  const clock = new TestClock();
  const catalog = new Catalog({
    nodeAid: node,
    clock,
    directory: {
      summary: (aid: Aid) => ({ ...summarize(undefined, [], clock.now()), published: aid !== held }),
      services: () => [OFFER],
    },
    agents: () => [here, held],
    discover: ({ services: [name = ''], signal }) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new SvcError('timeout')));
        discover(name).then(resolve, reject);
      }),
    api: () => 'http://127.0.0.1:2121',
  });
  return { clock, catalog };
}

const found = (entries: readonly { readonly metadata: Readonly<Record<string, string>> }[]) =>
  entries.map(({ metadata }) => metadata['aid']);

test('the catalog lists published agents, and no held ones', () => {
  const { catalog } = catalogWith(async () => []);
  const { entries, host } = catalog.manifest();
  assert.deepEqual(found(entries), [here, node]);
  assert.match(host.identifier, /^did:key:/);
});

test('a search merges local and network results, best first, in pages', async () => {
  const { catalog } = catalogWith(async (name) => (name === 'lang.detect' ? [foreign(name)] : []));
  const search = (offset: number, pageSize: number) =>
    catalog.search({ text: 'detect lang german', filter: {}, offset, pageSize });
  const whole = await search(0, 10);
  assert.deepEqual(found(whole.results), [there, here]);
  assert.deepEqual(
    whole.results.map(({ score, source }) => [score, source]),
    [
      [100, 'http://127.0.0.1:2121/ard/'],
      [33, 'http://127.0.0.1:2121/ard/'],
    ],
  );
  assert.equal(whole.next, null);
  const first = await search(0, 1);
  assert.deepEqual([found(first.results), first.next], [[there], 1]);
  const second = await search(1, 1);
  assert.deepEqual([found(second.results), second.next], [[here], null]);
});

test('a name that fails or times out does not affect the results of other names', async () => {
  const { catalog, clock } = catalogWith((name) => {
    if (name === 'lang') return Promise.reject(new SvcError('network_not_ready'));
    return name === 'detect.lang' ? new Promise(() => {}) : Promise.resolve([foreign('lang.detect')]);
  });
  const search = catalog.search({ text: 'lang detect', filter: {}, offset: 0, pageSize: 10 });
  await settle();
  clock.advance(3000);
  assert.deepEqual(found((await search).results), [there, here]);
});

test('an aborted client ends its search', async () => {
  const { catalog } = catalogWith(() => new Promise(() => {}));
  const client = new AbortController();
  const search = catalog.search({ text: 'lang', filter: {}, offset: 0, pageSize: 10, signal: client.signal });
  client.abort();
  await assert.rejects(search, { code: 'timeout' });
});

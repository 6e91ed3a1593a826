/** Finds agents by their services. */
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { discover, RecentServices, type Search } from '../../../src/capabilities/directory/discovery.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { MAX_NAMES_PER_CALL, MAX_PROVIDERS } from '../../../src/foundation/domain/directory.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { serviceKey } from '../../../src/foundation/records/keys.ts';
import { encodeServicePayload, type ServicePayload } from '../../../src/foundation/records/payloads.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { newIdentity, type TestIdentity } from '../../support/identities.ts';
import { type RecordDetails, testRecord } from '../../support/records.ts';
import { ScriptedRecords } from '../../support/scripted-records.ts';
import { TestClock } from '../../support/test-clock.ts';

const CARD: ServicePayload = {
  service: 'a',
  name: 'Ada',
  protocols: ['HTTP'],
  tags: ['de', 'fast'],
  brief: 'b',
  meta: '',
};

describe('discovery', () => {
  let clock: TestClock;
  let network: ScriptedRecords;

  beforeEach(() => {
    clock = new TestClock();
    network = new ScriptedRecords(clock);
  });

  function recordOf(owner: TestIdentity, card: Partial<ServicePayload>, details: RecordDetails = {}): SignedRecord {
    const payload = encodeServicePayload({ ...CARD, ...card });
    return testRecord(owner, RECORD.service, { timestamp: unixSeconds(clock), payload, ...details });
  }

  async function offer(card: Partial<ServicePayload> = {}, details: RecordDetails = {}): Promise<Aid> {
    const owner = newIdentity();
    await network.put(serviceKey(card.service ?? 'a'), recordOf(owner, card, details));
    return owner.aid;
  }

  const find = async (search: Partial<Search> = {}): Promise<Aid[]> => {
    const found = await discover(network, { services: ['a'], protocols: [], tags: [], limit: 100, ...search });
    return found.map(({ aid }) => aid);
  };

  test('an entry contains the fields of the card', async () => {
    const aid = await offer({ meta: '{"x":1}' }, { ttl: 60, seq: 7 });
    const [entry] = await discover(network, { services: ['a'], protocols: [], tags: [], limit: 1 });
    const { meta: _meta, ...card } = CARD;
    const now = unixSeconds(clock);
    assert.deepEqual(entry, { ...card, aid, meta: { x: 1 }, seq: 7, publishedAt: now, expiresAt: now + 60 });
  });

  test('an entry must have one of the protocols and all of the tags, case-insensitive', async () => {
    const aid = await offer();
    assert.deepEqual(await find({ protocols: ['ftp', ' http '], tags: ['FAST', 'de'] }), [aid]);
    assert.deepEqual(await find({ protocols: ['ftp'] }), []);
    assert.deepEqual(await find({ tags: ['de', 'slow'] }), []);
  });

  test('the newest entries come first, up to the limit', async () => {
    const now = unixSeconds(clock);
    const [old, young] = [await offer({}, { timestamp: now - 9 }), await offer({}, { timestamp: now })];
    const middle = await offer({}, { timestamp: now - 5 });
    assert.deepEqual(await find(), [young, middle, old]);
    assert.deepEqual(await find({ limit: 2 }), [young, middle]);
  });

  test('records with the same timestamp have the same order on every node', async () => {
    const aids = await Promise.all([offer(), offer(), offer(), offer()]);
    const records = network.kept.toSorted((a, b) => Buffer.compare(a.encoded, b.encoded));
    assert.deepEqual(
      await find(),
      records.map(({ aid }) => aid),
    );
    assert.equal(aids.length, 4);
  });

  test('only the newest card of an agent counts, and only under the requested name', async () => {
    const owner = newIdentity();
    const old = recordOf(owner, { name: 'old' }, { seq: 1 });
    const newer = recordOf(owner, { name: 'new' }, { seq: 2 });
    const other = recordOf(newIdentity(), { service: 'b' });
    const noCard = testRecord(newIdentity(), RECORD.endpoints, { payload: old.payload });
    for (const list of [
      [old, newer, other, noCard],
      [newer, old],
    ]) {
      const found = await discover({ list: async () => list }, { services: ['a'], protocols: [], tags: [], limit: 9 });
      assert.deepEqual(
        found.map(({ name }) => name),
        ['new'],
      );
    }
  });

  test('each name is looked up once, up to a maximum number of names', async () => {
    const names = Array.from({ length: MAX_NAMES_PER_CALL + 1 }, (_, i) => `s${i}`);
    const aid = await offer({ service: 's1' });
    assert.deepEqual(await find({ services: [...names.slice(1), 's1'] }), [aid]);
    assert.equal(network.reads, MAX_NAMES_PER_CALL);
    await assert.rejects(find({ services: names }), { code: 'invalid_request' });
    await assert.rejects(find({ services: ['No Name'] }), { code: 'bad_service_name' });
  });

  test('a lookup requests a limited number of providers, and can be aborted', async () => {
    const asked: unknown[] = [];
    const list = (...[, types, options]: Parameters<ScriptedRecords['list']>) => {
      asked.push(types, options?.limit);
      return new Promise<never>(() => {});
    };
    const client = new AbortController();
    const search = { services: ['a'], protocols: [], tags: [], limit: 9, signal: client.signal };
    const found = discover({ list }, search);
    client.abort();
    await assert.rejects(found, { code: 'cancelled' });
    assert.deepEqual(asked, [[RECORD.service], MAX_PROVIDERS]);
  });

  test('recent services are those in stored records and in results, each once, until they expire', async () => {
    const [ann, ben] = [newIdentity(), newIdentity()];
    const now = unixSeconds(clock);
    const stored = [
      recordOf(ann, { service: 'a' }, { timestamp: now - 5, seq: 1, ttl: 60 }),
      recordOf(ann, { service: 'b' }, { timestamp: now - 3, seq: 1, ttl: 60 }),
      testRecord(ben, RECORD.service, { timestamp: now, payload: Buffer.from('no card') }),
    ];
    const recent = new RecentServices({ recent: (type) => (type === RECORD.service ? stored : []) }, { clock });
    const shown = () => recent.list(10).map(({ aid, service, seq }) => [aid === ann.aid ? 'ann' : 'ben', service, seq]);
    assert.deepEqual(shown(), [
      ['ann', 'b', 1],
      ['ann', 'a', 1],
    ]);
    await network.put(serviceKey('a'), recordOf(ann, { service: 'a' }, { timestamp: now - 1, seq: 2, ttl: 60 }));
    await network.put(serviceKey('a'), recordOf(ben, { service: 'a' }, { timestamp: now, seq: 1, ttl: 600 }));
    recent.note(await discover(network, { services: ['a'], protocols: [], tags: [], limit: 10 }));
    assert.deepEqual(shown(), [
      ['ben', 'a', 1],
      ['ann', 'a', 2],
      ['ann', 'b', 1],
    ]);
    assert.equal(recent.list(2).length, 2);
    clock.jump(61_000);
    assert.deepEqual(shown(), [['ben', 'a', 1]]);
  });
});

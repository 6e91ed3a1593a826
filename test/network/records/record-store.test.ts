import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { agentKey, mailboxKey, serviceKey } from '../../../src/foundation/records/keys.ts';
import { MAX_RECORDS_PER_KEY, RECORD } from '../../../src/foundation/records/types.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import {
  MAX_NOTES_PER_SENDER,
  RECORD_STORE_MIGRATIONS,
  RecordStore,
} from '../../../src/network/records/record-store.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { endpointRecord, noteRecord, serviceRecord, testRecord } from '../../support/records.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

const MIB = 1024 * 1024;
const ALL = { types: [] };

function memory(clock: TestClock, maxBytes = MIB): RecordStore {
  return new RecordStore({ file: ':memory:', maxBytes }, { clock, log: silentLog });
}

test('stored records survive a restart', (t) => {
  const clock = new TestClock();
  const file = join(temporaryDirectory(t), 'records.db');
  const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock) });
  const first = new RecordStore({ file, maxBytes: MIB }, { clock, log: silentLog });
  assert.deepEqual(first.offer(key, record, 'a'), { code: 'kept' });
  first.saveNodes([{ host: '192.0.2.1', port: 4121 }]);
  const usage = first.usage();
  first.close();
  const second = new RecordStore({ file, maxBytes: MIB }, { clock, log: silentLog });
  t.after(() => second.close());
  assert.deepEqual(second.usage(), usage);
  assert.deepEqual(second.savedNodes(), [{ host: '192.0.2.1', port: 4121 }]);
  const [row] = second.find(key, ALL, 10);
  assert.ok(row);
  assert.deepEqual(Buffer.from(second.encoded(row) ?? []), Buffer.from(record.encoded));
});

test('a record that is offered again is not due for replication as early, and keeps its place', () => {
  const clock = new TestClock();
  const store = memory(clock);
  const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock), ttl: 7 * 86_400 });
  assert.deepEqual(store.offer(key, record, 'a'), { code: 'kept' });
  const first = unixSeconds(clock);
  clock.jump(1000_000);
  const isDue = (heardBefore: number): boolean => store.replicationQueue.due('', heardBefore, first) !== null;
  assert.deepEqual([isDue(first), isDue(first + 1)], [false, true]);
  assert.deepEqual(store.offer(key, record, 'b'), { code: 'kept' });
  assert.deepEqual([isDue(first + 1), isDue(first + 1000), isDue(first + 1001)], [false, false, true]);
  assert.equal(store.usage().records, 1);
});

test('expired records are hidden immediately, and removed in batches', () => {
  const clock = new TestClock();
  const store = memory(clock);
  const key = serviceKey('lang.translate');
  const timestamp = unixSeconds(clock);
  for (let i = 0; i < 620; i++)
    store.offer(key, serviceRecord('lang.translate', newIdentity(), { timestamp, ttl: 60 }).record, 'a');
  const late = serviceRecord('lang.translate', newIdentity(), { timestamp, ttl: 3600 }).record;
  store.offer(key, late, 'a');
  clock.jump(61_000);
  assert.equal(store.find(key, ALL, 1000).length, 1);
  assert.equal(store.summarize(key, ALL).count, 1);
  assert.equal(store.usage().records, 621);
  assert.equal(store.purge(), true);
  assert.equal(store.usage().records, 121);
  assert.equal(store.purge(), false);
  assert.equal(store.usage().records, 1);
  assert.ok(store.usage().bytes < 1500);
});

test('the publisher with the largest share is evicted first, starting with its records that expire soonest', () => {
  const clock = new TestClock();
  const store = memory(clock, 20_000);
  const timestamp = unixSeconds(clock);
  const hog = Array.from({ length: 60 }, (_, i) => endpointRecord(newIdentity(), { timestamp, ttl: 1000 + i }));
  for (const { key, record } of hog) assert.equal(store.offer(key, record, 'hog').code, 'kept');
  const held = hog.filter(({ key }) => store.find(key, ALL, 1).length === 1);
  assert.deepEqual(held, hog.slice(-held.length), 'the records that expire soonest are evicted');
  assert.ok(store.usage().bytes <= 20_000);
  const small = endpointRecord(newIdentity(), { timestamp, ttl: 10 });
  assert.equal(store.offer(small.key, small.record, 'small').code, 'kept');
  for (let i = 0; i < 60; i++) {
    const { key, record } = endpointRecord(newIdentity(), { timestamp, ttl: 5000 });
    store.offer(key, record, 'hog');
  }
  assert.equal(store.find(small.key, ALL, 1).length, 1, 'the publisher with a small share keeps its record');
});

test('a record is rejected if it would evict only records that expire later', () => {
  const clock = new TestClock();
  const store = memory(clock, 5000);
  const timestamp = unixSeconds(clock);
  for (let i = 0; i < 20; i++) {
    const { key, record } = endpointRecord(newIdentity(), { timestamp, ttl: 3600 });
    store.offer(key, record, 'a');
  }
  const short = endpointRecord(newIdentity(), { timestamp, ttl: 60 });
  assert.deepEqual(store.offer(short.key, short.record, 'a'), { code: 'full' });
  const huge = noteRecord(newIdentity(), 6000, { timestamp });
  assert.deepEqual(store.offer(huge.key, huge.record, 'b'), { code: 'full' });
});

test('a replacement that does not fit leaves the old record in place', () => {
  const clock = new TestClock();
  const store = memory(clock, 3000);
  const timestamp = unixSeconds(clock);
  const owner = newIdentity();
  const key = agentKey(owner.aid);
  store.offer(key, testRecord(owner, RECORD.profile, { timestamp, seq: 1 }), 'a');
  const large = testRecord(owner, RECORD.profile, { timestamp, seq: 2, payload: new Uint8Array(4000) });
  assert.deepEqual(store.offer(key, large, 'a'), { code: 'full' });
  assert.equal(store.find(key, ALL, 1)[0]?.seq, 1);
  assert.equal(store.usage().records, 1);
});

test('after the limit was lowered, one new record evicts a bounded number of old ones', (t) => {
  const clock = new TestClock();
  const file = join(temporaryDirectory(t), 'records.db');
  const timestamp = unixSeconds(clock);
  const before = new RecordStore({ file, maxBytes: MIB }, { clock, log: silentLog });
  for (let i = 0; i < 300; i++) {
    const { key, record } = endpointRecord(newIdentity(), { timestamp });
    assert.equal(before.offer(key, record, 'a').code, 'kept');
  }
  before.close();
  const store = new RecordStore({ file, maxBytes: 5000 }, { clock, log: silentLog });
  t.after(() => store.close());
  const { key, record } = endpointRecord(newIdentity(), { timestamp });
  assert.equal(store.offer(key, record, 'b').code, 'full');
  assert.equal(store.usage().records, 300 - 256);
  assert.equal(store.offer(key, record, 'b').code, 'kept');
  assert.ok(store.usage().bytes <= 5000);
});

test('a service has up to a thousand records, shared between their publishers', () => {
  const clock = new TestClock();
  const store = memory(clock, 64 * MIB);
  const timestamp = unixSeconds(clock);
  const key = serviceKey('lang.translate');
  const offer = (publisher: string) =>
    store.offer(key, serviceRecord('lang.translate', newIdentity(), { timestamp }).record, publisher).code;
  for (let i = 0; i < MAX_RECORDS_PER_KEY; i++) assert.equal(offer('hog'), 'kept');
  assert.equal(offer('hog'), 'full');
  assert.equal(offer('other'), 'kept');
  assert.equal(store.summarize(key, ALL).count, MAX_RECORDS_PER_KEY);
});

test('all addresses of a network together get no larger share of a key or the store than another network', () => {
  const clock = new TestClock();
  const store = memory(clock, MIB);
  const timestamp = unixSeconds(clock);
  const key = serviceKey('lang.translate');
  const offer = (publisher: string) =>
    store.offer(key, serviceRecord('lang.translate', newIdentity(), { timestamp }).record, publisher).code;
  for (let i = 0; i < MAX_RECORDS_PER_KEY; i++) assert.equal(offer(`192.0.2.${i % 200}`), 'kept');
  // Each of those addresses has five records, so if only sources counted, this address could store only five.
  for (let i = 0; i < MAX_RECORDS_PER_KEY / 2; i++) assert.equal(offer('198.51.100.1'), 'kept', `${i}`);
  assert.equal(offer('198.51.100.1'), 'full');
  const small = memory(clock, 20_000);
  const put = (publisher: string, ttl = 1000) => {
    const { key: at, record } = endpointRecord(newIdentity(), { timestamp, ttl });
    return small.offer(at, record, publisher).code;
  };
  for (let i = 0; i < 60; i++) put(`192.0.2.${i}`);
  const { records } = small.usage();
  for (let i = 0; i < Math.floor(records / 2) - 1; i++) assert.equal(put('198.51.100.1', 10), 'kept', `${i}`);
});

test('the shares of a key are counted once, and again after a failed change', (t) => {
  const clock = new TestClock();
  const store = memory(clock, 64 * MIB);
  const timestamp = unixSeconds(clock);
  const key = serviceKey('lang.translate');
  const offer = (publisher: string) =>
    store.offer(key, serviceRecord('lang.translate', newIdentity(), { timestamp }).record, publisher).code;
  for (let i = 0; i < MAX_RECORDS_PER_KEY; i++) assert.equal(offer(i % 4 === 0 ? 'small' : 'large'), 'kept');
  const counted = t.mock.method(Store.prototype, 'all');
  for (let i = 0; i < 50; i++) assert.equal(offer('other'), 'kept');
  assert.equal(counted.mock.callCount(), 0);
  const failing = t.mock.method(Store.prototype, 'run', () => assert.fail('the disk is full'));
  assert.throws(() => offer('other'), /the disk is full/);
  failing.mock.restore();
  // `small` has 250 records and `other` 50. `large` is evicted until it has no more than `other`.
  for (let i = 0; i < 325; i++) assert.equal(offer('other'), 'kept');
  assert.equal(offer('other'), 'full');
  assert.equal(counted.mock.callCount(), 1);
});

test('a sending node can store up to a hundred notes per recipient', () => {
  const clock = new TestClock();
  const store = memory(clock, 64 * MIB);
  const timestamp = unixSeconds(clock);
  const [recipient, other] = [newIdentity(), newIdentity()];
  const offer = (to: typeof recipient, sender: string) => {
    const note = noteRecord(to, 100, { timestamp });
    return store.offer(note.key, note.record, sender).code;
  };
  for (let i = 0; i < MAX_NOTES_PER_SENDER; i++) assert.equal(offer(recipient, 'spammer'), 'kept');
  assert.equal(offer(recipient, 'spammer'), 'full');
  assert.equal(offer(recipient, 'friend'), 'kept');
  assert.equal(offer(other, 'spammer'), 'kept');
  assert.equal(store.summarize(mailboxKey(recipient.aid), ALL).count, MAX_NOTES_PER_SENDER + 1);
});

test('pages and parts contain every record exactly once', () => {
  const clock = new TestClock();
  const store = memory(clock);
  const timestamp = unixSeconds(clock);
  const key = serviceKey('lang.translate');
  for (let i = 0; i < 300; i++)
    store.offer(key, serviceRecord('lang.translate', newIdentity(), { timestamp }).record, String(i));
  const paged: string[] = [];
  let from = 0;
  let pages = 0;
  do {
    const page = store.page(key, ALL, from, 20_000);
    paged.push(...page.records.map((r) => Buffer.from(r).toString('hex')));
    from = page.next;
    pages++;
  } while (from !== 0);
  assert.ok(pages > 5);
  assert.equal(paged.length, 300);
  assert.equal(new Set(paged).size, 300);
  const parts = Array.from({ length: 7 }, (_, index) => store.find(key, { types: [], part: { index, of: 7 } }, 1000));
  assert.equal(new Set(parts.flat().map(({ id }) => id)).size, 300);
  assert.equal(parts.flat().length, 300);
});

test('nodes with the same records have the same digest, independent of their order of arrival', () => {
  const clock = new TestClock();
  const [a, b] = [memory(clock), memory(clock)];
  const timestamp = unixSeconds(clock);
  const key = serviceKey('lang.translate');
  const records = Array.from({ length: 5 }, () => serviceRecord('lang.translate', newIdentity(), { timestamp }).record);
  for (const record of records) a.offer(key, record, 'x');
  for (const record of records.toReversed()) b.offer(key, record, 'y');
  assert.deepEqual(a.summarize(key, ALL), b.summarize(key, ALL));
  b.offer(key, serviceRecord('lang.translate', newIdentity(), { timestamp }).record, 'y');
  assert.notDeepEqual(a.summarize(key, ALL), b.summarize(key, ALL));
});

test('after a newer delegation of an agent, new records under the older one are rejected', () => {
  const clock = new TestClock();
  const store = memory(clock);
  const timestamp = unixSeconds(clock);
  const old = newIdentity(timestamp - 100);
  const renewed = delegateAnew(old.master, timestamp - 50);
  const key = agentKey(old.aid);
  const at = (owner: typeof old, type: number, seq: number) => testRecord(owner, type, { timestamp, seq });
  assert.equal(store.offer(key, at(old, RECORD.profile, 1), 'a').code, 'kept');
  assert.equal(store.offer(key, at(renewed, RECORD.endpoints, 2), 'a').code, 'kept');
  // An attacker with the old key tries another type, and a higher seq of an existing type.
  assert.deepEqual(store.offer(key, at(old, 0x05, 3), 'attacker'), { code: 'newer', held: null });
  assert.deepEqual(store.offer(key, at(old, RECORD.profile, 9), 'attacker'), { code: 'newer', held: null });
  assert.equal(store.offer(key, at(renewed, RECORD.profile, 4), 'a').code, 'kept');
});

test('a damaged database is set aside, and a new one is created', (t) => {
  const clock = new TestClock();
  const file = join(temporaryDirectory(t), 'records.db');
  const warned: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void warned.push(message) };
  const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock) });
  for (const damage of [
    () => writeFileSync(file, 'this is not a database, and it is longer than a database header'.repeat(20)),
    () => {
      const pages = readFileSync(file);
      writeFileSync(file, pages.fill(0xff, 4096));
    },
  ]) {
    const before = new RecordStore({ file, maxBytes: MIB }, { clock, log });
    assert.equal(before.offer(key, record, 'a').code, 'kept');
    before.close();
    damage();
    const again = new RecordStore({ file, maxBytes: MIB }, { clock, log });
    assert.equal(again.usage().records, 0);
    assert.equal(again.offer(key, record, 'a').code, 'kept');
    again.close();
    assert.ok(existsSync(`${file}.damaged`));
  }
  assert.equal(warned.length, 2);
  const newer = Store.open(file, RECORD_STORE_MIGRATIONS);
  newer.run('PRAGMA user_version = 99');
  newer.close();
  assert.throws(() => new RecordStore({ file, maxBytes: MIB }, { clock, log }), { code: 'store_corrupt' });
});

test('a record damaged on disk is removed, and can be stored again', (t) => {
  const clock = new TestClock();
  const file = join(temporaryDirectory(t), 'records.db');
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void warnings.push(message) };
  const open = () => new RecordStore({ file, maxBytes: MIB }, { clock, log });
  const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock) });
  const reads: readonly ((store: RecordStore) => void)[] = [
    (store) => {
      const [row] = store.find(key, ALL, 9);
      assert.ok(row);
      assert.equal(store.encoded(row), null);
    },
    (store) => assert.deepEqual(store.page(key, ALL, 0, MIB).records, []),
    (store) => assert.equal(store.newer(key, record), null),
  ];
  for (const read of reads) {
    const first = open();
    assert.deepEqual(first.offer(key, record, 'a'), { code: 'kept' });
    first.close();
    const database = Store.open(file, RECORD_STORE_MIGRATIONS);
    database.run`UPDATE records SET encoded = zeroblob(length(encoded))`;
    database.close();
    const store = open();
    read(store);
    assert.deepEqual([store.find(key, ALL, 9).length, store.usage().records, warnings.splice(0).length], [0, 0, 1]);
    assert.deepEqual(store.offer(key, record, 'a'), { code: 'kept' });
    const [row] = store.find(key, ALL, 9);
    assert.ok(row);
    assert.deepEqual(Buffer.from(store.encoded(row) ?? []), Buffer.from(record.encoded));
    store.close();
  }
});

test('recent records are of one type, the last stored first, and have not expired', () => {
  const clock = new TestClock();
  const store = memory(clock);
  const timestamp = unixSeconds(clock);
  const [old, short, last] = [600, 60, 600].map((ttl) =>
    serviceRecord('lang.translate', newIdentity(), { timestamp, ttl }),
  );
  assert.ok(old && short && last);
  for (const { key, record } of [old, short, endpointRecord(newIdentity(), { timestamp }), last])
    assert.deepEqual(store.offer(key, record, 'a'), { code: 'kept' });
  const found = (limit: number) => store.recent(RECORD.service, limit).map(({ aid }) => aid);
  assert.deepEqual(found(9), [last.record.aid, short.record.aid, old.record.aid]);
  assert.deepEqual(found(1), [last.record.aid]);
  clock.jump(61_000);
  assert.deepEqual(found(9), [last.record.aid, old.record.aid]);
});

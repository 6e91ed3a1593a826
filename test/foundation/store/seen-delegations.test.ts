import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { MetaStore } from '../../../src/foundation/store/meta.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { SeenDelegations } from '../../../src/foundation/store/seen-delegations.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

test('the newest delegation of an agent survives a restart and never goes back', async (t) => {
  const file = join(temporaryDirectory(t), 'svcd.db');
  const clock = new TestClock();
  const { aid } = newIdentity();
  let store = Store.open(file, MIGRATIONS);
  let seen = new SeenDelegations({ store, clock, log: silentLog });
  assert.equal(seen.newest(aid), 0);
  seen.note(aid, 100);
  assert.equal(seen.newest(aid), 100, 'known before the write');
  clock.advance(60_000);
  seen.note(aid, 50);
  assert.equal(seen.newest(aid), 100);
  await seen.stop();
  store.close();
  store = Store.open(file, MIGRATIONS);
  seen = new SeenDelegations({ store, clock, log: silentLog });
  assert.equal(seen.newest(aid), 100);
  seen.note(aid, 200);
  await seen.stop();
  assert.equal(clock.timers, 0);
  assert.equal(new SeenDelegations({ store, clock, log: silentLog }).newest(aid), 200);
  store.close();
});

test('an older delegation does not replace a pending one', async () => {
  const clock = new TestClock();
  const { aid } = newIdentity();
  const store = Store.open(':memory:', MIGRATIONS);
  const seen = new SeenDelegations({ store, clock, log: silentLog });
  assert.equal(seen.newest(aid), 0);
  seen.note(aid, 100);
  seen.note(aid, 50);
  assert.deepEqual([seen.newest(aid), clock.timers], [100, 1]);
  clock.advance(60_000);
  assert.equal(clock.timers, 0);
  assert.equal(store.one('SELECT issued_at FROM seen_delegations')?.['issued_at'], 100);
  await seen.stop();
});

test('the oldest pending agents above 100,000 are dropped', () => {
  const clock = new TestClock();
  const store = Store.open(':memory:', MIGRATIONS);
  const seen = new SeenDelegations({ store, clock, log: silentLog });
  // Not real AIDs, because generating the keys would take seconds.
  const agent = (n: number) => `aid1${n}` as Aid;
  for (let n = 0; n <= 100_000; n++) seen.note(agent(n), 7);
  store.one('PRAGMA query_only = ON');
  clock.advance(60_000);
  assert.deepEqual([seen.newest(agent(0)), seen.newest(agent(1)), seen.newest(agent(100_000))], [0, 7, 7]);
});

test('no delegation is lost while the disk fails temporarily', async () => {
  const clock = new TestClock();
  const { aid } = newIdentity();
  const store = Store.open(':memory:', MIGRATIONS);
  const seen = new SeenDelegations({ store, clock, log: silentLog });
  seen.note(aid, 100);
  store.one('PRAGMA query_only = ON');
  clock.advance(60_000);
  store.one('PRAGMA query_only = OFF');
  const written = (): number => Number(store.one('SELECT count(*) AS n FROM seen_delegations')?.['n']);
  assert.equal(written(), 0);
  assert.equal(seen.newest(aid), 100);
  clock.advance(60_000);
  assert.equal(written(), 1);
  await seen.stop();
  assert.equal(clock.timers, 0);
  store.close();
});

test('120,000 strangers do not evict a delegation of a known agent', () => {
  const clock = new TestClock();
  const store = Store.open(':memory:', MIGRATIONS);
  const seen = new SeenDelegations({ store, clock, log: silentLog });
  const [named, labelled, called, neighbour, quiet] = [
    'aid1named',
    'aid1label',
    'aid1called',
    'aid1near',
    'aid1quiet',
  ] as Aid[];
  assert.ok(named !== undefined && labelled !== undefined && called !== undefined);
  assert.ok(neighbour !== undefined && quiet !== undefined);
  store.run`INSERT INTO access_subjects (subject, policy, salt) VALUES ('node', 'deny', x'00')`;
  store.run`
    INSERT INTO access_entries (id, subject, list, aid, created_at) VALUES ('1', 'node', 'allow', ${named}, 0)`;
  new MetaStore(store).set('address_book', { aliases: { [labelled]: 'a' }, favorites: [] });
  const meet = (issuedAt: number): void => {
    seen.note(named, issuedAt, '192.0.2.1');
    seen.note(labelled, issuedAt, '192.0.2.1');
    seen.note(called, issuedAt);
    seen.note(neighbour, issuedAt, '192.0.2.1');
    clock.advance(60_000);
  };
  meet(1);
  meet(2);
  seen.note(quiet, 2, '198.51.100.1');
  for (let n = 0; n < 120_000; n++) {
    seen.note(`aid1${n}` as Aid, 9, '192.0.2.1');
    if (n % 40_000 === 0) clock.advance(60_000);
  }
  clock.advance(60_000);
  for (const aid of [named, labelled, called, neighbour, quiet]) assert.equal(seen.newest(aid), 2, aid);
  const rows = Number(store.one('SELECT count(*) AS n FROM seen_delegations')?.['n']);
  assert.ok(rows <= 30_000, `${rows} rows`);
  store.close();
});

import assert from 'node:assert/strict';
import { cpSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLog } from '../../../src/foundation/log.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { MetaStore } from '../../../src/foundation/store/meta.ts';
import { MARK_PERIOD_MS, RollbackGuard } from '../../../src/foundation/store/rollback-guard.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

async function open(directory: string) {
  const clock = new TestClock();
  const store = Store.open(join(directory, 'a.db'), MIGRATIONS);
  store.reserveJournal();
  const meta = new MetaStore(store);
  const output: string[] = [];
  const log = { ...silentLog, error: (_fields: object, message: string) => void output.push(message) };
  const guard = new RollbackGuard(join(directory, 'number'), { store, meta, clock, log });
  await guard.start();
  const stop = async (): Promise<void> => {
    await guard.stop();
    store.close();
  };
  return { clock, store, meta, guard, output, stop };
}

/** The files after a crash that follows one durable and one ordinary change. */
async function crashed(t: TestContext): Promise<string> {
  const [before, after] = [temporaryDirectory(t), temporaryDirectory(t)];
  const { clock, meta, store, stop } = await open(before);
  store.durableTransaction(() => meta.set('lasting', 1));
  await clock.run(0);
  meta.set('other', 1);
  await clock.run(MARK_PERIOD_MS);
  meta.set('last', 1);
  cpSync(before, after, { recursive: true });
  await stop();
  return after;
}

/** The state at the next start. */
async function found(directory: string) {
  const { guard, meta, output, stop } = await open(directory);
  const values = ['lasting', 'other', 'last'].filter((key) => meta.get(key) === 1);
  await stop();
  const next = await open(directory);
  assert.equal(next.guard.isRolledBack, guard.isRolledBack, 'the next start finds the same until the owner confirms');
  next.guard.confirm();
  assert.equal(next.guard.isRolledBack, false);
  await next.stop();
  const last = await open(directory);
  assert.equal(last.guard.isRolledBack, false, 'confirmed');
  await last.stop();
  return { isRolledBack: guard.isRolledBack, output: output.length, values };
}

const WHOLE = { isRolledBack: false, output: 0, values: ['lasting', 'other', 'last'] };
const LOST = { isRolledBack: true, output: 1, values: ['lasting'] };

test('a missing, empty or damaged journal is detected and does not undo durable changes', async (t) => {
  const harm: Record<string, (journal: string) => void> = {
    gone: (journal) => rmSync(journal),
    empty: (journal) => truncateSync(journal),
    damaged: (journal) => writeFileSync(journal, 'x', { flag: 'r+' }),
  };
  for (const [name, damage] of Object.entries(harm)) {
    const directory = await crashed(t);
    rmSync(join(directory, 'a.db-shm'), { force: true });
    damage(join(directory, 'a.db-wal'));
    assert.deepEqual(await found(directory), LOST, name);
  }
});

test('a crash alone is not reported, even between the two writes of the counter', async (t) => {
  assert.deepEqual(await found(await crashed(t)), WHOLE);
  const directory = await crashed(t);
  rmSync(join(directory, 'number'));
  assert.deepEqual(await found(directory), WHOLE);
  const ended = temporaryDirectory(t);
  for (let i = 0; i < 3; i++) {
    const { guard, stop } = await open(ended);
    assert.equal(guard.isRolledBack, false);
    await stop();
  }
});

test('an old copy of the database is detected', async (t) => {
  const directory = temporaryDirectory(t);
  const { stop } = await open(directory);
  await stop();
  const copy = join(temporaryDirectory(t), 'copy.db');
  cpSync(join(directory, 'a.db'), copy);
  const later = await open(directory);
  later.meta.set('other', 1);
  await later.stop();
  cpSync(copy, join(directory, 'a.db'));
  assert.deepEqual(await found(directory), { isRolledBack: true, output: 1, values: [] });
});

test('changes lost after a confirmation are detected again', async (t) => {
  const directory = temporaryDirectory(t);
  const copy = join(temporaryDirectory(t), 'copy.db');
  await (await open(directory)).stop();
  cpSync(join(directory, 'a.db'), copy);
  for (let i = 0; i < 2; i++) {
    const { guard, meta, stop } = await open(directory);
    guard.confirm();
    meta.set('other', 1);
    await stop();
    cpSync(copy, join(directory, 'a.db'));
    const { isRolledBack } = await found(directory);
    assert.equal(isRolledBack, true);
  }
});

test('a replaced key or service does not return with a lost journal', async (t) => {
  const [directory, after] = [temporaryDirectory(t), temporaryDirectory(t)];
  const { store, stop } = await open(directory);
  const agents = new AgentStore(store);
  const { delegation: signed } = newIdentity();
  const put = (key: number, serviceTcp: string) => {
    const delegation = { ...signed, operationalKey: new Uint8Array(32).fill(key) };
    agents.put({ keyName: 'agent', delegation, serviceTcp, registeredAt: 1 });
    return delegation.agent;
  };
  put(1, '127.0.0.1:1');
  for (const [key, service] of [
    [2, '127.0.0.1:1'],
    [2, '127.0.0.1:2'],
  ] as const) {
    const aid = put(key, service);
    rmSync(after, { recursive: true });
    cpSync(directory, after, { recursive: true });
    for (const suffix of ['-wal', '-shm']) rmSync(join(after, `a.db${suffix}`), { force: true });
    const lost = await open(after);
    const found = new AgentStore(lost.store).get(aid);
    assert.deepEqual([found?.operationalKey[0], found?.serviceTcp], [key, service]);
    await lost.stop();
  }
  await stop();
});

test('an unchanged database is not written', async (t) => {
  const { clock, store, stop } = await open(temporaryDirectory(t));
  const { changes } = store;
  await clock.run(10 * MARK_PERIOD_MS);
  assert.equal(store.changes, changes);
  await stop();
});

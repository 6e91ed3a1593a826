import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Releases } from '../../src/capabilities/update/releases.ts';
import type { Supervisor } from '../../src/capabilities/update/types.ts';
import { Life } from '../../src/daemon/life.ts';
import { buildUpdater } from '../../src/daemon/update.ts';
import { DataDir } from '../../src/foundation/data-dir/data-dir.ts';
import { Logger } from '../../src/foundation/logger.ts';
import { MetaStore } from '../../src/foundation/store/meta.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import { VERSION } from '../../src/foundation/version.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TestClock } from '../support/test-clock.ts';

function setUp(t: TestContext, supervisor: Supervisor | null = null) {
  const clock = new TestClock();
  const path = temporaryDirectory(t);
  const dataDir = DataDir.open({ path, version: VERSION }, { clock });
  const store = Store.open(':memory:', MIGRATIONS);
  t.after(() => {
    store.close();
    dataDir.close();
  });
  const log = new Logger({ level: 'error', format: 'json' }, { clock, destination: { write: () => {} } });
  const life = new Life();
  const updater = buildUpdater({ life, clock, log, dataDir, meta: new MetaStore(store) }, {}, supervisor);
  return { updater, life, path };
}

test('a checkout is not updated, even with a supervisor, and the message explains how to update', async (t) => {
  const switched: string[] = [];
  const { updater } = setUp(t, { switchTo: (version) => void switched.push(version), restart: () => {} });
  assert.match(updater.disabled, /git pull/);
  await updater.check();
  updater.apply();
  await updater.stop();
  assert.deepEqual(updater.status(), {
    currentVersion: VERSION,
    latestVersion: null,
    updateAvailable: false,
    lastCheckAt: null,
    managed: false,
    state: 'idle',
    lastError: '',
  });
  assert.deepEqual(switched, []);
});

test('the remains of an interrupted update are removed at the start', async (t) => {
  const { life, path } = setUp(t);
  const releases = new Releases(path);
  releases.open();
  const staging = releases.stage();
  mkdirSync(join(staging, 'half'), { recursive: true });
  assert.ok(existsSync(staging));
  await life.begin();
  assert.ok(!existsSync(staging));
  await life.end();
});

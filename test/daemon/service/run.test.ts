import assert from 'node:assert/strict';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { superviseDaemon } from '../../../src/daemon/service/supervisor.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { readDaemonInfo } from '../../../src/foundation/data-dir/daemon-info.ts';
import { DataDir } from '../../../src/foundation/data-dir/data-dir.ts';
import { eventually } from '../../support/eventually.ts';
import { type Behaviour, writeFakeDaemon } from '../../support/fake-daemon.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** A data directory, and a function that supervises a small program instead of svcd. */
function setUp(t: TestContext) {
  const directory = temporaryDirectory(t);
  const dataDir = join(directory, 'data');
  // Remove the signal listeners, which normally end with the process of a service.
  const before = SIGNALS.map((signal) => new Set(process.listeners(signal)));
  t.after(() => {
    for (const [i, signal] of SIGNALS.entries())
      for (const listener of process.listeners(signal))
        if (before[i]?.has(listener) === false) process.removeListener(signal, listener);
  });
  const supervise = (behaviour: Behaviour): Promise<number> =>
    superviseDaemon(dataDir, writeFakeDaemon(join(directory, behaviour), '1.0.0', behaviour), ['--data-dir', dataDir]);
  return { dataDir, supervise };
}

test('a service uses its data directory alone, and exits with its daemon', async (t) => {
  const { dataDir, supervise } = setUp(t);
  const running = supervise('good');
  const { pid } = await eventually('the daemon', () => readDaemonInfo(dataDir) ?? undefined);
  await assert.rejects(supervise('good'), { code: 'already_running', message: /Another service/ });
  process.kill(pid, 'SIGTERM');
  assert.equal(await running, 0);
  assert.equal(await supervise('ends'), 1, 'the directory is free again, with the exit code of the daemon');
});

test('the data directory is created with owner-only access', async (t) => {
  const { dataDir, supervise } = setUp(t);
  await supervise('ends');
  assert.equal(statSync(dataDir).mode & 0o777, 0o700);
});

test('a service does not start while a daemon is running', async (t) => {
  const { dataDir, supervise } = setUp(t);
  mkdirSync(dataDir, { mode: 0o700 });
  const held = DataDir.open({ path: dataDir, version: '1.0.0' }, { clock: systemClock });
  await assert.rejects(supervise('good'), { code: 'already_running' });
  held.close();
  assert.equal(await supervise('ends'), 1);
});

test('a signal to the service stops the daemon', async (t) => {
  const { dataDir, supervise } = setUp(t);
  const before = new Set(process.listeners('SIGTERM'));
  const running = supervise('good');
  await eventually('the daemon', () => readDaemonInfo(dataDir) ?? undefined);
  // Only call the service's listeners. The test runner has some too.
  for (const listener of process.listeners('SIGTERM')) if (!before.has(listener)) listener('SIGTERM');
  assert.equal(await running, 0);
});

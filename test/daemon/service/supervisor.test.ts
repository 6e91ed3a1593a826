import assert from 'node:assert/strict';
import { chownSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { Releases } from '../../../src/capabilities/update/releases.ts';
import { DatabaseSnapshot } from '../../../src/daemon/service/snapshot.ts';
import { ServiceSupervisor } from '../../../src/daemon/service/supervisor.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { readDaemonInfo } from '../../../src/foundation/data-dir/daemon-info.ts';
import { eventually } from '../../support/eventually.ts';
import { type Behaviour, writeFakeDaemon } from '../../support/fake-daemon.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

function setUp(t: TestContext) {
  const directory = temporaryDirectory(t);
  const dataDir = join(directory, 'data');
  mkdirSync(dataDir);
  const releases = new Releases(dataDir);
  releases.open();
  const program = writeFakeDaemon(join(directory, 'installed'), '1.0.0', 'good');
  const database = new DatabaseSync(join(dataDir, 'svcd.db'));
  database.exec("PRAGMA user_version = 3; CREATE TABLE things (name TEXT); INSERT INTO things VALUES ('mine')");
  database.close();
  let stopped: Promise<number> | null = null;
  const world = {
    dataDir,
    releases,
    release: (version: string, behaviour: Behaviour) => writeFakeDaemon(releases.pathOf(version), version, behaviour),
    start: (version = '1.0.0', startLimitMs = 60_000, alone = false): ServiceSupervisor => {
      const environment = { PATH: process.env['PATH'] };
      const args = ['--data-dir', dataDir];
      const supervisor = new ServiceSupervisor(
        {
          dataDir,
          installed: { version, program },
          node: process.execPath,
          args,
          environment,
          alone,
          startLimitMs,
          probationMs: 200,
          probeEveryMs: 50,
        },
        {
          releases,
          snapshot: new DatabaseSnapshot(dataDir, join(releases.directory, '.before')),
          clock: systemClock,
          say: () => {},
        },
      );
      const ended = supervisor.run();
      stopped = ended;
      t.after(async () => {
        supervisor.stop();
        await ended;
      });
      return supervisor;
    },
    ended: () => stopped,
    /** Waits until a version is ready. */
    serves: (version: string) =>
      eventually(`${version} serves`, async () => {
        const info = readDaemonInfo(dataDir);
        if (info?.version !== version || info.api_addr === null) return false;
        return fetch(`http://${info.api_addr}/`).then(
          (response) => response.ok,
          () => false,
        );
      }),
    ask: async (version: string): Promise<void> => {
      // Wait for the file of the next process, not the previous one.
      const address = readDaemonInfo(dataDir)?.api_addr ?? '';
      rmSync(join(dataDir, 'daemon.json'));
      await fetch(`http://${address}/switch/${version}`);
    },
    outcome: (version: string) =>
      eventually(`the result of ${version}`, () => {
        const { last, trial } = releases.read();
        return trial === null && last?.version === version && last;
      }),
    things: (): unknown => {
      const open = new DatabaseSync(join(dataDir, 'svcd.db'));
      const rows = open.prepare('SELECT name FROM things').all();
      open.close();
      return rows.map((row) => row['name']);
    },
  };
  return world;
}

test('a release that works takes over and is used after a restart', async (t) => {
  const world = setUp(t);
  world.release('1.1.0', 'good');
  const supervisor = world.start();
  await world.serves('1.0.0');
  await world.ask('1.1.0');
  assert.equal((await world.outcome('1.1.0')).outcome, 'ok');
  await world.serves('1.1.0');
  supervisor.stop();
  assert.equal(await world.ended(), 0);
  rmSync(join(world.dataDir, 'daemon.json'));
  world.start();
  await world.serves('1.1.0');
});

test('the daemon is restarted on request', async (t) => {
  const world = setUp(t);
  world.start();
  await world.serves('1.0.0');
  const before = readDaemonInfo(world.dataDir);
  assert.ok(before !== null);
  await fetch(`http://${before.api_addr}/restart`);
  await eventually('another process is ready', () => {
    const now = readDaemonInfo(world.dataDir);
    return now !== null && now.pid !== before.pid && now.version === '1.0.0';
  });
  await world.serves('1.0.0');
});

const BAD: [Behaviour, RegExp][] = [
  ['ends', /stopped during its start/],
  ['fails', /does not respond/],
  // Either the exit or the silence may be detected first.
  ['ends-later', /stopped during its trial|does not respond/],
  ['other-version', /different version/],
];
for (const [behaviour, reason] of BAD) {
  test(`a release that ${behaviour} is rolled back`, async (t) => {
    const world = setUp(t);
    world.release('1.1.0', behaviour);
    world.start();
    await world.serves('1.0.0');
    await world.ask('1.1.0');
    const { outcome, error } = await world.outcome('1.1.0');
    assert.equal(outcome, 'rolled_back');
    assert.match(error, reason);
    await world.serves('1.0.0');
    assert.equal(existsSync(join(world.releases.directory, '.before')), false);
  });
}

test('a release that never becomes ready is rolled back after its time limit', async (t) => {
  const world = setUp(t);
  world.release('1.1.0', 'hangs');
  world.start('1.0.0', 300);
  await world.serves('1.0.0');
  await world.ask('1.1.0');
  assert.match((await world.outcome('1.1.0')).error, /was not ready in time/);
  await world.serves('1.0.0');
});

test('a database with a changed schema is restored with the previous release', async (t) => {
  const world = setUp(t);
  world.release('1.1.0', 'ruins-database');
  world.start();
  await world.serves('1.0.0');
  await world.ask('1.1.0');
  assert.equal((await world.outcome('1.1.0')).outcome, 'rolled_back');
  assert.deepEqual(world.things(), ['mine']);
});

test('a crash during the trial leads to a rollback', async (t) => {
  const world = setUp(t);
  world.release('1.1.0', 'good');
  new DatabaseSnapshot(world.dataDir, join(world.releases.directory, '.before')).take();
  const changed = new DatabaseSync(join(world.dataDir, 'svcd.db'));
  changed.exec('PRAGMA user_version = 4; DELETE FROM things');
  changed.close();
  world.releases.write({ current: null, previous: null, trial: { to: '1.1.0' }, last: null });
  world.start();
  await world.serves('1.0.0');
  assert.equal(world.releases.read().last?.outcome, 'rolled_back');
  assert.deepEqual(world.things(), ['mine']);
});

test('older, equal and missing releases are rejected', async (t) => {
  for (const version of ['0.9.0', '1.0.0', '1.2.0', '..%2f..', 'nonsense']) {
    const world = setUp(t);
    world.release('0.9.0', 'good');
    world.release('1.0.0', 'good');
    world.start();
    await world.serves('1.0.0');
    const address = readDaemonInfo(world.dataDir)?.api_addr;
    await fetch(`http://${address}/switch/${version}`);
    assert.equal((await world.outcome(version)).outcome, 'rolled_back');
    assert.equal((await fetch(`http://${address}/`)).status, 200, 'the running release was not affected');
  }
});

test('a manually updated installation is preferred to an older release', async (t) => {
  const world = setUp(t);
  world.release('1.1.0', 'good');
  world.releases.write({ current: '1.1.0', previous: null, trial: null, last: null });
  writeFakeDaemon(join(world.dataDir, '..', 'installed'), '2.0.0', 'good');
  world.start('2.0.0');
  await world.serves('2.0.0');
});

test('a single file runs no releases of the package', async (t) => {
  const world = setUp(t);
  world.release('1.1.0', 'good');
  world.releases.write({ current: '1.1.0', previous: null, trial: null, last: null });
  world.start('1.0.0', 60_000, true);
  await world.serves('1.0.0');
});

test('a missing release or damaged state leads to the installed version', async (t) => {
  const world = setUp(t);
  world.releases.write({ current: '1.1.0', previous: null, trial: null, last: null });
  world.start();
  await world.serves('1.0.0');
});

test('a release behind a symbolic link or of another user is not run', async (t) => {
  const world = setUp(t);
  writeFakeDaemon(join(world.dataDir, '..', 'elsewhere'), '1.1.0', 'good');
  symlinkSync(join(world.dataDir, '..', 'elsewhere'), world.releases.pathOf('1.1.0'));
  assert.equal(world.releases.programOf('1.1.0'), null);
  const program = world.release('1.2.0', 'good');
  assert.equal(world.releases.programOf('1.2.0'), program);
  // Only root can change the owner of a file.
  if (process.getuid?.() === 0) {
    chownSync(program, 65_534, 65_534);
    assert.equal(world.releases.programOf('1.2.0'), null);
  }
  world.releases.write({ current: '1.1.0', previous: null, trial: null, last: null });
  world.start();
  await world.serves('1.0.0');
});

test('only the running and the previous release are kept', async (t) => {
  const world = setUp(t);
  for (const version of ['1.1.0', '1.2.0', '1.3.0']) world.release(version, 'good');
  world.start();
  await world.serves('1.0.0');
  for (const version of ['1.1.0', '1.2.0', '1.3.0']) {
    // A request removes daemon.json, so wait until the next release is ready.
    world.release(version, 'good');
    await world.ask(version);
    await world.outcome(version);
  }
  const kept = readdirSync(world.releases.directory).filter((name) => /^\d/.test(name));
  assert.deepEqual(kept.sort(), ['1.2.0', '1.3.0']);
});

test('the exit code is that of the daemon, so that the service manager restarts it', async (t) => {
  const world = setUp(t);
  writeFakeDaemon(join(world.dataDir, '..', 'installed'), '1.0.0', 'ends');
  world.start();
  assert.equal(await world.ended(), 1);
});

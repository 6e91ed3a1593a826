import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Releases } from '../../../src/capabilities/update/releases.ts';
import type { Release } from '../../../src/capabilities/update/types.ts';
import { UpdateJournal, Updater } from '../../../src/capabilities/update/updater.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { eventually } from '../../support/eventually.ts';
import { idle } from '../../support/idle.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

const NEXT: Release = { version: '1.1.0', tarball: new URL('http://127.0.0.1/x'), integrity: 'sha512-x', node: '*' };

function setUp(t: TestContext, options: { managed?: boolean; disabled?: string } = {}) {
  const clock = new TestClock();
  const releases = new Releases(temporaryDirectory(t));
  const memory = new Map<string, unknown>();
  const world = {
    clock,
    releases,
    looks: 0,
    full: false,
    answer: async (): Promise<{ version: string; release: Release | null }> => ({ version: '1.1.0', release: NEXT }),
    install: async (): Promise<void> => {},
    switched: [] as string[],
    updater: (currentVersion = '1.0.0') =>
      new Updater(
        { currentVersion, disabled: options.disabled ?? '' },
        {
          source: {
            latest: async () => {
              world.looks++;
              return world.answer();
            },
          },
          installer: { install: () => world.install() },
          releases,
          supervisor:
            options.managed === false
              ? null
              : { switchTo: (version) => void world.switched.push(version), restart: () => {} },
          store: {
            get: (key) => memory.get(key),
            set: (key, value) => {
              if (world.full) throw new SvcError('not_writable');
              memory.set(key, value);
            },
          },
          clock,
          log: silentLog,
        },
      ),
  };
  return world;
}

/** The supervisor's record after a switch. */
function settle(world: ReturnType<typeof setUp>, outcome: 'ok' | 'rolled_back', error = ''): void {
  world.clock.advance(1);
  const last = { version: NEXT.version, outcome, error, at: world.clock.now() };
  world.releases.write({ current: null, previous: null, trial: null, last });
}

test("nothing is requested without a user's request", async (t) => {
  const world = setUp(t);
  const updater = world.updater();
  await updater.start();
  const { state, latestVersion, lastCheckAt, updateAvailable } = updater.status();
  assert.deepEqual([state, latestVersion, lastCheckAt, updateAvailable], ['idle', null, null, false]);
  world.clock.advance(7 * 24 * 3600 * 1000);
  assert.equal(world.looks, 0);
});

test('a check finds a release, and concurrent checks share one request', async (t) => {
  const world = setUp(t);
  const updater = world.updater();
  const looks = [updater.check(), updater.check(), updater.check()];
  assert.equal(updater.status().state, 'checking');
  await Promise.all(looks);
  assert.equal(world.looks, 1);
  const status = updater.status();
  assert.deepEqual([status.state, status.latestVersion, status.updateAvailable], ['idle', '1.1.0', true]);
  assert.deepEqual(world.switched, [], 'a check installs nothing');
});

test('a failed check reports the reason, and the next one may succeed', async (t) => {
  const world = setUp(t);
  const updater = world.updater();
  const good = world.answer;
  world.answer = async () => Promise.reject(new SvcError('connect_failed', { message: 'No network.' }));
  await updater.check();
  assert.deepEqual([updater.status().state, updater.status().lastError], ['failed', 'No network.']);
  assert.equal(updater.updateState, 'idle', 'no update was attempted');
  assert.equal(updater.status().updateAvailable, false);
  world.answer = good;
  await updater.check();
  assert.deepEqual([updater.status().state, updater.status().lastError], ['idle', '']);
});

test('unexpected errors are not shown in their own words', async (t) => {
  const world = setUp(t);
  const updater = world.updater();
  world.answer = async () => Promise.reject(new Error('a path of this machine'));
  await updater.check();
  assert.doesNotMatch(updater.status().lastError, /path of this machine/);
});

test('a release is installed once and passed to the supervisor, which reports the result', async (t) => {
  const world = setUp(t);
  const updater = world.updater();
  updater.apply();
  updater.apply();
  await eventually('the switch', () => world.switched.length > 0);
  updater.apply();
  assert.deepEqual([world.switched, world.looks], [['1.1.0'], 1]);
  assert.equal(updater.status().state, 'applying');
  await updater.stop();
  // The new release starts while the supervisor watches it.
  world.releases.write({ ...world.releases.read(), trial: { to: '1.1.0' } });
  const next = world.updater('1.1.0');
  await next.start();
  assert.equal(next.status().state, 'applying');
  settle(world, 'ok');
  const status = next.status();
  assert.deepEqual([status.state, status.updateAvailable, status.managed], ['ok', false, true]);
});

test('the previous release reports a rollback, even after a check', async (t) => {
  const world = setUp(t);
  const first = world.updater();
  first.apply();
  await eventually('the switch', () => world.switched.length > 0);
  settle(world, 'rolled_back', 'It stopped during its start.');
  const again = world.updater();
  await again.start();
  await again.check();
  const { state, lastError, updateAvailable } = again.status();
  assert.deepEqual([state, lastError, updateAvailable], ['rolled_back', 'It stopped during its start.', true]);
});

test('a failed installation switches nothing, and can be retried', async (t) => {
  const world = setUp(t);
  const updater = world.updater();
  world.install = async () => Promise.reject(new SvcError('protocol_error', { message: 'Wrong bytes.' }));
  updater.apply();
  await eventually('the failure', () => updater.status().state === 'failed');
  assert.equal(updater.status().lastError, 'Wrong bytes.');
  assert.equal(updater.updateState, 'failed');
  assert.equal(world.updater('1.1.0').updateState, 'idle', 'it was installed in another way');
  assert.deepEqual(world.switched, []);
  world.install = async () => {};
  updater.apply();
  await eventually('the switch', () => world.switched.length > 0);
});

test('a crash during an installation is a failure after the restart', async (t) => {
  const world = setUp(t);
  world.install = () => new Promise(() => {});
  const updater = world.updater();
  updater.apply();
  await eventually('the start', () => updater.status().state === 'applying');
  const next = world.updater();
  await next.start();
  assert.equal(next.status().state, 'failed');
  assert.match(next.status().lastError, /svcd stopped/);
});

test('outside the service and in a checkout, nothing is installed', async (t) => {
  const alone = setUp(t, { managed: false });
  const updater = alone.updater();
  updater.apply();
  await eventually('the check', () => updater.status().latestVersion !== null);
  assert.equal(updater.status().managed, false);
  assert.equal(updater.status().state, 'idle');
  const checkout = setUp(t, { disabled: 'This is a checkout.' });
  const other = checkout.updater();
  other.apply();
  await other.check();
  assert.deepEqual([checkout.looks, other.status().state, other.status().managed], [0, 'idle', false]);
});

test('requests to the registry are rate-limited', async (t) => {
  const world = setUp(t, { managed: false });
  const updater = world.updater();
  await assert.rejects(
    async () => {
      for (let i = 0; i < 1000; i++) await updater.check();
    },
    { code: 'rate_limited' },
  );
  assert.ok(world.looks < 50, `${world.looks} looks`);
  world.clock.advance(60_000);
  await updater.check();
});

test('an update that fills the disk fails without other damage', async (t) => {
  const world = setUp(t);
  const updater = world.updater();
  world.install = async () => {
    world.full = true;
    throw new SvcError('not_writable');
  };
  updater.apply();
  await eventually('the attempt', () => world.full);
  // An unhandled rejection would show by now.
  await idle();
  assert.deepEqual(world.switched, []);
});

test('stored fields change one by one, and invalid state counts as empty', () => {
  const rows = new Map<string, unknown>();
  let reads = 0;
  const get = (key: string): unknown => {
    reads++;
    return rows.get(key);
  };
  const open = (): UpdateJournal => new UpdateJournal({ get, set: (key, value) => void rows.set(key, value) });
  const memory = open();
  const nothing = { checkedAt: null, latest: null, checkError: '', begun: null, failed: null };
  assert.deepEqual(memory.get(), nothing);
  memory.set({ checkedAt: 5, latest: '1.2.3' });
  memory.set({ checkError: 'why' });
  assert.deepEqual(memory.get(), { ...nothing, checkedAt: 5, latest: '1.2.3', checkError: 'why' });
  assert.equal(reads, 1, 'the status is read every second');
  assert.deepEqual(open().get(), memory.get());
  const [key] = rows.keys();
  rows.set(key ?? '', { checkedAt: 'yesterday' });
  assert.deepEqual(open().get(), nothing);
});

import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { manifest } from '../support/package.ts';
import { ServiceWorld } from '../support/service-world.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const FIRST = manifest.version;

/** Builds a release that starts, changes the database to an unknown schema, and exits. */
function breakRelease(version: string, dataDir: string) {
  const lines = [
    `if (process.argv.includes('--version')) { console.log('${version}'); process.exit(0); }`,
    `const { DatabaseSync } = await import('node:sqlite');`,
    `new DatabaseSync(${JSON.stringify(join(dataDir, 'svcd.db'))}).exec('PRAGMA user_version = 999; DELETE FROM agents');`,
    'process.exit(1);',
  ];
  return (root: string): void => writeFileSync(join(root, 'dist/daemon/main.js'), lines.join('\n'));
}

test('the installed service updates itself, and rolls back a broken release', async (t) => {
  await using world = await ServiceWorld.start(temporaryDirectory(t));
  const { registry } = world;

  await t.test('a daemon without the service only reports the new release', async () => {
    registry.publish(world.release('99.0.0'));
    await world.run();
    const answer = await world.call('POST', '/update/apply');
    assert.equal(answer.status, 202);
    assert.match(JSON.stringify(answer.body), /"warning":".*does not run as a system service/);
    const texts = await world.svc('update', '--confirm');
    assert.equal(texts.code, 1);
    assert.match(
      texts.stdout,
      /svcd 99\.0\.0 is available\. This is .*Install the new version in the same way as the current one/s,
    );
    assert.equal((await world.status()).managed, false);
    assert.equal(await world.stop(), 0);
    assert.equal(existsSync(join(world.dataDir, 'releases', '99.0.0')), false);
    const alone = await world.svcd('update', '--check');
    assert.equal(alone.code, 0, alone.stderr);
    assert.match(alone.stdout, /svcd 99\.0\.0 is available/);
  });

  await world.run('service', 'run');
  const aid = (await world.svc('register', '--no-publish', '--quiet')).stdout.trim();

  await t.test('an older release is never installed', async () => {
    registry.publish(world.release('0.0.1'));
    const { code, stdout } = await world.svc('update', '--confirm');
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`svcd ${FIRST.replaceAll('.', '\\.')} is the newest release`));
    assert.deepEqual(
      readdirSync(join(world.dataDir, 'releases')).filter((name) => /^\d/.test(name)),
      [],
    );
  });

  await t.test('a release with a wrong signature is refused before any download', async () => {
    const release = world.release('1.0.0');
    registry.publish({ ...release, signedText: 'svcd@1.0.0:something else' });
    registry.requests.length = 0;
    const { code, stdout } = await world.svc('update', '--confirm');
    assert.equal(code, 1);
    assert.match(stdout, /the signature of svcd@1\.0\.0 is invalid/);
    assert.equal((await world.status()).state, 'failed');
    assert.deepEqual(
      registry.requests.filter((path) => path.includes('svcd-1.0.0')),
      [],
    );
  });

  await t.test('a release that only the registry has signed is refused before any download', async () => {
    registry.publish({ ...world.release('1.0.0'), proof: undefined });
    registry.requests.length = 0;
    const { code, stdout } = await world.svc('update', '--confirm');
    assert.equal(code, 1);
    assert.match(stdout, /svcd@1\.0\.0 is not signed with a release key of svcd/);
    assert.deepEqual(
      registry.requests.filter((path) => path.includes('svcd-1.0.0')),
      [],
    );
  });

  await t.test('a tarball whose bytes were not signed is refused', async () => {
    const [release, other] = [world.release('1.0.0'), world.release('1.0.1')];
    registry.publish(release);
    registry.intercept = (path, response) => path.includes('svcd-1.0.0') && Boolean(response.end(other.tarball));
    const { code, stdout } = await world.svc('update', '--confirm');
    registry.intercept = () => false;
    assert.equal(code, 1);
    assert.match(stdout, /its tarball does not match the signature/);
    assert.equal(existsSync(join(world.dataDir, 'releases', '1.0.0')), false);
    assert.equal((await world.status()).current_version, FIRST);
  });

  await t.test('a good release is installed, and the data remains', async () => {
    registry.publish(world.release('1.1.0'));
    const check = await world.svc('update', '--check', '--json');
    assert.deepEqual(
      [JSON.parse(check.stdout).latest_version, JSON.parse(check.stdout).current_version],
      ['1.1.0', FIRST],
    );
    const { code, stdout, stderr } = await world.svc('update', '--confirm');
    assert.equal(code, 0, `${stdout}${stderr}\n${world.output}`);
    const status = await world.status();
    assert.deepEqual([status.current_version, status.state, status.managed], ['1.1.0', 'ok', true]);
    assert.match((await world.svc('agents', '--quiet')).stdout, new RegExp(aid));
  });

  await t.test('a release that stops at its start is rolled back, with its database', async () => {
    registry.publish(world.release('1.2.0', breakRelease('1.2.0', world.dataDir)));
    const { code, stdout } = await world.svc('update', '--confirm');
    assert.equal(code, 1);
    assert.match(
      stdout,
      /svcd 1\.2\.0 is available\. This is 1\.1\.0\.\nThe last update was rolled back: It stopped during its start\./,
    );
    const status = await world.status();
    assert.deepEqual([status.current_version, status.state], ['1.1.0', 'rolled_back']);
    assert.match((await world.svc('agents', '--quiet')).stdout, new RegExp(aid));
  });

  await t.test('the result is the same after a restart, and without a network', async () => {
    assert.equal(await world.stop(), 0);
    await world.run('service', 'run');
    const status = await world.status();
    assert.deepEqual([status.current_version, status.state], ['1.1.0', 'rolled_back']);
    assert.deepEqual(readdirSync(join(world.dataDir, 'releases')).filter((name) => /^\d/.test(name)).length, 2);
    registry.intercept = (_path, response) => Boolean(response.destroy());
    const { code, stdout } = await world.svc('update');
    assert.equal(code, 1);
    assert.match(stdout, /Cannot reach/);
    assert.equal((await world.status()).state, 'failed');
    assert.equal((await world.svc('status')).code, 0, 'all other commands work');
  });
});

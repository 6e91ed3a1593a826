import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { test } from 'node:test';
import { PACKAGE, updatesDisabled, withoutSvcdSettings } from '../../src/daemon/package.ts';

test("programs of an update do not see the daemon's settings, in any spelling", () => {
  const environment = {
    PATH: '/bin',
    HTTPS_PROXY: 'http://proxy',
    npm_config_registry: 'https://registry.example',
    SVCD_KEY_PASSPHRASE: 'correct horse',
    SVCD_API_TOKEN: 'token',
    SVC_TOKEN: 'token',
    svcd_data_dir: '/srv/svcd',
    Svc_Via_Password: 'password',
    SVCDATA: 'of another program',
    MY_SVCD_THING: 'of another program',
  };
  const { PATH, HTTPS_PROXY, npm_config_registry, SVCDATA, MY_SVCD_THING } = environment;
  assert.deepEqual(withoutSvcdSettings(environment), {
    PATH,
    HTTPS_PROXY,
    npm_config_registry,
    SVCDATA,
    MY_SVCD_THING,
  });
  assert.equal(environment.SVC_TOKEN, 'token', 'other variables are unchanged');
});

/** The program path that a Node started under a name would restart. */
function programOf(argv0: string): string {
  const script = "import { nodeProgram } from './src/daemon/package.ts'; console.log(nodeProgram());";
  const args = ['--input-type=module-typescript', '--eval', script];
  return spawnSync(process.execPath, args, { argv0, encoding: 'utf8' }).stdout.trim();
}

test('the Node to restart has an absolute path: the symbolic link, not its current target', () => {
  assert.equal(programOf('/usr/local/bin/node'), '/usr/local/bin/node');
  assert.equal(programOf('node'), realpathSync(process.execPath));
});

test('a checkout is updated with git', () => {
  assert.equal(PACKAGE, 'svcd');
  assert.match(updatesDisabled(), /checkout.*git pull && npm ci/);
});

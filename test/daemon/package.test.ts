import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { test } from 'node:test';
import { PACKAGE, updatesDisabled, withoutOwn } from '../../src/daemon/package.ts';

test('programs of an update see nothing of the settings of the daemon, however they are written', () => {
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
  assert.deepEqual(withoutOwn(environment), { PATH, HTTPS_PROXY, npm_config_registry, SVCDATA, MY_SVCD_THING });
  assert.equal(environment.SVC_TOKEN, 'token', 'what was given stays as it is');
});

/** What a Node that was started under a name calls the program to start again. */
function programOf(argv0: string): string {
  const script = "import { nodeProgram } from './src/daemon/package.ts'; console.log(nodeProgram());";
  const args = ['--input-type=module-typescript', '--eval', script];
  return spawnSync(process.execPath, args, { argv0, encoding: 'utf8' }).stdout.trim();
}

test('the Node to start again is named by an absolute path: the link, not what it leads to today', () => {
  assert.equal(programOf('/usr/local/bin/node'), '/usr/local/bin/node');
  assert.equal(programOf('node'), realpathSync(process.execPath));
});

test('sources are brought up to date by git', () => {
  assert.equal(PACKAGE, 'svcd');
  assert.match(updatesDisabled(), /checkout.*git pull && npm ci/);
});

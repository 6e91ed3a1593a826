import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { PANEL_CODE_LIFE_MS } from '../../src/capabilities/panel/panel-logins.ts';
import { Panel } from '../../src/daemon/panel.ts';
import { PANEL_FILE } from '../../src/foundation/data-dir/paths.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { writePanelFile } from '../../src/foundation/panel-access.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TestClock } from '../support/test-clock.ts';

function setUp(t: TestContext, config: { open_browser: boolean; require_local_token: boolean; api_token: string }) {
  const directory = temporaryDirectory(t);
  const clock = new TestClock();
  const file = join(directory, PANEL_FILE);
  const dataDir = { path: directory, file: (name: string) => join(directory, name) };
  const opened: string[] = [];
  const open = async (target: string): Promise<void> => void opened.push(target);
  const panel = new Panel({ clock, dataDir, config, log: silentLog, apiAddress: () => '0.0.0.0:2121', open });
  return { panel, clock, file, directory, opened };
}

const WITH_TOKEN = { open_browser: true, require_local_token: true, api_token: 'secret' };

test('the login URL is reachable from this machine and has the code in the fragment', (t) => {
  const { panel } = setUp(t, WITH_TOKEN);
  const { code, url } = panel.login();
  assert.equal(url, `http://127.0.0.1:2121/#login=${code}`);
  assert.ok(panel.logins.redeem(code));
});

test('the login file is readable by its owner only, and is removed when its code expires', (t) => {
  const { panel, clock, file, directory } = setUp(t, WITH_TOKEN);
  const { url } = panel.login();
  assert.equal(writePanelFile(directory, url), file);
  assert.ok(readFileSync(file, 'utf8').includes(`url=${url}"`));
  if (process.platform !== 'win32') assert.equal(statSync(file).mode & 0o777, 0o600);
  clock.advance(PANEL_CODE_LIFE_MS / 2);
  panel.login();
  clock.advance(PANEL_CODE_LIFE_MS / 2);
  assert.ok(existsSync(file), 'the later code is still valid');
  clock.advance(PANEL_CODE_LIFE_MS / 2);
  assert.ok(!existsSync(file));
});

test('an address in the login file is escaped', (t) => {
  const { directory, file } = setUp(t, WITH_TOKEN);
  writePanelFile(directory, 'http://x/"><script>');
  assert.ok(!readFileSync(file, 'utf8').includes('<script>'));
});

test('stopping the daemon removes sessions, codes and the file', (t) => {
  const { panel, file } = setUp(t, WITH_TOKEN);
  const { code } = panel.login();
  const { token } = panel.logins.begin();
  writeFileSync(file, 'x');
  panel.stop();
  assert.ok(!panel.logins.redeem(code));
  assert.equal(panel.logins.holder(token), null);
  assert.ok(!existsSync(file));
});

test('the panel is opened at startup, through the file only if it requires a token', (t) => {
  const wanted = [
    [WITH_TOKEN, true],
    [{ ...WITH_TOKEN, require_local_token: false }, false],
    [{ ...WITH_TOKEN, api_token: '' }, false],
  ] as const;
  for (const [config, byFile] of wanted) {
    const { panel, file, opened } = setUp(t, config);
    panel.openAtStart();
    assert.deepEqual(opened, [byFile ? file : 'http://127.0.0.1:2121/']);
    assert.equal(existsSync(file), byFile);
    panel.stop();
  }
  const silent = setUp(t, { ...WITH_TOKEN, open_browser: false });
  silent.panel.openAtStart();
  assert.deepEqual(silent.opened, []);
});

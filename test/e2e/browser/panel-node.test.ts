import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readDaemonInfo } from '../../../src/foundation/data-dir/daemon-info.ts';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { PanelPage } from '../../support/browser/panel-page.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { quietPort } from '../../support/programs.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const TOKEN = 'correct-horse-battery-staple';
const CONFIG = `api_token = "${TOKEN}"\nrequire_local_token = true\n`;

/** The page of the panel behind a code. */
async function codeFor(daemon: TestDaemon): Promise<string> {
  const { body } = await daemon.request('POST', '/panel/login', {}, { authorization: `Bearer ${TOKEN}` });
  return String(Reflect.get(Object(body), 'code'));
}

test('the node: doctor, log, settings, MCP clients', { skip: NO_CHROMIUM }, async (t) => {
  const home = temporaryDirectory(t);
  mkdirSync(join(home, '.cursor'));
  writeFileSync(join(home, '.cursor', 'mcp.json'), '{"mcpServers": {"svcd": {"command": "svcd"}}}');
  mkdirSync(join(home, '.gemini'));
  await using daemon = await TestDaemon.start({ env: { HOME: home, XDG_CONFIG_HOME: join(home, '.config') } });
  const aid = await daemon.newAgent();
  await using browser = await startChromium();
  await using panel = await PanelPage.open(browser, daemon.api);
  const { page } = panel;
  const config = (): Promise<Record<string, unknown>> => daemon.call('GET', '/config');

  await t.test('the doctor shows problems first, and can check again', async () => {
    await panel.go('node/doctor', 'Node');
    await page.getByRole('heading', { level: 2, name: /\d+ problems?/ }).waitFor();
    const [first = ''] = await page.locator('main .rows li').allInnerTexts();
    assert.match(first, /^problem/);
    await page.getByText('the data directory').first().waitFor();
    chmodSync(join(daemon.dataDir, 'keys'), 0o755);
    await page.getByRole('button', { name: 'Check again' }).click();
    await page.getByText(/other users of this machine can read/).waitFor();
    chmodSync(join(daemon.dataDir, 'keys'), 0o700);
    await panel.check('the doctor');
    await page.getByLabel('Language').selectOption('de');
    await page.getByText('Das Datenverzeichnis').first().waitFor();
    await panel.check('the doctor in German');
    await page.getByLabel('Sprache').selectOption('en');
    await page.getByText('the data directory').first().waitFor();
  });

  await t.test('the log is filtered by text and level, and paused', async () => {
    await panel.go('node/log', 'Node');
    await page.getByText('svcd is ready').waitFor();
    await page.getByRole('searchbox').fill('no line says this');
    await page.getByText('No matching log entries.').waitFor();
    await page.getByRole('searchbox').fill('is ready');
    await page.getByText('svcd is ready').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    await panel.check('the log');
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByLabel('Level').selectOption('error');
    await page.getByText('No matching log entries.').waitFor();
    assert.match(page.url(), /level=error/);
  });

  await t.test('valid settings are saved, and apply immediately or at the next start', async () => {
    await panel.go('node/settings', 'Node');
    const save = page.getByRole('button', { name: 'Save', exact: true });
    await page.getByLabel('auto_publish').uncheck();
    await save.click();
    await eventually('it holds', async () => (await config())['auto_publish'] === false);
    // By then the page has read it too, so the next save button is the only one.
    await save.waitFor({ state: 'hidden' });
    const peers = page.getByLabel('min_observed_peers');
    await peers.fill('many');
    assert.equal(await save.isDisabled(), true);
    await page.getByRole('button', { name: 'Undo' }).click();
    await peers.fill('0');
    await page.getByText('Must be from 1 to 100.').waitFor();
    assert.equal(await save.isDisabled(), true);
    await page.getByRole('button', { name: 'Undo' }).click();
    const listen = page.getByLabel('listen_addr', { exact: true });
    await listen.fill('nonsense');
    await save.click();
    await page.getByRole('alert').filter({ hasText: 'Invalid input.' }).waitFor();
    assert.equal(await listen.getAttribute('aria-invalid'), 'true');
    assert.equal(await page.locator('.toast.bad').count(), 0);
    panel.forgive();
    await panel.check('an invalid setting');
    await page.getByRole('button', { name: 'Undo' }).click();
    await peers.fill('5');
    await save.click();
    await page.getByText(/Restart the daemon to apply these settings: .*min_observed_peers/).waitFor();
    await page.getByText(/started by hand/).waitFor();
    await panel.check('settings');
    await page.getByLabel('Language').selectOption('ja');
    await page.getByText('stderr に出すログの形式。').waitFor();
    await panel.check('settings in Japanese');
    await page.getByLabel('言語').selectOption('en');
    await page.getByText('Format of the log on stderr.').waitFor();
  });

  await t.test('opening the API to other machines needs a typed confirmation', async () => {
    const before = (await config())['api_addr'];
    await page.getByLabel('api_addr').fill('0.0.0.0:2121');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    const dialog = page.getByRole('dialog');
    assert.equal(await dialog.getByRole('button', { name: 'Save' }).isDisabled(), true);
    await dialog.getByRole('textbox').fill('open');
    assert.equal(await dialog.getByRole('button', { name: 'Save' }).isDisabled(), false);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    assert.equal((await config())['api_addr'], before);
    await page.getByRole('button', { name: 'Undo' }).click();
  });

  await t.test('a client with svcd differs from one without', async () => {
    await panel.go(`agents/${aid}/use`, aid.slice(0, 12));
    const row = (name: string) => page.getByRole('listitem').filter({ hasText: name });
    await row('Cursor').getByText('uses svcd').waitFor();
    await row('Gemini CLI').getByText('svcd mcp add gemini-cli').waitFor();
    assert.equal(await row('Windsurf').count(), 0);
    await panel.check('programs of the machine');
  });
});

test('one login ends another', { skip: NO_CHROMIUM }, async () => {
  await using daemon = await TestDaemon.start({ config: CONFIG });
  await using browser = await startChromium();
  await using one = await PanelPage.open(browser, daemon.api, `/#login=${await codeFor(daemon)}`);
  await one.page.getByRole('heading', { level: 1 }).waitFor();
  await using other = await PanelPage.open(browser, daemon.api, `/#login=${await codeFor(daemon)}`);
  await other.page.getByRole('heading', { level: 1 }).waitFor();
  await one.go('node/sessions', 'Node');
  await one.check('logins');
  const theirs = one.page.getByRole('row').filter({ hasNotText: 'this one' });
  await theirs.getByRole('button', { name: 'Log out' }).click();
  await one.page.getByRole('dialog').getByRole('button', { name: 'Log out' }).click();
  await theirs.getByRole('button').waitFor({ state: 'hidden' });
  await other.page.reload();
  await other.page.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
  await one.page.getByRole('button', { name: 'Log out' }).click();
  await one.page.getByRole('dialog').getByRole('button', { name: 'Log out' }).click();
  await one.page.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
});

test('a button restarts the service, and the page reconnects', { skip: NO_CHROMIUM }, async (t) => {
  const dataDir = temporaryDirectory(t);
  chmodSync(dataDir, 0o700);
  const address = `127.0.0.1:${await quietPort()}`;
  const config = `api_addr = "${address}"\nlisten_addr = "127.0.0.1:0"\nmdns = false\nopen_browser = false\n`;
  writeFileSync(join(dataDir, 'config.toml'), config, { mode: 0o600 });
  const supervisor = spawn(process.execPath, ['bin/svcd', '--data-dir', dataDir, 'service', 'run'], {
    stdio: 'ignore',
  });
  const ended = once(supervisor, 'exit');
  t.after(async () => {
    supervisor.kill('SIGTERM');
    await ended;
  });
  const serving = (): number | undefined => {
    const info = readDaemonInfo(dataDir);
    return info?.api_addr === null ? undefined : info?.pid;
  };
  const before = await eventually('it serves', serving);
  await using browser = await startChromium();
  await using panel = await PanelPage.open(browser, `http://${address}`, '/#/node');
  const { page } = panel;
  await page.getByRole('button', { name: 'Restart' }).click();
  await panel.check('before a restart');
  await page.getByRole('dialog').getByRole('button', { name: 'Restart' }).click();
  await eventually('another process serves', () => {
    const now = serving();
    return now !== undefined && now !== before;
  });
  panel.forgive();
  await page.reload();
  await page.getByRole('button', { name: 'Restart' }).waitFor();
  assert.equal(await page.getByText('The daemon does not respond.').count(), 0);
});

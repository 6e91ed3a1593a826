import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { hideAndShow, PanelPage } from '../../support/browser/panel-page.ts';
import { stretch } from '../../support/browser/stretched.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { quietPort } from '../../support/programs.ts';

const NARROWEST = 320;
const AGENTS = 1000;
const MAX_ROWS = 60;
const WIDTHS = [1280, 390, NARROWEST];

test('an agent is created, its master key is saved and proven, and every screen fits', {
  skip: NO_CHROMIUM,
}, async (t) => {
  // The daemon restarts at this port, so no other program may get it meanwhile.
  await using daemon = await TestDaemon.start({ args: ['--api-addr', `127.0.0.1:${await quietPort()}`] });
  await using browser = await startChromium();
  await using panel = await PanelPage.open(browser, daemon.api);
  const { page } = panel;
  let aid = '';
  let master = '';

  await t.test('first run', async () => {
    await page.getByRole('heading', { level: 1, name: /not on the network|No agents yet/ }).waitFor();
    await panel.check('home without agents');
    const needed = panel.asked.filter((path) => /^GET \/(?:panel\/.*)?$/.test(path));
    assert.ok(needed.length <= 6, `first view: ${needed.join(', ')}`);
    await page.keyboard.press('n');
    await page.getByRole('heading', { level: 1, name: 'New agent' }).waitFor();
    await page.getByRole('button', { name: 'Create keys' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save master key' }).click(),
    ]);
    const text = await readFile(await download.path(), 'utf8');
    const [, named = '', hex = ''] = /^# Master key of (\S+): .*\n([0-9a-f]{64})\n$/.exec(text) ?? [];
    assert.equal(download.suggestedFilename(), `svcd-master-${named.slice(-5)}.txt`);
    master = hex;
    await panel.check('keys to save');
    // The key survives another tab, another page, another language and a closed tab.
    await hideAndShow(page);
    await page.goBack();
    const held = page.getByText('exists only on this page');
    await held.waitFor();
    await panel.check('an unsaved key');
    await page.getByRole('link', { name: 'Go back' }).click();
    await page.getByLabel('Language').selectOption('de');
    await page.getByRole('button', { name: 'Hauptschlüssel' }).waitFor();
    await page.getByLabel('Sprache').selectOption('en');
    await page.getByText(named).waitFor();
    const [asked] = await Promise.all([page.waitForEvent('dialog'), page.close({ runBeforeUnload: true })]);
    assert.equal(asked.type(), 'beforeunload');
    await asked.dismiss();
    await page
      .getByLabel('Choose the saved file')
      .setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('00'.repeat(32)) });
    await page.getByText('The key does not match.').waitFor();
    assert.deepEqual((await daemon.call<{ agents: unknown[] }>('GET', '/agents')).agents, []);
    await page
      .getByLabel('Choose the saved file')
      .setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from(text) });
    await page.getByLabel('Label, such as').fill('first');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    // The step of the label can be skipped, too, until the label is saved.
    const step = page.locator('.steps > li[aria-current]');
    await step.getByRole('heading', { name: 'Bind a service' }).waitFor();
    await page.getByRole('button', { name: 'Skip' }).click();
    await page.reload();
    await page.getByPlaceholder('lang.translate').waitFor();
    await page.getByRole('button', { name: 'Skip' }).click();
    await page.getByRole('link', { name: 'Open agent' }).waitFor();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy AID' }).click();
    await page.getByText('Copied.').waitFor();
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), named);
    const { aliases } = await daemon.call<{ aliases: Record<string, string> }>('GET', '/node/address-book');
    assert.deepEqual(aliases, { [named]: 'first' });
    assert.equal(await held.count(), 0);
    const { agents } = await daemon.call<{ agents: { aid: string }[] }>('GET', '/agents');
    aid = agents[0]?.aid ?? '';
    assert.equal(aid, named);
    await panel.check('first run done');
    await panel.keepsToItself(master);
    assert.ok(!panel.asked.some((path) => path.includes('/identity/generate')));
  });

  await t.test('a new key with the master key', async () => {
    const before = await daemon.call<{ operational_private_key_hex: string }>('GET', `/agents/${aid}/export`);
    await panel.go(`agents/${aid}/keys`, 'first');
    await page.getByRole('button', { name: 'Replace key' }).click();
    const dialog = page.getByRole('dialog');
    const file = dialog.getByLabel('Master key file');
    await file.setInputFiles({ name: 'b.txt', mimeType: 'text/plain', buffer: Buffer.from('11'.repeat(32)) });
    await dialog.getByText('This is the master key of another agent.').waitFor();
    await file.setInputFiles({ name: 'b.txt', mimeType: 'text/plain', buffer: Buffer.from(master) });
    await page.getByText('The agent has a new key.').waitFor();
    const after = await daemon.call<{ operational_private_key_hex: string }>('GET', `/agents/${aid}/export`);
    assert.notEqual(after.operational_private_key_hex, before.operational_private_key_hex);
    await panel.keepsToItself(master);
  });

  await t.test('the access list', async () => {
    await panel.go(`agents/${aid}/access`, 'first');
    const make = page.getByRole('button', { name: 'Create an access token' });
    await make.click();
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    await page.goBack();
    await dialog.waitFor({ state: 'hidden' });
    await page.goForward();
    await make.click();
    await dialog.getByRole('button', { name: 'Create an access token' }).click();
    const secret = dialog.locator('pre');
    await secret.waitFor();
    // It is shown only once, so it stays open and names its agent.
    await page.goBack();
    await dialog.getByTitle(aid).first().waitFor();
    await page.goForward();
    assert.ok((await secret.innerText()).length > 8);
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove entry' }).click();
    // Of both lists.
    await page.getByText('No entries.').nth(1).waitFor();
    await panel.check('access');
  });

  const screens: readonly (readonly [string, string | RegExp])[] = [
    ['', /./],
    ['agents', 'Agents'],
    ...['', '/services', '/profile', '/access', '/tunnels', '/hooks', '/hub', '/keys', '/use'].map(
      (tab): [string, string] => [`agents/${aid}${tab}`, 'first'],
    ),
    ['people', 'People'],
    ['discover', 'Discover'],
    ['messages', 'Messages'],
    [`messages/${aid}/notes`, 'Messages'],
    ['files', 'Files'],
    ...[
      '',
      '/doctor',
      '/links',
      '/peers',
      '/contacts',
      '/events',
      '/log',
      '/settings',
      '/update',
      '/admin',
      '/book',
      '/sessions',
    ].map((tab): [string, string] => [`node${tab}`, 'Node']),
  ];

  await t.test(
    'every screen fits, has no axe finding on a desktop and a phone, and works by keyboard alone',
    async (all) => {
      for (const [i, [route, heading]] of screens.entries()) {
        await page.setViewportSize({ width: WIDTHS[i % WIDTHS.length] ?? 320, height: 800 });
        await page.emulateMedia({ colorScheme: i % 2 === 0 ? 'light' : 'dark' });
        await all.test(`screen ${route}`, async () => {
          await panel.go(route, heading);
          await panel.check(route);
          await panel.examineAll(route);
          await panel.reachesAll(route);
        });
      }
    },
  );

  await t.test('a language with 40 % longer texts fits the narrowest page', async () => {
    await using longer = await PanelPage.open(browser, daemon.api, '/', stretch);
    for (const [route] of screens) {
      await longer.go(route, /./);
      await longer.fits(`longer ${route}`, [NARROWEST]);
    }
  });

  await t.test('a thousand agents are a list of few rows, which change while scrolling', async () => {
    const { agents } = await daemon.call<{ agents: { aid: string }[] }>('GET', '/agents');
    const many = Array.from({ length: AGENTS }, (_, i) => ({
      ...agents[0],
      aid: `${aid.slice(0, -4)}${1000 + i}`,
      name: `agent ${1000 + i}`,
    }));
    await page.route('**/agents', (route) => route.fulfill({ json: { agents: many, pending: {} } }));
    await page.reload();
    await panel.go('agents', 'Agents');
    const rows = page.locator('main tbody tr:not(.spacer)');
    await rows.first().waitFor();
    assert.ok((await rows.count()) <= MAX_ROWS, `${await rows.count()} rows`);
    await page.evaluate('scrollTo(0, document.body.scrollHeight)');
    await page
      .getByRole('row')
      .filter({ hasText: `${999 + AGENTS}` })
      .waitFor();
    assert.ok((await rows.count()) <= MAX_ROWS, `${await rows.count()} rows at the end`);
    await page.unroute('**/agents');
  });

  await t.test('a daemon that is killed and restarted', async () => {
    await page.setViewportSize({ width: 1280, height: 900 });
    await panel.go('', /./);
    await daemon.kill();
    const gone = page.getByText('The daemon does not respond.').first();
    await gone.waitFor();
    const address = daemon.api.replace('http://', '');
    await using _ = await TestDaemon.start({ dataDir: daemon.dataDir, args: ['--api-addr', address] });
    await gone.waitFor({ state: 'hidden' });
    await page
      .getByRole('link', { name: new RegExp(aid.slice(0, 12)) })
      .first()
      .waitFor();
  });
});

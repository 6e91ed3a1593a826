import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encode } from 'uqr';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { PanelPage } from '../../support/browser/panel-page.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';

test('the pages of an agent: callers, a sorted list, the address book, shortcuts', {
  skip: NO_CHROMIUM,
}, async (t) => {
  await using daemon = await TestDaemon.start();
  await using browser = await startChromium();
  const called = await daemon.newAgent();
  const caller = await daemon.newAgent();
  await daemon.call('PATCH', `/agents/${called}/acl`, { default: 'deny' });
  await daemon.call('PUT', '/node/address-book', { aliases: { [caller]: 'zoe', [called]: 'anna' }, favorites: [] });
  const code = async (): Promise<unknown> =>
    (await daemon.request('POST', `/fetch/${called}`, { path: '/', local_aid: caller })).body;
  assert.match(JSON.stringify(await code()), /access_denied/);
  await using panel = await PanelPage.open(browser, daemon.api);
  const { page } = panel;

  await t.test('a denied caller is allowed, and denied again', async () => {
    await panel.go(`agents/${called}`, 'anna');
    await page.getByRole('button', { name: 'Allow… zoe' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Allow zoe' }).click();
    await page.getByRole('button', { name: 'Deny zoe' }).waitFor();
    assert.match(JSON.stringify(await code()), /no_inbound/);
    await panel.check('a caller is allowed');
    await page.getByRole('button', { name: 'Deny zoe' }).click();
    await page.getByRole('button', { name: 'Allow… zoe' }).waitFor();
    assert.match(JSON.stringify(await code()), /access_denied/);
  });

  await t.test('the list is sorted, and the shortcuts for it can be turned off', async () => {
    await panel.go('agents', 'Agents');
    const first = page.locator('tbody tr').first();
    await page.getByRole('button', { name: 'Agent', exact: true }).click();
    await first.getByText('anna').waitFor();
    await page.getByRole('button', { name: 'Agent', exact: true }).click();
    await first.getByText('zoe').waitFor();
    await panel.check('a sorted list');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page
      .getByRole('heading', { level: 1, name: 'zoe' })
      .or(page.getByRole('heading', { level: 1, name: 'anna' }))
      .waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    await page.keyboard.press('?');
    await page.getByLabel('Single-letter shortcuts').uncheck();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.keyboard.press('n');
    assert.match(page.url(), /#\/agents/);
    await page.getByRole('button', { name: 'Keyboard shortcuts' }).click();
    await page.getByLabel('Single-letter shortcuts').check();
    await panel.check('the list of keys');
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  });

  await t.test('an agent gets another label, and concurrent changes of the address book are kept', async () => {
    await panel.go('node/book', 'Node');
    await page.getByRole('button', { name: 'Change zoe' }).click();
    await page.getByRole('dialog').getByLabel('Label').fill('zara');
    await daemon.call('PUT', '/node/address-book', { aliases: { [caller]: 'zoe', [called]: 'amy' }, favorites: [] });
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByText('zara').first().waitFor();
    const { aliases } = await daemon.call<{ aliases: unknown }>('GET', '/node/address-book');
    assert.deepEqual(aliases, { [caller]: 'zara', [called]: 'amy' });
    await panel.check('the address book');
  });

  await t.test('without its label, an agent has its next one', async () => {
    const aliases = { [caller]: 'zara', [called]: 'amy' };
    await daemon.call('PUT', '/node/address-book', { aliases, other_labels: { [caller]: ['zoe'] }, favorites: [] });
    await panel.go('node/book', 'Node');
    await page.getByRole('button', { name: 'Change zara' }).click();
    await page.getByRole('dialog').getByLabel('Label').fill('');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Change zoe' }).waitFor();
    const book = await daemon.call<object>('GET', '/node/address-book');
    assert.deepEqual(book, { aliases: { [caller]: 'zoe', [called]: 'amy' }, favorites: [] });
  });

  await t.test('the AID is shown as a QR code', async () => {
    await panel.go(`agents/${called}`, 'amy');
    await page.getByRole('button', { name: 'QR', exact: true }).click();
    const drawn = page.getByRole('img', { name: 'QR code of the AID' });
    await drawn.waitFor();
    // The dark modules in the panel must match the encoder.
    const { data } = encode(called, { ecc: 'M', border: 4 });
    const dark = await drawn.locator('path').getAttribute('d');
    assert.deepEqual(
      dark?.match(/M\d+ \d+/g),
      data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}`] : []))),
    );
    await panel.check('the QR code');
    await page.keyboard.press('Escape');
  });

  await t.test('an agent is exported, deleted and imported again', async () => {
    const tail = called.slice(-5);
    await panel.go(`agents/${called}/keys`, 'amy');
    await page.getByRole('button', { name: 'Export everything' }).click();
    await page.getByRole('dialog').getByRole('textbox').fill(tail);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('dialog').getByRole('button', { name: 'Export everything' }).click(),
    ]);
    // The agent is deleted while no page shows it. Otherwise the browser would log a failed request.
    await panel.go('new', 'New agent');
    await daemon.call('DELETE', `/agents/${called}`);
    await page.getByText('Import from a file').click();
    await page.getByLabel('Agent file').setInputFiles(await download.path());
    await page.getByText('The agent is now on this node.').waitFor();
    await eventually('the agent is here again', async () => {
      const { agents } = await daemon.call<{ agents: readonly { aid: string }[] }>('GET', '/agents');
      return agents.some(({ aid }) => aid === called);
    });
    await panel.check('an agent was imported');
  });
});

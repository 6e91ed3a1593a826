import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encode } from 'uqr';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { PanelPage } from '../../support/browser/panel-page.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { EchoService } from '../../support/echo-service.ts';

interface Contacts {
  readonly contacts: readonly { readonly contact: string; readonly joined: boolean }[];
}

test('a machine is invited and joins, sees the agents of the network, and allows one by keyboard alone', {
  skip: NO_CHROMIUM,
}, async (t) => {
  await using near = await TestDaemon.start();
  await using far = await TestDaemon.start();
  await using service = await EchoService.start();
  const mine = await near.newAgent();
  const ben = await far.newAgent(service.address);
  await using browser = await startChromium();
  await using host = await PanelPage.open(browser, far.api);
  await using guest = await PanelPage.open(browser, near.api);
  const { page } = guest;
  const dialog = page.getByRole('dialog');

  await t.test('an invitation is a line and a QR code', async () => {
    await host.page.getByRole('button', { name: 'Invite a machine' }).click();
    const drawn = host.page.getByRole('img', { name: 'QR code of the invitation' });
    await drawn.waitFor();
    const line = await host.page.getByRole('dialog').locator('pre').innerText();
    assert.match(line, /^svc:\/\/aid1[^/]+\/join\//);
    const { data } = encode(line, { ecc: 'M', border: 4 });
    const dark = await drawn.locator('path').getAttribute('d');
    assert.equal(dark?.match(/M/g)?.length, data.flat().filter(Boolean).length);
    await host.check('an invitation');
    await host.examineAll('an invitation');

    await page.getByRole('button', { name: 'Join a network' }).click();
    const to = dialog.getByLabel('Invitation or address');
    await to.fill(`${line}x`);
    await dialog.getByRole('button', { name: 'Join', exact: true }).click();
    await dialog.getByRole('alert').getByText('The invitation is damaged.').waitFor();
    assert.equal(await to.getAttribute('aria-invalid'), 'true');
    guest.forgive();
    await guest.check('a damaged invitation');
    await to.fill(line);
    await dialog.getByRole('button', { name: 'Join', exact: true }).click();
    await page.getByText('Joined the network.').waitFor();
    assert.equal(await dialog.count(), 0);
  });

  await t.test('the contact is listed, and removed', async () => {
    await guest.go('node/contacts', 'Node');
    await page.getByText('joined with an invitation or an address').first().waitFor();
    await page.getByText('responds', { exact: true }).first().waitFor();
    await guest.check('contacts');
    const before = (await near.call<Contacts>('GET', '/node/contacts')).contacts.length;
    await page.getByRole('button', { name: 'Remove contact' }).first().click();
    await dialog.getByRole('button', { name: 'Remove contact' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByText('No contacts.').or(page.getByText('joined with')).first().waitFor();
    assert.equal((await near.call<Contacts>('GET', '/node/contacts')).contacts.length, before - 1);
  });

  await t.test('services nearby and people are listed without a search', async () => {
    await far.call('POST', `/agents/${ben}/publish`);
    const offer = { services: ['lang.translate', 'lang.summary'], name: 'Ben <b>', brief: 'Forty languages' };
    await far.call('POST', `/agents/${ben}/services`, offer);
    await near.call('PUT', '/node/address-book', { aliases: { [ben]: 'ben', [mine]: 'scout' }, favorites: [] });
    await near.call('POST', `/fetch/${ben}`, { path: '/', local_aid: mine });
    await page.reload();
    await guest.go('discover', 'Discover');
    const row = page.getByRole('listitem').filter({ hasText: 'Forty languages' });
    await row.getByText('Ben <b>').waitFor();
    await guest.check('services nearby');
    await guest.examineAll('services nearby');
    await row.getByRole('link', { name: 'lang.summary' }).click();
    await page.getByRole('heading', { name: 'Found' }).waitFor();
    assert.equal(await page.getByRole('searchbox').inputValue(), 'lang.summary');
    await guest.go('people', 'People');
    const agent = page.getByRole('table', { name: 'Agents' }).getByRole('row').filter({ hasText: 'ben' });
    await agent.getByText('local network').waitFor();
    await agent.getByRole('link', { name: 'lang.translate' }).waitFor();
    await page.getByRole('table', { name: 'Nodes' }).getByRole('row').nth(1).waitFor();
    await guest.check('people');
    await guest.examineAll('people');
    await guest.reachesAll('people');
  });

  await t.test('an agent is picked by keyboard alone', async () => {
    await page.setViewportSize({ width: 390, height: 900 });
    await guest.go(`agents/${mine}`, 'scout');
    await guest.tabTo('Overview');
    await page.keyboard.press('Enter');
    await guest.tabTo('Access');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Allow an agent' }).waitFor();
    await guest.tabTo('Allow an agent');
    await page.keyboard.press('Enter');
    const field = dialog.getByRole('combobox', { name: 'Agent' });
    await field.waitFor();
    await guest.tabTo('Agent');
    // Free text is possible, and its error appears at the field.
    await page.keyboard.type('aid1nobody');
    await page.keyboard.press('Enter');
    await dialog.getByRole('alert').waitFor();
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
    assert.equal(await page.evaluate('document.activeElement.role'), 'combobox');
    guest.forgive();
    await guest.check('a wrong AID');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('BE');
    await dialog.getByRole('option', { name: /^ben/ }).waitFor();
    await page.keyboard.press('Escape');
    await dialog.getByRole('option').first().waitFor({ state: 'hidden' });
    await field.waitFor();
    await page.keyboard.press('ArrowDown');
    assert.equal(await dialog.getByRole('option', { selected: true }).count(), 1);
    await guest.check('a list of agents');
    await guest.examineAll('a list of agents');
    await page.keyboard.press('Enter');
    assert.equal(await field.inputValue(), 'ben');
    await dialog.getByTitle(ben).waitFor();
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    const { allow } = await near.call<{ allow: readonly { aid?: string }[] }>('GET', `/agents/${mine}/acl`);
    assert.deepEqual(
      allow.map(({ aid }) => aid),
      [ben],
    );
  });

  await t.test('on a phone, the menu of areas opens by keyboard', async () => {
    await guest.tabTo('More');
    await page.keyboard.press('Enter');
    await guest.tabTo('Node');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Node' }).waitFor();
    assert.equal(await page.locator('.areas > details[open]').count(), 0);
    // The AID of the node takes one line.
    const aid = page.locator('main code.aid').first();
    await aid.waitFor();
    assert.ok(((await aid.boundingBox())?.height ?? 99) < 30);
  });
});

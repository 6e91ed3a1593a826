import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { BrowserContext } from 'playwright-core';
import { fromHex, toHex } from '../../../src/foundation/bytes.ts';
import { parseWalletText, signDelegation } from '../../../src/foundation/identity/wallet.ts';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { PanelPage } from '../../support/browser/panel-page.ts';
import { svcOk } from '../../support/cli.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { EchoService } from '../../support/echo-service.ts';
import { eventually } from '../../support/eventually.ts';
import { TestNetwork } from '../../support/network.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

interface Keys {
  readonly aid: string;
  readonly master_private_key_hex: string;
  readonly operational_private_key_hex: string;
  readonly delegation_proof_hex: string;
}

interface Agent {
  readonly delegation: { readonly issued_at: string; readonly expires_at: string | null };
}

/** A wallet, whose key is known here and in no page. */
async function newWallet(daemon: TestDaemon): Promise<Keys> {
  return daemon.call('POST', '/mcp/call', { tool: 'svc_agents_generate_ethereum', args: {} });
}

/** The signature of a wallet, in hex. The wallet signs only delegations. */
function signedText(wallet: Keys, text: string): string {
  const grant = parseWalletText(text);
  const key = fromHex(wallet.master_private_key_hex);
  assert.ok(grant !== null && key !== null);
  return `0x${toHex(signDelegation('ethereum', key, grant).signature)}`;
}

/** Pages have an extension that is this wallet (EIP-1193). */
function withWallet(wallet: () => Keys): (context: BrowserContext) => Promise<void> {
  return async (context) => {
    await context.exposeFunction('askWallet', (method: string, [text = '']: readonly string[]) => {
      if (method === 'eth_requestAccounts') return [wallet().aid];
      assert.equal(method, 'personal_sign');
      return signedText(wallet(), Buffer.from(text.slice(2), 'hex').toString('utf8'));
    });
    await context.addInitScript(
      `globalThis.ethereum = { request: ({ method, params }) => askWallet(method, params ?? []) };`,
    );
  };
}

test('an agent of a wallet is created and renewed: the wallet signs, and no page sees its key', {
  skip: NO_CHROMIUM,
}, async (t) => {
  await using daemon = await TestDaemon.start();
  await using browser = await startChromium();
  const mine = await newWallet(daemon);
  const other = await newWallet(daemon);
  let chosen = mine;
  const delegation = async (): Promise<Agent['delegation']> =>
    (await daemon.call<Agent>('GET', `/agents/${mine.aid}`)).delegation;

  await t.test('by the wallet of the browser', async () => {
    await using panel = await PanelPage.open(
      browser,
      daemon.api,
      '/#/new',
      withWallet(() => chosen),
    );
    const { page } = panel;
    const sign = page.getByRole('button', { name: 'Sign with this browser’s wallet' });
    await page.getByText('Use a wallet').click();
    await panel.check('a wallet');
    await sign.click();
    await page.getByRole('button', { name: 'Skip' }).first().waitFor();
    const first = await delegation();
    await panel.go(`agents/${mine.aid}/keys`, /./);
    await page.getByRole('button', { name: 'Renew delegation' }).click();
    chosen = other;
    await sign.click();
    await page.getByText('This is not the wallet of the agent.').waitFor();
    chosen = mine;
    await sign.click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    assert.ok(Date.parse((await delegation()).issued_at) > Date.parse(first.issued_at));
    await panel.keepsToItself(mine.master_private_key_hex);
  });

  await t.test('by a signature that was made elsewhere', async () => {
    const before = await delegation();
    await using panel = await PanelPage.open(browser, daemon.api, `/#/agents/${mine.aid}/keys`);
    const { page } = panel;
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Renew delegation' }).click();
    await dialog.getByText('This browser has no wallet.').waitFor();
    await dialog.getByRole('button', { name: 'Create text' }).click();
    const text = await dialog.locator('pre').innerText();
    await dialog
      .getByLabel('Signature')
      .fill(signedText(mine, text.replace(/expires_at: 0$/, 'expires_at: 9999999999')));
    await dialog.getByRole('button', { name: 'Register with this signature' }).click();
    await dialog.getByRole('alert').waitFor();
    panel.forgive();
    await dialog.getByLabel('Signature').fill(signedText(mine, text));
    await dialog.getByRole('button', { name: 'Register with this signature' }).click();
    await dialog.waitFor({ state: 'hidden' });
    assert.ok(Date.parse((await delegation()).issued_at) > Date.parse(before.issued_at));
  });
});

test('an agent changes its profile and services, is renewed until a date, and is invited', {
  skip: NO_CHROMIUM,
}, async (t) => {
  await using network = await TestNetwork.start(2);
  await using service = await EchoService.start();
  const [near, far] = [network.at(0), network.at(1)];
  const keys = await near.call<Keys>('POST', '/identity/generate');
  const { aid, operational_private_key_hex, delegation_proof_hex } = keys;
  await near.call('POST', '/agents', { operational_private_key_hex, delegation_proof_hex });
  const ben = await far.newAgent(service.address);
  await near.call('POST', `/agents/${aid}/publish`);
  await far.call('POST', `/agents/${ben}/publish`);
  await near.call('POST', `/agents/${aid}/services`, { services: ['panel.edit'], brief: 'old', name: 'Ann' });
  await using browser = await startChromium();
  await using panel = await PanelPage.open(browser, near.api, `/#/agents/${aid}/services`);
  const { page } = panel;
  const dialog = page.getByRole('dialog');

  await t.test('a service is changed, and keeps the fields that are not in the form', async () => {
    await page.getByRole('button', { name: 'Change panel.edit' }).click();
    await dialog.getByLabel('Short description').fill('new');
    await dialog.getByRole('textbox').nth(2).fill('not JSON');
    await dialog.getByRole('alert').waitFor();
    assert.equal(await dialog.getByRole('button', { name: 'Save and publish' }).isDisabled(), true);
    await dialog.getByRole('textbox').nth(2).fill('{"price": 3}');
    await panel.check('a service is changed');
    await dialog.getByRole('button', { name: 'Save and publish' }).click();
    await dialog.waitFor({ state: 'hidden' });
    const { services } = await near.call<{ services: readonly Record<string, unknown>[] }>(
      'GET',
      `/agents/${aid}/services`,
    );
    const [{ name, brief, meta } = {}] = services;
    assert.deepEqual([name, brief, meta], ['Ann', 'new', { price: 3 }]);
  });

  await t.test('its profile is changed', async () => {
    await panel.go(`agents/${aid}/profile`, /./);
    await page.getByLabel('Name', { exact: true }).fill('Annabel');
    await page.getByLabel('Skills, separated by commas').fill('reading aloud, counting');
    await page.getByRole('button', { name: 'Save and publish' }).click();
    await page.getByRole('heading', { level: 1, name: 'Annabel' }).waitFor();
    await panel.check('a profile');
    const { profile } = await near.call<{ profile: unknown }>('GET', `/agents/${aid}`);
    assert.deepEqual(Reflect.get(Object(profile), 'skills'), ['reading aloud', 'counting']);
  });

  await t.test('its delegation is renewed until a date, with the current key', async () => {
    await panel.go(`agents/${aid}/keys`, 'Annabel');
    await page.getByRole('button', { name: 'Renew delegation' }).click();
    await dialog.getByLabel('Expires on').fill('2099-12-31');
    const buffer = Buffer.from(keys.master_private_key_hex);
    await dialog.getByLabel('Master key file').setInputFiles({ name: 'm.txt', mimeType: 'text/plain', buffer });
    await page.getByText('Delegation renewed.').waitFor();
    const { delegation } = await near.call<Agent>('GET', `/agents/${aid}`);
    assert.match(delegation.expires_at ?? '', /^2099-12-31|^2100-01-01/);
    const now = await near.call<Keys>('GET', `/agents/${aid}/export`);
    assert.equal(now.operational_private_key_hex, operational_private_key_hex);
    await panel.keepsToItself(keys.master_private_key_hex);
  });

  await t.test('a group invitation is accepted on the home screen', async () => {
    const tool = (name: string, args: object) =>
      far.call<{ group_id: string }>('POST', '/mcp/call', { tool: name, args });
    const { group_id } = await tool('group_create', { aid: ben, title: 'Plans' });
    await tool('group_invite', { aid: ben, group_id, target_aid: aid });
    await panel.go('', /./);
    const row = page.getByRole('listitem').filter({ hasText: 'Plans' });
    await row.waitFor();
    await panel.check('invited');
    await row.getByRole('button', { name: 'Accept' }).click();
    await row.waitFor({ state: 'hidden' });
    await eventually('it is a member', async () => {
      const { groups } = await near.call<{ groups: readonly { group_id: string }[] }>('GET', `/agents/${aid}/groups`);
      return groups.some((group) => group.group_id === group_id);
    });
  });

  await t.test('file offers are accepted and declined on the home screen', async () => {
    const folder = temporaryDirectory(t);
    const offer = async (name: string, text: string, ...more: string[]): Promise<void> => {
      writeFileSync(join(folder, name), text);
      await svcOk(far, 'send', join(folder, name), aid, '--aid', ben, '--no-wait', ...more);
    };
    await offer('plan.txt', 'the plan', '-m', 'as promised');
    await offer('advert.txt', 'buy this');
    await panel.go('', /./);
    const row = (name: string) => page.getByRole('listitem').filter({ hasText: name });
    await row('plan.txt').getByText('as promised').waitFor();
    await row('advert.txt').waitFor();
    await panel.check('offered files');
    await row('plan.txt').getByRole('button', { name: 'Download' }).click();
    const reported = await page.getByText(/^File saved as /).innerText();
    assert.equal(readFileSync(reported.replace('File saved as ', ''), 'utf8'), 'the plan');
    await row('plan.txt').waitFor({ state: 'hidden' });
    await row('advert.txt').getByRole('button', { name: 'Decline' }).click();
    await dialog.getByRole('button', { name: 'Decline' }).click();
    await row('advert.txt').waitFor({ state: 'hidden' });
    await eventually('the sender is notified of both', async () => {
      const path = `/agents/${ben}/file-offers?direction=out&all=true`;
      const { offers } = await far.call<{ offers: readonly { name: string; state: string }[] }>('GET', path);
      const states = Object.fromEntries(offers.map(({ name, state }) => [name, state]));
      return states['plan.txt'] === 'taken' && states['advert.txt'] === 'declined';
    });
  });

  await t.test('a remote agent gets a local address, which is listed and closed', async () => {
    await panel.go(`discover/${ben}`, /./);
    await page.getByRole('button', { name: 'Local address' }).click();
    const url = await dialog.locator('code').innerText();
    assert.match(await (await fetch(`${url.replace(/\/$/, '')}/there`)).text(), /"url":"\/there"/);
    await dialog.getByRole('button', { name: 'Close' }).click();
    await panel.go(`agents/${aid}/tunnels`, 'Annabel');
    await page.getByRole('link', { name: url }).waitFor();
    await panel.check('local addresses');
    await page.getByRole('button', { name: 'Close local address' }).click();
    await dialog.getByRole('button', { name: 'Close local address' }).click();
    await page.getByText('No local addresses.').waitFor();
  });
});

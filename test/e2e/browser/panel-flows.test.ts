import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { PanelPage } from '../../support/browser/panel-page.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { EchoService } from '../../support/echo-service.ts';
import { eventually } from '../../support/eventually.ts';
import { ready } from '../../support/network.ts';

/** With the open page, more tabs than a browser opens connections to one origin. */
const TABS = 9;
const MINUTE_MS = 60_000;

/** The AID of a node, after others can find it. */
async function nodeAid(daemon: TestDaemon): Promise<string> {
  type Status = { node_aid: string; node_published: boolean };
  return await eventually('the node is published', async () => {
    const { node_aid, node_published } = await daemon.call<Status>('GET', '/status');
    return node_published && node_aid;
  });
}

test('the panel finds, calls, allows, restores and deletes agents on this node and on another one', {
  skip: NO_CHROMIUM,
}, async (t) => {
  await using service = await EchoService.start();
  await using near = await TestDaemon.start();
  await using far = await TestDaemon.start({ bootstrap: [near.dhtAddress] });
  await Promise.all([ready(near), ready(far)]);
  const ann = await near.newAgent();
  const ben = await far.newAgent(service.address);
  await near.call('POST', `/agents/${ann}/publish`);
  await far.call('POST', `/agents/${ben}/publish`);
  await far.call('POST', `/agents/${ben}/services`, { services: ['flow.echo'], name: '<i>Ben</i>', brief: 'Echoes' });
  await using browser = await startChromium();
  await using panel = await PanelPage.open(browser, near.api, '/#/discover');
  const { page } = panel;
  const dialog = page.getByRole('dialog');
  const call = page.getByRole('button', { name: 'Call', exact: true });

  await t.test('an agent is found by its service, starred and labeled', async () => {
    await page.getByRole('searchbox').fill('flow.echo');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.getByText('“<i>Ben</i>”').waitFor();
    await page.getByRole('button', { name: '☆' }).click();
    await page.getByRole('button', { name: '★' }).waitFor();
    await panel.check('found');
    await page.getByRole('link', { name: new RegExp(ben.slice(0, 12)) }).click();
    await page.getByRole('button', { name: 'Add label' }).click();
    await dialog.getByRole('textbox').fill('Benjamin');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 1, name: 'Benjamin' }).waitFor();
  });

  await t.test('it is called by hand, and its response can be saved', async () => {
    await page.getByLabel('Path').fill('/hello');
    await call.click();
    await page.getByText('HTTP 200').waitFor();
    await page.getByText('"url": "/hello"').waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save response' }).click(),
    ]);
    assert.match(await readFile(await download.path(), 'utf8'), /^\{"method":"GET","url":"\/hello"/);
    await page.getByText('Previous calls').click();
    await page.getByRole('button', { name: 'GET /hello' }).waitFor();
    await panel.check('called');
  });

  await t.test('a tunnel to it carries bytes', async () => {
    await page.getByRole('button', { name: 'Open tunnel' }).click();
    const listen = await dialog.locator('code').innerText();
    const answer = await fetch(`http://${listen}/through`);
    assert.match(await answer.text(), /"url":"\/through"/);
    await dialog.getByRole('button', { name: 'Close' }).click();
    await panel.go(`agents/${ann}/tunnels`, ann.slice(0, 12));
    await page.getByRole('button', { name: 'Close tunnel' }).click();
    await dialog.getByRole('button', { name: 'Close tunnel' }).click();
    await page.getByText('No tunnels.').waitFor();
    await panel.check('tunnels');
  });

  await t.test('webhooks are listed on both sides with their state, and one is removed', async () => {
    const { url } = await near.call<{ url: string }>('POST', `/origins/${ben}`);
    const hook = 'http://127.0.0.1:1/hook';
    const params = { configuration: { taskPushNotificationConfig: { url: hook } } };
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
    const echoed = await (await fetch(url, { ...init, body })).text();
    const [box] = /http:\/\/127\.0\.0\.1:\d+\/[\w-]+\/\w+/.exec(echoed) ?? [];
    assert.ok(box !== undefined, echoed);
    assert.equal((await fetch(box, { ...init, body: '{}' })).status, 202);
    const own = page.getByRole('row').filter({ hasText: hook });
    await own.getByText('The webhook does not respond').waitFor();
    await own.getByRole('cell', { name: '1', exact: true }).waitFor();
    await panel.check('webhooks');
    await using other = await PanelPage.open(browser, far.api, `/#/agents/${ben}/tunnels`);
    const theirs = other.page.getByRole('row').filter({ hasText: 'Webhooks of this agent' });
    await theirs.waitFor();
    await other.check('mailboxes');
    await own.getByRole('button', { name: 'Remove webhook' }).press('Enter');
    await dialog.getByText(hook).waitFor();
    await dialog.getByRole('button', { name: 'Remove webhook' }).click();
    await page.getByText('No webhooks.').waitFor();
    await theirs.getByRole('button', { name: 'Remove webhook' }).click();
    await other.page.getByRole('dialog').getByRole('button', { name: 'Remove webhook' }).click();
    await other.page.getByText('No webhooks.').waitFor();
  });

  await t.test('a caller that is not listed is denied, and allowed after it is added', async () => {
    await using other = await PanelPage.open(browser, far.api, `/#/agents/${ben}/access`);
    await other.page.getByRole('button', { name: 'Allow listed agents only' }).click();
    await other.page.getByText('Only the agents listed below.').waitFor();
    await panel.go(`discover/${ben}`, 'Benjamin');
    await call.click();
    await page.getByRole('main').getByRole('alert').waitFor();
    panel.forgive();
    await other.page.getByRole('button', { name: 'Allow an agent' }).click();
    const allow = other.page.getByRole('dialog');
    await allow.getByRole('combobox', { name: 'Agent' }).fill(ann);
    await allow.getByRole('button', { name: 'Allow an agent' }).click();
    // In the access list. The list of callers also contains the agent.
    const named = other.page.getByRole('listitem').getByRole('link', { name: new RegExp(ann.slice(0, 12)) });
    await named.waitFor();
    await other.check('access list with an agent');
    await call.click();
    await page.getByText('HTTP 200').waitFor();
  });

  await t.test('a file is added, saved and deleted', async () => {
    await panel.go(`files/${ann}`, 'Files');
    const buffer = Buffer.from('kept');
    await page.getByLabel('Add file').setInputFiles({ name: 'kept.txt', mimeType: 'text/html', buffer });
    const row = page.getByRole('row').filter({ hasText: 'kept.txt' });
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      row.getByRole('button', { name: 'Save' }).click(),
    ]);
    assert.equal(await readFile(await download.path(), 'utf8'), 'kept');
    await panel.check('files');
    await row.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete file' }).click();
    await page.getByText('No files.').waitFor();
  });

  await t.test('a bar lists the settings that need a restart', async () => {
    await panel.go('node/settings', 'Node');
    await page.getByLabel('disable_upnp').check();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText(/Restart the daemon to apply these settings: .*disable_upnp/).waitFor();
    await panel.check('settings that wait');
  });

  await t.test('the panel shows another node that allows this one', async () => {
    await far.call('PATCH', '/node/remote-admin', { enabled: true });
    const [mine, theirs] = [await nodeAid(near), await nodeAid(far)];
    await far.call('POST', '/node/remote-admin/allow', { aid: mine });
    const before = panel.asked.length;
    await panel.go(`via/${theirs}/agents`, 'This link opens another node');
    await panel.check('a link to another node');
    assert.deepEqual(
      panel.asked.slice(before).filter((path) => path.includes('/via/')),
      [],
      'a link alone sends nothing to another node',
    );
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('You are viewing another node').waitFor();
    await page
      .getByRole('link', { name: new RegExp(ben.slice(0, 12)) })
      .first()
      .waitFor();
    await panel.check('another node');
    await page.getByRole('link', { name: 'Back to this node' }).click();
  });

  await t.test('an agent is restored from its master key, and deleted after typing the end of its AID', async () => {
    type Keys = { aid: string; master_private_key_hex: string };
    const { aid, master_private_key_hex: master } = await far.call<Keys>('POST', '/identity/generate');
    await panel.go('new', 'New agent');
    await page.getByText('Restore from a master key').click();
    const file = { name: 'master.txt', mimeType: 'text/plain', buffer: Buffer.from(`${master}\n`) };
    await page.getByLabel('Master key file').setInputFiles(file);
    await page.getByRole('button', { name: 'Register on this node' }).click();
    await page.getByRole('button', { name: 'Skip' }).first().waitFor();
    await panel.keepsToItself(master);
    await panel.go(`agents/${aid}`, aid.slice(0, 12));
    await page.getByRole('button', { name: 'Delete agent' }).click();
    const sure = dialog.getByRole('button', { name: 'Delete agent' });
    assert.equal(await sure.isDisabled(), true);
    await dialog.getByRole('textbox').fill(aid.slice(-5));
    await page.keyboard.press('Enter');
    assert.equal((await near.request('GET', `/agents/${aid}`)).status, 200, 'Enter deletes nothing');
    await sure.click();
    await eventually('the agent is deleted', async () => (await near.request('GET', `/agents/${aid}`)).status === 404);
    panel.forgive();
  });

  await t.test('after missed events the shown data is loaded again', async () => {
    await using tab = await PanelPage.open(browser, near.api, '/#/nowhere');
    const asks = (): number => tab.asked.filter((path) => path === 'GET /agents').length;
    await tab.page.getByRole('heading', { level: 1 }).waitFor();
    const missed = `id: 5\nevent: log.truncated\ndata: ${JSON.stringify({ type: 'log.truncated', aid: '', at: '', data: {} })}\n\n`;
    await tab.page.route('**/events', (route) => route.fulfill({ contentType: 'text/event-stream', body: missed }));
    const before = asks();
    await tab.page.evaluate(`Object.defineProperty(document, 'visibilityState', { get: () => globalThis.seen ?? 'visible' });
      globalThis.seen = 'hidden'; document.dispatchEvent(new Event('visibilitychange'));`);
    assert.equal(asks(), before, 'a hidden tab asks nothing');
    await tab.page.evaluate(`globalThis.seen = 'visible'; document.dispatchEvent(new Event('visibilitychange'));`);
    await eventually('asked when seen, and when told', () => asks() >= before + 2);
  });

  await t.test('many tabs share one event stream', async () => {
    const streams = (): number => panel.asked.filter((path) => path === 'GET /events').length;
    const before = streams();
    const tabs = [];
    for (let i = 0; i < TABS; i++) {
      const tab = await panel.context.newPage();
      tabs.push(tab);
      tab.on('request', (request) => assert.doesNotMatch(request.url(), /\/events$/));
      await tab.goto(`${near.api}/#/agents`);
      await tab.getByRole('heading', { level: 1, name: 'Agents' }).waitFor({ timeout: MINUTE_MS });
    }
    assert.equal(streams(), before);
    await Promise.all(tabs.map((tab) => tab.close()));
  });
});

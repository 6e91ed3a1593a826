import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { NO_CHROMIUM, openWithoutStorage, startChromium } from '../../support/browser/chromium.ts';
import { hideAndShow, PanelPage } from '../../support/browser/panel-page.ts';
import { TestDaemon } from '../../support/daemon.ts';

const TOKEN = 'correct-horse-battery-staple';

const HOME = { level: 1, name: /not on the network|No agents yet/ };

/** Logs in with the token of the API. */
async function enter(page: Page): Promise<void> {
  await page.getByLabel('Or enter the API token').fill(TOKEN);
  await page.getByRole('button', { name: 'Log in' }).click();
}

test('with a token, a code opens the panel once, and the API token is exchanged immediately', {
  skip: NO_CHROMIUM,
}, async (t) => {
  await using daemon = await TestDaemon.start({ config: `api_token = "${TOKEN}"\nrequire_local_token = true\n` });
  const answer = await daemon.request('POST', '/panel/login', {}, { authorization: `Bearer ${TOKEN}` });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  const { code } = answer.body as { code: string };
  await using browser = await startChromium();
  await using byCode = await PanelPage.open(browser, daemon.api, `/#login=${code}`);
  await byCode.page.getByRole('heading', HOME).waitFor();
  assert.equal(await byCode.page.evaluate('location.hash'), '#/');
  await byCode.check('opened by a code');
  await byCode.keepsToItself(TOKEN);

  await using again = await PanelPage.open(browser, daemon.api, `/#login=${code}`);
  const door = again.page.getByRole('heading', { level: 1, name: 'Log in' });
  await door.waitFor();
  await again.page.getByLabel('Or enter the API token').fill('wrong');
  await again.page.getByRole('button', { name: 'Log in' }).click();
  await again.page.getByRole('alert').waitFor();
  await enter(again.page);
  await again.page.getByRole('heading', HOME).waitFor();
  const kept = await again.page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])');
  assert.ok(!kept.includes(TOKEN));

  await t.test('a master key that is not registered yet outlives the session', async () => {
    const { page } = again;
    await again.go('new', 'New agent');
    await page.getByRole('button', { name: 'Create keys' }).click();
    const aid = await page.locator('.who code').innerText();
    type Sessions = { sessions: readonly { id: string }[] };
    const headers = { authorization: `Bearer ${TOKEN}` };
    const { sessions } = (await daemon.request('GET', '/panel/sessions', undefined, headers)).body as Sessions;
    for (const { id } of sessions) await daemon.request('DELETE', `/panel/sessions/${id}`, {}, headers);
    // A visible tab sends its queries immediately.
    await hideAndShow(page);
    await door.waitFor();
    await enter(page);
    await page.getByText(aid).waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
  });

  await t.test('a browser that blocks storage shows the panel, and the panel follows the events', async (blocked) => {
    const context = await openWithoutStorage(blocked);
    const page = await context.newPage();
    page.on('pageerror', (error) => assert.fail(error));
    await page.clock.install();
    const answered = (code: number) =>
      page.waitForResponse((response) => response.url() === `${daemon.api}/events` && response.status() === code);
    const refused = answered(401);
    await page.goto(daemon.api);
    await assert.rejects(page.evaluate('localStorage.length'), /SecurityError/);
    await refused;
    // The page's time stops: the login makes the panel follow the events, not the next try.
    await page.clock.pauseAt(Date.now() + 60_000);
    const followed = answered(200);
    await enter(page);
    await page.getByRole('heading', HOME).waitFor();
    await page.getByLabel('Color scheme').selectOption('dark');
    assert.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark');
    await page.getByLabel('Language').selectOption('de');
    await page.getByLabel('Sprache').waitFor();
    await followed;
  });
});

test('tabs share a session: another tab, a rejected code and an ended session cost no login and no key', {
  skip: NO_CHROMIUM,
}, async () => {
  await using daemon = await TestDaemon.start({ config: `api_token = "${TOKEN}"\nrequire_local_token = true\n` });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const sessions = async (): Promise<readonly { id: string }[]> => {
    const { body } = await daemon.request('GET', '/panel/sessions', undefined, headers);
    return (body as { sessions: readonly { id: string }[] }).sessions;
  };
  await using browser = await startChromium();
  await using panel = await PanelPage.open(browser, daemon.api);
  const first = panel.page;
  await enter(first);
  await first.getByRole('heading', HOME).waitFor();
  await panel.go('new', 'New agent');
  await first.getByRole('button', { name: 'Create keys' }).click();
  const aid = await first.locator('.who code').getAttribute('title');
  assert.ok(aid !== null);

  // A second tab gets the session of the first one.
  const second = await panel.context.newPage();
  await second.goto(daemon.api);
  await second.getByRole('heading', HOME).waitFor();
  assert.equal((await sessions()).length, 1);

  // The browser freezes the first tab while the user works in another one.
  const devtools = await panel.context.newCDPSession(first);
  await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
  await second.bringToFront();
  await devtools.send('Page.setWebLifecycleState', { state: 'active' });
  await first.bringToFront();
  await first.getByTitle(aid).first().waitFor();

  // A code that has been used already does not end the session of the tab.
  await second.goto('about:blank');
  await second.goto(`${daemon.api}/#login=AAAAAAAAAAAAAAAAAAAAAA`);
  await second.getByRole('heading', HOME).waitFor();

  // All sessions end. The second tab does not get the token of the first one, which has not noticed it yet. After a
  // login in one tab both work again, and the first one still has the key.
  for (const { id } of await sessions()) await daemon.request('DELETE', `/panel/sessions/${id}`, {}, headers);
  await second.reload();
  await second.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
  await hideAndShow(first);
  await first.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
  await enter(second);
  await second.getByRole('heading', HOME).waitFor();
  await first.getByTitle(aid).first().waitFor();
  assert.equal((await sessions()).length, 1);
});

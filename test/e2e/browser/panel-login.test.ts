import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { PanelPage } from '../../support/browser/panel-page.ts';
import { TestDaemon } from '../../support/daemon.ts';

const TOKEN = 'correct-horse-battery-staple';

test('where a token is needed, a code opens the panel once, and the token of the API is exchanged at once', {
  skip: NO_CHROMIUM,
}, async () => {
  await using daemon = await TestDaemon.start({ config: `api_token = "${TOKEN}"\nrequire_local_token = true\n` });
  const answer = await daemon.request('POST', '/panel/login', {}, { authorization: `Bearer ${TOKEN}` });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  const { code } = answer.body as { code: string };
  await using browser = await startChromium();
  await using byCode = await PanelPage.open(browser, daemon.api, `/#login=${code}`);
  const home = { level: 1, name: /not on the network|no agent here yet/ };
  await byCode.page.getByRole('heading', home).waitFor();
  assert.equal(await byCode.page.evaluate('location.hash'), '#/');
  await byCode.check('opened by a code');
  await byCode.keepsToItself(TOKEN);

  await using again = await PanelPage.open(browser, daemon.api, `/#login=${code}`);
  const door = again.page.getByRole('heading', { level: 1, name: 'Open the panel' });
  await door.waitFor();
  await again.page.getByLabel('Or the API token').fill('wrong');
  await again.page.getByRole('button', { name: 'Enter' }).click();
  await again.page.getByRole('alert').waitFor();
  await again.page.getByLabel('Or the API token').fill(TOKEN);
  await again.page.getByRole('button', { name: 'Enter' }).click();
  await again.page.getByRole('heading', home).waitFor();
  const kept = await again.page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])');
  assert.ok(!kept.includes(TOKEN));
});

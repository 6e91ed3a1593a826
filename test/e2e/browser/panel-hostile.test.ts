/** All pages of the panel with hostile texts in place of each text that others wrote. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { addHook } from '../../support/add-hook.ts';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { EXAMINE, GROUP_COUNT, HOSTILE_TEXTS, HostileApi } from '../../support/browser/hostile-texts.ts';
import { PanelPage } from '../../support/browser/panel-page.ts';
import { RecordedSite } from '../../support/browser/recorded-site.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const DESKTOP_AND_PHONE = [1280, 320];
/** Loads of one page. It shows other texts each time. */
const MAX_LOADS = 4;

interface Examined {
  readonly shown: readonly number[];
  readonly wrong: readonly string[];
}

/** A node with something on every page. Returns the routes of the pages. */
async function furnish(daemon: TestDaemon, folder: string, port: number): Promise<string[]> {
  const [own, stranger] = [await daemon.newAgent(), await daemon.newAgent()];
  const friend = await daemon.newAgent(`127.0.0.1:${port}`);
  const call = <T = unknown>(method: string, path: string, body?: unknown) => daemon.call<T>(method, path, body);
  for (const aid of [own, friend]) {
    await call('POST', `/agents/${aid}/profile`, { name: 'x', brief: 'x', skills: ['x'] });
    await call('POST', `/agents/${aid}/publish`);
  }
  await call('PUT', '/node/address-book', {
    aliases: { [own]: 'one', [friend]: 'two' },
    favorites: [{ aid: friend, skill: 'x' }],
  });
  await call('POST', `/agents/${friend}/chat/request`, { peer: own, note: 'x' });
  const contacts = () => call<{ in_pending: unknown[]; friends: unknown[] }>('GET', `/agents/${own}/chat/contacts`);
  await eventually('the request', async () => (await contacts()).in_pending.length > 0);
  await call('POST', `/agents/${own}/chat/accept`, { peer: friend });
  await eventually('friends', async () => (await contacts()).friends.length > 0);
  const text = Buffer.from('x').toString('base64');
  for (let i = 0; i < 3; i++) await call('POST', `/agents/${friend}/chat/send`, { peer: own, text: 'x' });
  await call('POST', `/agents/${stranger}/chat/request`, { peer: own, note: 'x' });
  await call('POST', `/agents/${friend}/mailbox/send`, { recipient: own, msg_type: 3, body_base64: text });
  writeFileSync(join(folder, 'x.txt'), 'x');
  await addHook(daemon, { aid: own, kind: 'note', command: ['/bin/sh', '-c', 'echo x'], folder });
  await call('POST', `/origins/${friend}`, { local_aid: own });
  await call('POST', `/agents/${own}/acl/allow`, { aid: friend, label: 'x' });
  const agent = ['', 'use', 'access', 'profile', 'services', 'keys', 'tunnels', 'hooks', 'hub', 'webhooks', 'origins'];
  return [
    ...['', 'agents', 'people', 'discover', `discover/${friend}`, `messages/${own}`, `messages/${own}/chat/${friend}`],
    ...[`messages/${own}/notes`, 'files', `files/${own}`, 'new'],
    ...['node', 'node/settings', 'node/log', 'node/book', 'node/doctor', 'node/peers', 'node/admin', 'node/update'],
    ...agent.map((tab) => `agents/${own}${tab === '' ? '' : `/${tab}`}`),
  ];
}

test('200 hostile texts run nothing, break no layout and turn no other text, on each page', {
  skip: NO_CHROMIUM,
}, async (t) => {
  assert.ok(HOSTILE_TEXTS.length >= 200);
  await using daemon = await TestDaemon.start();
  await using service = await RecordedSite.start((_request, response) => void response.end('x'));
  const routes = await furnish(daemon, temporaryDirectory(t), service.port);
  await using browser = await startChromium();
  await using panel = await PanelPage.open(browser, daemon.api);
  const { page } = panel;
  const dialogs: string[] = [];
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  const isFile = /^\/(?:panel\/|$|favicon)/;
  await HostileApi.in(page, (url) => url.origin === daemon.api && !isFile.test(url.pathname));
  const problems: string[] = [];
  const all = new Set<number>();
  for (const route of routes) {
    const onPage = new Set<number>();
    for (let load = 0; load < MAX_LOADS; load++) {
      await page.goto(`${daemon.api}/?${load}#/${route}`);
      await panel.go(route, /./);
      const { shown, wrong } = await page.evaluate<Examined>(EXAMINE);
      problems.push(...wrong.map((one) => `page "${route}": ${one}`));
      // The layout with the first texts, and with the last ones, which are the widest.
      const isWide = shown.includes(GROUP_COUNT - 1) && !onPage.has(GROUP_COUNT - 1);
      if (load === 0 || isWide) await panel.fits(`page "${route}"`, DESKTOP_AND_PHONE);
      for (const one of shown) onPage.add(one);
      if (onPage.size === GROUP_COUNT) break;
    }
    for (const one of onPage) all.add(one);
  }
  assert.deepEqual([...new Set(problems)], []);
  assert.equal(all.size, GROUP_COUNT);
  assert.deepEqual(dialogs, []);
  assert.deepEqual(await page.evaluate('violations'), []);
});

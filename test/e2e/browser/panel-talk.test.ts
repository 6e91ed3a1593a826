import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { PanelPage } from '../../support/browser/panel-page.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { ready } from '../../support/network.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const HOSTILE = '<b>bold</b>\u202Eevil';
/** Of entries. */
const MORE_THAN_A_PAGE = 55;
const FILE = 'six times nine';

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: /Write as/ }).fill(text);
  await page.keyboard.press('Enter');
}

/** Chooses a file to be sent in the conversation that is open. */
async function attach(page: Page, name: string): Promise<void> {
  const [chooser] = await Promise.all([
    page.waitForEvent('filechooser'),
    page.getByRole('button', { name: 'Attach a file' }).click(),
  ]);
  await chooser.setFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(FILE) });
}

/** Saves the file of the line that names it, and compares it. */
async function saves(page: Page, name: string): Promise<void> {
  const line = page.getByRole('listitem').filter({ hasText: name });
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    line.getByRole('button', { name: 'Save' }).click(),
  ]);
  assert.equal(download.suggestedFilename(), name);
  assert.equal(await readFile(await download.path(), 'utf8'), FILE);
}

test('two users chat, share a group and send files with the panels of their nodes', {
  skip: NO_CHROMIUM,
}, async (t) => {
  const dataDir = temporaryDirectory(t);
  await using near = await TestDaemon.start();
  const bootstrap = [near.dhtAddress];
  const away = await TestDaemon.start({ dataDir, bootstrap });
  await Promise.all([ready(near), ready(away)]);
  const [ann, ben] = [await near.newAgent(), await away.newAgent()];
  await near.call('POST', `/agents/${ann}/publish`);
  await away.call('POST', `/agents/${ben}/publish`);
  await using browser = await startChromium();
  await using annPanel = await PanelPage.open(browser, near.api, `/#/messages/${ann}`);
  const { page } = annPanel;
  const rooms = (): Promise<void> => annPanel.go(`messages/${ann}`, 'Messages');

  await t.test('one sends a request, the other accepts, and both write', async () => {
    await using benPanel = await PanelPage.open(browser, away.api, `/#/messages/${ben}`);
    const other = benPanel.page;
    await page.getByRole('button', { name: 'Send chat request' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('combobox', { name: 'Agent' }).fill(ben);
    await dialog.getByLabel('Message to the agent').fill(HOSTILE);
    await dialog.getByRole('button', { name: 'Send chat request' }).click();
    await other.getByRole('link', { name: /sent a chat request/ }).click();
    const note = other.locator('blockquote');
    await note.waitFor();
    assert.match(await note.innerText(), /<b>bold<\/b>\\u202eevil/i);
    await benPanel.check('chat request');
    await other.getByRole('button', { name: 'Accept' }).click();
    await say(other, 'Hello Ann');
    await page.getByRole('link', { name: new RegExp(`${ben.slice(0, 12)}.*1`) }).click();
    // The list of conversations also shows the newest message too.
    await page.getByRole('list', { name: 'Messages' }).getByText('Hello Ann').waitFor();
    await page.getByText('1 new').waitFor();
    await annPanel.check('chat');
    type Contacts = { friends: { unread_count: number }[] };
    const contacts = await near.call<Contacts>('GET', `/agents/${ann}/chat/contacts`);
    assert.equal(contacts.friends[0]?.unread_count, 1, 'reading marks nothing as read');
    await page.getByRole('button', { name: 'Mark as read' }).click();
    await page.getByText('1 new').waitFor({ state: 'hidden' });
    await attach(page, 'answer.txt');
    await saves(other, 'answer.txt');
    await page.getByRole('link', { name: /answer\.txt/ }).waitFor();
  });

  await t.test('a message to an offline agent is queued', async () => {
    await away.stop();
    await say(page, 'Are you there?');
    await page.getByRole('listitem').filter({ hasText: 'Are you there?' }).getByText('queued').waitFor();
    await annPanel.check('chat with a queued message');
  });
  await using far = await TestDaemon.start({ dataDir, bootstrap });
  await ready(far);
  await far.call('POST', `/agents/${ben}/publish`);
  await using benPanel = await PanelPage.open(browser, far.api, `/#/messages/${ben}/chat/${ann}`);
  const other = benPanel.page;

  await t.test('it is delivered when the agent is back', async () => {
    // A message from the returned agent shows the other one that it is online.
    await say(other, 'I am back');
    await page.getByRole('list', { name: 'Messages' }).getByText('I am back').waitFor();
    await other.getByRole('list', { name: 'Messages' }).getByText('Are you there?').waitFor();
    const line = page.getByRole('listitem').filter({ hasText: 'Are you there?' });
    await line.getByText('delivered').waitFor();
  });

  await t.test('a group is created, an agent is invited, and both write and send files', async () => {
    await page.getByRole('button', { name: 'New group' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Title').fill('Harvest');
    await dialog.getByRole('button', { name: 'New group' }).click();
    await page.getByRole('button', { name: '1 member' }).click();
    await dialog.getByRole('combobox', { name: 'Agent' }).fill(ben);
    await dialog.getByRole('button', { name: 'Invite' }).click();
    await page.getByText('Invitation sent.').waitFor();
    await annPanel.check('members of a group');
    await dialog.getByRole('button', { name: 'Close' }).click();
    await other.getByRole('link', { name: /invites you to a group/ }).click();
    await other.getByText('“Harvest”').waitFor();
    await benPanel.check('invited to a group');
    await other.getByRole('button', { name: 'Accept' }).click();
    await say(other, 'Two sources disagree.');
    await page.getByRole('list', { name: 'Messages' }).getByText('Two sources disagree.').waitFor();
    await page.getByText(/joined/).waitFor();
    await attach(page, 'sources.txt');
    await saves(other, 'sources.txt');
    await annPanel.check('group');
    await benPanel.check('group of a member');
  });

  await t.test('earlier entries load when the user scrolls to them', async () => {
    const { groups } = await near.call<{ groups: { group_id: string }[] }>('GET', `/agents/${ann}/groups`);
    for (let i = 1; i <= MORE_THAN_A_PAGE; i++) {
      const body = Buffer.from(`entry ${i} of many`).toString('base64');
      await near.call('POST', '/mcp/call', {
        tool: 'group_append',
        args: { aid: ann, group_id: groups[0]?.group_id, body },
      });
    }
    await rooms();
    await page.getByRole('link', { name: /Harvest/ }).click();
    await page.getByText(`entry ${MORE_THAN_A_PAGE} of many`).last().waitFor();
    assert.equal(await page.getByText('created the group').count(), 0);
    await page.getByRole('list', { name: 'Messages' }).focus();
    await page.keyboard.press('Home');
    await page.getByText('created the group').waitFor();
    await page.getByRole('button', { name: 'Earlier' }).waitFor({ state: 'hidden' });
    await annPanel.check('older entries');
  });

  await t.test('a member leaves, and the group shows it', async () => {
    await other.getByRole('main').getByText('More').click();
    await other.getByRole('button', { name: 'Leave' }).click();
    await other.getByRole('dialog').getByRole('button', { name: 'Leave' }).click();
    await other.getByText('No groups').waitFor();
    await rooms();
    await page.getByRole('link', { name: /Harvest/ }).click();
    await page
      .getByRole('listitem')
      .filter({ hasText: `${ben.slice(0, 12)}… left` })
      .waitFor();
  });

  await t.test('a note arrives in the mailbox and is deleted there', async () => {
    await rooms();
    await page.getByRole('link', { name: 'Mailbox' }).click();
    await page.getByRole('button', { name: 'Write note' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('combobox', { name: 'To' }).fill(ben);
    await dialog.getByLabel('Message').fill('Later then');
    await dialog.getByRole('button', { name: 'Send' }).click();
    await other.getByRole('link', { name: /Mailbox/ }).click();
    await other.getByText('Later then').waitFor();
    await benPanel.check('notes');
    // The invitation came as a note too.
    const note = other.getByRole('listitem').filter({ hasText: 'Later then' });
    await note.getByRole('button', { name: 'Delete' }).click();
    await other.getByRole('dialog').getByRole('button', { name: 'Delete note' }).click();
    await note.waitFor({ state: 'hidden' });
  });
});

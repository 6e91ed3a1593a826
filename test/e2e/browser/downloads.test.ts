import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Download, Page } from 'playwright-core';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { answerHostile } from '../../support/browser/hostile-agent.ts';
import { RecordedSite } from '../../support/browser/recorded-site.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { ready } from '../../support/network.ts';
import { sha256 } from '../../support/object-world.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const SCRIPT = '<!doctype html><title>agent</title><script>document.title="ran"</script>';

/** File names as a service sends them, and as a browser saves them. */
const NAMES: Readonly<Record<string, string>> = {
  'attachment; filename="../../.bashrc"': '_.._.bashrc',
  "attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd": '_.._etc_passwd',
  'attachment; filename="C:\\\\Windows\\\\x.html"': 'C__Windows_x.html',
  "attachment; filename*=UTF-8''photo%E2%80%AEgpj.exe": 'photo_gpj.exe',
};

/** Opens a URL that the browser saves and does not show. */
async function saved(page: Page, url: string): Promise<Download> {
  const [download] = await Promise.all([page.waitForEvent('download'), page.goto(url).catch(() => null)]);
  return download;
}

test('a file saved by an agent is never shown and cannot choose its path', { skip: NO_CHROMIUM }, async (t) => {
  const env = { SVCD_FILES_ROOT: temporaryDirectory(t) };
  await using far = await TestDaemon.start({ env });
  await using near = await TestDaemon.start({ bootstrap: [far.dhtAddress] });
  await ready(near);
  await using service = await RecordedSite.start((request, response) =>
    answerHostile({ evil: 'http://evil.test', prefix: '' }, request, response),
  );
  const aid = await far.newAgent(`127.0.0.1:${service.port}`);
  await far.call('POST', `/agents/${aid}/publish`);
  const name = 'photo\u202Egpj.html';
  const upload = await fetch(`${far.api}/agents/${aid}/cas?name=${encodeURIComponent(name)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream' },
    body: SCRIPT,
  });
  assert.equal(upload.status, 200, await upload.text());
  await using browser = await startChromium();
  const page = await browser.newPage();
  const answers = new Map<string, string | undefined>();
  page.on('response', (response) => answers.set(response.url(), response.headers()['content-type']));

  const object = `${near.api}/aid/${aid}/cas/${sha256(Buffer.from(SCRIPT))}`;
  const download = await saved(page, object);
  assert.equal(download.suggestedFilename(), 'photogpj.html');
  assert.equal(readFileSync(await download.path(), 'utf8'), SCRIPT);
  assert.equal(answers.get(object), 'application/octet-stream');
  for (const [disposition, offered] of Object.entries(NAMES)) {
    const file = await saved(page, `${near.api}/aid/${aid}/save?${encodeURIComponent(disposition)}`);
    assert.equal(file.suggestedFilename(), offered);
  }
  assert.equal(page.url(), 'about:blank');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { RecordedSite } from '../../support/browser/recorded-site.ts';
import { TappedApi } from '../../support/browser/tapped-api.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { eventually, LIMIT_MS } from '../../support/eventually.ts';

/** Records what the policy of a page blocks. It runs before the page. */
const WATCH = `globalThis.violations = [];
addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective + ' ' + e.blockedURI));`;

test('the page of the API works under its policy, sends requests to no other server, and ignores options in its address', {
  skip: NO_CHROMIUM,
}, async () => {
  await using daemon = await TestDaemon.start();
  await using api = await TappedApi.start(daemon.api);
  await using evil = await RecordedSite.start((_request, response) => {
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ url: '/config.json', openapi: '3.1.0', info: { title: 'evil', version: '1' }, paths: {} }),
    );
  });
  await using browser = await startChromium();
  const context = await browser.newContext();
  await context.addInitScript(WATCH);
  const page = await context.newPage();
  const there = encodeURIComponent(`${evil.at('evil.test')}/openapi.json`);
  const orders = `url=${there}&configUrl=${there}&urls.primaryName=${there}&oauth2RedirectUrl=${there}&validatorUrl=${there}`;
  // Swagger UI accepts the document to show in its address. This page must ignore it.
  assert.equal((await page.goto(`${api.url}/docs?${orders}`))?.status(), 400);
  const asked: string[] = [];
  const errors: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  page.on('pageerror', ({ message }) => errors.push(message));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  const answer = await page.goto(`${api.url}/docs`);
  assert.match(answer?.headers()['content-security-policy'] ?? '', /frame-ancestors 'none'/);
  const operation = page.locator('.opblock', { has: page.locator('[data-path="/health"]') }).first();
  await operation.waitFor({ timeout: LIMIT_MS });
  // Swagger UI lists what it finds wrong with the document above the operations.
  assert.deepEqual(await page.locator('.errors-wrapper').allInnerTexts(), []);
  await operation.locator('.opblock-summary-control').click();
  await operation.locator('.try-out__btn').click();
  await operation.locator('.execute').click();
  const status = operation.locator('.live-responses-table .response-col_status').nth(1);
  await status.waitFor();
  assert.equal((await status.innerText()).trim(), '200');
  await page.evaluate(`location.hash = "#/<img src=x onerror=violations.push('ran')>"`);
  assert.deepEqual(await page.evaluate('violations'), []);
  assert.deepEqual(errors, []);
  assert.deepEqual(evil.asked, []);
  for (const url of asked) assert.ok(url.startsWith(`${api.url}/`) || url.startsWith('data:'), url);
  assert.ok(api.asked.some(({ path, status: code }) => path === '/health' && code === 200));
  // The policy blocks inline scripts and everything from other origins.
  await page.evaluate(`document.body.append(Object.assign(document.createElement('script'), { text: 'violations.push("ran")' }),
    Object.assign(document.createElement('img'), { src: '${evil.at('evil.test')}/image' }))`);
  await assert.rejects(page.evaluate(`fetch('${evil.at('evil.test')}/read')`));
  // The page is notified of each a moment after it was blocked.
  const expected = new Set(['script-src-elem', 'img-src', 'connect-src']);
  const stopped = await eventually('all were stopped', async () => {
    const found = new Set((await page.evaluate<string[]>('violations')).map((text) => text.split(' ')[0]));
    return found.size >= expected.size && found;
  });
  assert.deepEqual(stopped, expected);
  assert.deepEqual(evil.asked, []);
});

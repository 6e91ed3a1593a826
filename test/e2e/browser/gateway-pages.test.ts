import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Browser } from 'playwright-core';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { answerHostile, SCRIPTED } from '../../support/browser/hostile-agent.ts';
import { RecordedSite } from '../../support/browser/recorded-site.ts';
import { TappedApi } from '../../support/browser/tapped-api.ts';
import { eventually } from '../../support/eventually.ts';
import { TestNetwork } from '../../support/network.ts';

/** The requests of the same page without a gateway. They prove that the attacks are real. */
const ACTED_ON = ['/rules.json', '/link-prefetch', '/stylesheet', '/background', '/image', '/frame'].map(
  (path) => `GET ${path}`,
);

/** A page of the API under the policy of `/docs`, which allows scripts of the same origin; shown as text. */
const OWN_PAGE = '/docs/start.js';

/** Attacks by a script of the page. Each must fail. */
const TRIES: Readonly<Record<string, string>> = {
  'read the API': `fetch('/agents').then((answer) => answer.text())`,
  'write to the API': `fetch('/identity/generate', { method: 'POST', mode: 'no-cors', body: '{}' })`,
  'ask the API synchronously': `(() => { const r = new XMLHttpRequest(); r.open('GET', '/agents', false); r.send(); return r.responseText; })()`,
  'call another agent': `fetch(victim).then((answer) => answer.text())`,
  'call itself': `fetch(location.href).then((answer) => answer.text())`,
  'open a window': `open(victim) ?? Promise.reject(new Error('no window'))`,
  'take its frame': `(() => { const f = document.body.appendChild(document.createElement('iframe')); f.src = '/docs'; return f.contentDocument.body.outerHTML || Promise.reject(new Error('empty')); })()`,
  'set a cookie': `void (document.cookie = 'agent=1')`,
  'read cookies': `document.cookie`,
  'keep something': `localStorage.setItem('agent', '1')`,
  'open a database': `indexedDB.open('agent')`,
  'start a worker': `new Worker('script.js')`,
  'start a shared worker': `new SharedWorker('script.js')`,
  'keep something for the session': `sessionStorage.setItem('agent', '1')`,
  'open a cache': `caches.open('agent')`,
  'register a service worker': `navigator.serviceWorker.register(location.pathname + 'script.js')`,
  'load a script': `import(location.pathname + 'script.js')`,
};

interface World {
  /** The API of the node whose user views the agent. */
  readonly api: TappedApi;
  /** The URL that the page of the agent tries to call. */
  readonly evil: RecordedSite;
  /** Path of the hostile agent. */
  readonly prefix: string;
  /** Path of another agent. */
  readonly victim: string;
  readonly browser: Browser;
}

async function publish(network: TestNetwork, service: RecordedSite): Promise<string> {
  const far = network.at(1);
  const aid = await far.newAgent(`127.0.0.1:${service.port}`);
  await far.call('POST', `/agents/${aid}/publish`);
  return aid;
}

test('a hostile agent', { skip: NO_CHROMIUM }, async (t) => {
  await using network = await TestNetwork.start(2);
  await using evil = await RecordedSite.start((_request, response) => void response.end());
  await using victims = await RecordedSite.start((_request, response) => void response.end('the victim'));
  let prefix = '';
  await using service = await RecordedSite.start((request, response) =>
    answerHostile({ evil: evil.at('evil.test'), prefix }, request, response),
  );
  prefix = `/aid/${await publish(network, service)}`;
  const victim = `/aid/${await publish(network, victims)}/`;
  await using api = await TappedApi.start(network.at(0).api);
  await using browser = await startChromium();
  const world: World = { api, evil, prefix, victim, browser };
  await t.test('has nothing run, loaded, sent or kept', () => showsItself(world));
  await t.test('runs no script in a document of any type', () => runsNoScript(world));
  await t.test('would reach nothing with a script', () => reachesNothing(world));
  await t.test('runs no script in a page of the API, and no worker', () => isNoScript(world));
  await t.test('cannot be framed or read by its opener', () => isAlone(world));
  assert.deepEqual(victims.asked, []);
  assert.deepEqual(evil.asked, []);
});

/** Settles when the browser has sent all requests of the same page without a gateway. */
async function actedOn({ browser }: World): Promise<void> {
  await using evil = await RecordedSite.start((_request, response) => void response.end());
  await using site = await RecordedSite.start((request, response) => {
    if (request.url === '/') answerHostile({ evil: evil.at('evil.test'), prefix: '' }, request, response);
    else response.end();
  });
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(site.at('site.test'), { waitUntil: 'commit' });
  const wanted = new Set(ACTED_ON);
  await eventually('the requests of the page', () => wanted.difference(new Set(evil.asked)).size === 0);
  await context.close();
}

async function showsItself(world: World): Promise<void> {
  const { api, prefix, browser } = world;
  const context = await browser.newContext();
  const docs = await context.newPage();
  await docs.goto(`${api.url}${OWN_PAGE}`);
  await docs.evaluate(`localStorage.setItem('kept', 'yes')`);
  const page = await context.newPage();
  api.asked.length = 0;
  assert.equal((await page.goto(`${api.url}${prefix}/early`))?.status(), 200);
  await page.goto(`${api.url}${prefix}/`);
  for (const id of ['script', 'form', 'api-form', 'ping']) await page.click(`#${id}`);
  await actedOn(world);
  assert.equal(await page.title(), 'agent');
  assert.equal(page.url(), `${api.url}${prefix}/#here`);
  for (const id of ['api', 'download']) {
    await page.goto(`${api.url}${prefix}/`);
    await page.click(`#${id}`);
    await page.waitForURL(`${api.url}/agents`);
    assert.match(await page.content(), /forbidden_origin/, id);
  }
  const reached = api.asked.filter(({ path, status }) => status !== 403 && path !== '/favicon.ico');
  assert.deepEqual(
    reached.map(({ method, path }) => `${method} ${path}`),
    ['early', '', '', ''].map((path) => `GET ${prefix}/${path}`),
  );
  assert.deepEqual(await context.cookies(), []);
  assert.deepEqual(context.serviceWorkers(), []);
  assert.equal(await docs.evaluate(`localStorage.getItem('kept')`), 'yes');
  await context.close();
}

async function runsNoScript({ api, prefix, browser }: World): Promise<void> {
  const page = await browser.newPage();
  for (const path of Object.keys(SCRIPTED)) {
    await page.goto(`${api.url}${prefix}${path}`);
    assert.notEqual(await page.title(), 'ran', path);
    assert.equal(await page.evaluate('origin'), 'null', path);
  }
  await page.close();
}

async function reachesNothing({ api, prefix, victim, browser }: World): Promise<void> {
  const page = await browser.newPage();
  await page.goto(`${api.url}${prefix}/`);
  for (const [what, script] of Object.entries(TRIES)) {
    const tried = `(async (victim) => ${script})(${JSON.stringify(victim)}).then(() => 'done', () => 'failed')`;
    assert.equal(await page.evaluate(tried), 'failed', what);
  }
  await page.close();
}

/** A service cannot provide scripts for API pages, which allow scripts of the same origin. */
async function isNoScript({ api, prefix, browser }: World): Promise<void> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${api.url}${OWN_PAGE}`);
  const title = await page.title();
  const loaded = (tag: string, attribute: string, more: string): string =>
    `new Promise((resolve) => {
      const element = Object.assign(document.createElement('${tag}'), ${more});
      element.onload = () => resolve('loaded');
      element.onerror = () => resolve('refused');
      element.${attribute} = '${prefix}/script.js';
      document.head.append(element);
    })`;
  assert.equal(await page.evaluate(loaded('script', 'src', '{}')), 'refused');
  assert.equal(await page.evaluate(loaded('script', 'src', `{ type: 'module' }`)), 'refused');
  assert.equal(await page.evaluate(loaded('link', 'href', `{ rel: 'stylesheet' }`)), 'refused');
  const register = `navigator.serviceWorker.register('${prefix}/script.js', { scope: '${prefix}/' })`;
  assert.equal(await page.evaluate(`${register}.then(() => 'registered', () => 'refused')`), 'refused');
  assert.deepEqual(context.serviceWorkers(), []);
  assert.equal(await page.title(), title);
  await context.close();
}

async function isAlone({ api, prefix, browser }: World): Promise<void> {
  const url = `${api.url}${prefix}/page.html`;
  const frames = ['/docs', `${prefix}/page.html`].map((path) => `<iframe src="${api.url}${path}"></iframe>`).join('');
  await using site = await RecordedSite.start((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(`<!doctype html><a href="${url}" target="_blank" rel="opener">open</a>${frames}`);
  });
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(site.at('evil.test'));
  assert.equal(page.frames().length, 3);
  // The page loads before the result of its frames is known.
  await eventually('both frames show that they were refused', () =>
    page.frames().every((frame) => frame === page.mainFrame() || frame.url() === 'chrome-error://chromewebdata/'),
  );
  await page.evaluate(
    `document.querySelector('a').onclick = (e) => { e.preventDefault(); globalThis.opened = open(e.target.href); }`,
  );
  const [popup] = await Promise.all([context.waitForEvent('page'), page.click('a')]);
  await popup.waitForURL(url);
  assert.equal(await popup.title(), 'agent');
  assert.equal(
    await page.evaluate(`(() => { try { return opened.document.title } catch { return 'refused' } })()`),
    'refused',
  );
  await context.close();
}

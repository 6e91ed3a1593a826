import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Frame, Page } from 'playwright-core';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { type Leak, pageAttacks, READABLE } from '../../support/browser/page-attacks.ts';
import { RecordedSite } from '../../support/browser/recorded-site.ts';
import { type AskedRequest, TappedApi } from '../../support/browser/tapped-api.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** Method, destination and mode of requests that a browser sends for a page of another site, each at least once. */
const CROSS_SITE = [
  ...['GET empty cors', 'GET empty no-cors', 'OPTIONS empty cors', 'POST empty cors', 'POST empty no-cors'],
  ...['GET script cors', 'GET script no-cors', 'GET style no-cors', 'GET font cors', 'GET image no-cors'],
  ...['GET iframe navigate', 'GET embed navigate', 'GET object navigate', 'GET document navigate'],
  ...['GET track cors', 'GET video no-cors', 'GET audio no-cors', 'POST iframe navigate', 'GET - -'],
];
/** A browser sends no such headers to an untrustworthy origin, and same-origin requests need no preflight. */
const REBOUND = ['GET - -', 'POST - -', 'PUT - -', 'PATCH - -', 'DELETE - -'];

function kindOf({ method, headers }: AskedRequest): string {
  return `${method} ${headers.get('sec-fetch-dest') ?? '-'} ${headers.get('sec-fetch-mode') ?? '-'}`;
}

/** State that other sites must not change. */
async function stateOf(daemon: TestDaemon, aid: string): Promise<unknown> {
  const { agents } = await daemon.call<{ agents: { aid: string }[] }>('GET', '/agents');
  const node = ['/config', '/node/address-book', '/node/remote-admin', '/tunnel'];
  const agent = ['/acl', '/mailbox', '/chat/contacts', '/groups'].map((path) => `/agents/${aid}${path}`);
  return [
    agents.map((one) => one.aid),
    ...(await Promise.all([...node, ...agent].map((path) => daemon.call('GET', path)))),
  ];
}

interface Place {
  readonly name: string;
  /** Opens the attacking page. */
  readonly open: (page: Page) => Promise<Page | Frame>;
  /** URL of the API for the page. */
  readonly api: string;
  readonly kinds: readonly string[];
  /** Responses that the page may read. */
  readonly readable: RegExp;
}

async function framed(page: Page, url: string): Promise<Frame> {
  await page.goto(url);
  return eventually('the frame', () =>
    page.frames().find((frame) => frame.parentFrame() !== null && frame.url() !== ''),
  );
}

const PAGE = '<!doctype html><title>attack</title><body>';
const SANDBOXED = `${PAGE}<iframe sandbox="allow-scripts allow-forms allow-popups" src="/"></iframe>`;

test('no page of another site reads or changes anything, with any request', { skip: NO_CHROMIUM }, async (t) => {
  await using daemon = await TestDaemon.start();
  await using service = await RecordedSite.start((_request, response) => void response.end('the service'));
  const aid = await daemon.newAgent(`127.0.0.1:${service.port}`);
  await using tap = await TappedApi.start(daemon.api, { '/rebound.html': PAGE });
  await using site = await RecordedSite.start((request, response) => {
    const [path = '', query = ''] = (request.url ?? '').split('?');
    if (/^\/30\d$/.test(path)) {
      const headers = { location: decodeURIComponent(query), 'access-control-allow-origin': '*' };
      return void response.writeHead(Number(path.slice(1)), headers).end();
    }
    const report = `manifest-src 'none'; report-uri ${tap.url}/agents/${aid}/heartbeat`;
    response.writeHead(200, { 'content-type': 'text/html', 'content-security-policy': report });
    response.end(path === '/sandboxed' ? SANDBOXED : PAGE);
  });
  const file = join(temporaryDirectory(t), 'attack.html');
  writeFileSync(file, PAGE);
  const at = (url: string) => async (page: Page) => (await page.goto(url), page);
  const foreign = { api: tap.url, kinds: CROSS_SITE, readable: /^$/ };
  const rebound = tap.url.replace('127.0.0.1', 'rebound.test');
  const places: Place[] = [
    { ...foreign, name: 'another site', open: at(site.at('evil.test')) },
    { ...foreign, name: 'another port of this machine', open: at(site.at('127.0.0.1')) },
    { ...foreign, name: 'a name below localhost', open: at(site.at('evil.localhost')) },
    { ...foreign, name: 'a sandboxed frame', open: (page) => framed(page, `${site.at('evil.test')}/sandboxed`) },
    { ...foreign, name: 'a file', open: at(pathToFileURL(file).href) },
    {
      name: 'a name that is pointed to the daemon once its page is there',
      open: at(`${rebound}/rebound.html`),
      api: rebound,
      kinds: REBOUND,
      // It has the same origin, so it can read the refusal.
      readable: /"error":"forbidden_host"|^timing \d+$/,
    },
  ];
  const before = await stateOf(daemon, aid);
  await using browser = await startChromium();
  for (const place of places)
    await t.test(place.name, async () => {
      const context = await browser.newContext();
      const from = await place.open(await context.newPage());
      tap.asked.length = 0;
      await from.evaluate(pageAttacks({ api: place.api, aid, redirect: `${site.at('evil.test')}/` }));
      await eventually(
        'every kind of request',
        () => new Set(place.kinds).difference(new Set(tap.asked.map(kindOf))).size === 0,
      );
      await eventually('every answer', () => tap.asked.every(({ isOver }) => isOver));
      const leaks: Leak[] = await from.evaluate(READABLE);
      await context.close();
      assert.deepEqual(
        leaks.filter(({ what }) => !place.readable.test(what)),
        [],
      );
      // Requests that were open when the page closed have no response.
      const taken = tap.asked.filter(({ status }) => status !== 403 && status !== null);
      assert.deepEqual(
        taken.map(({ method, path, status }) => `${method} ${path} ${status}`),
        [],
      );
      assert.deepEqual(service.asked, []);
      assert.deepEqual(await stateOf(daemon, aid), before);
    });
});

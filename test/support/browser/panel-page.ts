/** The panel in a real browser, with everything written down that must not happen. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page, Request } from 'playwright-core';
import { LIMIT_MS } from '../eventually.ts';

const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
/** Writes down what the policy of a page stops; it runs before the page does. */
const WATCH = `globalThis.violations = [];
addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective + ' ' + e.blockedURI));`;
/** Where pictures of what was checked are kept; none are where it is not set. */
const PICTURES = process.env['PANEL_PICTURES'];
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const AXE_RUN = `axe.run({ runOnly: ${JSON.stringify(TAGS)} }).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ' ' + html.slice(0, 160) + ' ' + failureSummary)))`;

/** What sticks out at the side, and what is wider than the window. */
const OVERFLOW = `(() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  return scrollWidth <= clientWidth ? [] : [...document.querySelectorAll('main *, header *, nav *')]
    .filter((e) => e.getBoundingClientRect().right > clientWidth + 1)
    .map((e) => e.outerHTML.slice(0, 120));
})()`;

export class PanelPage {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly #api: string;
  readonly #errors: string[] = [];
  readonly #requests: Request[] = [];

  private constructor(api: string, context: BrowserContext, page: Page) {
    this.#api = api;
    this.context = context;
    this.page = page;
    page.setDefaultTimeout(LIMIT_MS);
    page.on('request', (request) => this.#requests.push(request));
    page.on('pageerror', ({ message }) => this.#errors.push(message));
    page.on('console', (message) => {
      if (message.type() === 'error') this.#errors.push(message.text());
    });
  }

  /** Opens the panel of the daemon whose API is at `api`. */
  static async open(browser: Browser, api: string, path = '/'): Promise<PanelPage> {
    const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 900 } });
    await context.addInitScript(WATCH);
    const panel = new PanelPage(api, context, await context.newPage());
    await panel.page.goto(`${api}${path}`);
    return panel;
  }

  /** Goes to a route of the panel and waits until it is there. */
  async go(route: string, heading: string | RegExp): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(`#/${route}`)}`);
    await this.page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await this.page.locator('main .empty', { hasText: 'One moment' }).first().waitFor({ state: 'hidden' });
  }

  /** Keeps a picture of the page as it is, where pictures are wanted. */
  async picture(name: string): Promise<void> {
    const path = `${name.replaceAll(/\W+/g, '-')}.png`;
    if (PICTURES !== undefined) await this.page.screenshot({ path: join(PICTURES, path) });
  }

  /** No error, no violation of the policy, nothing that axe finds, no request to anybody else, nothing at the side. */
  async check(where: string): Promise<void> {
    assert.deepEqual(await this.page.evaluate('violations'), [], where);
    assert.deepEqual(this.#errors, [], where);
    await this.page.evaluate(AXE);
    assert.deepEqual(await this.page.evaluate(AXE_RUN), [], where);
    for (const request of this.#requests)
      assert.ok(request.url().startsWith(`${this.#api}/`) || /^(?:blob|data):/.test(request.url()), request.url());
    assert.deepEqual(await this.page.evaluate(OVERFLOW), [], where);
    await this.picture(where);
  }

  /** Paths that were asked for so far. */
  get asked(): readonly string[] {
    return this.#requests.map((request) => `${request.method()} ${request.url().slice(this.#api.length)}`);
  }

  /** A text stands neither in a request nor in what the browser keeps. */
  async keepsToItself(secret: string): Promise<void> {
    for (const request of this.#requests) {
      assert.ok(!request.url().includes(secret));
      assert.ok(!(request.postData() ?? '').includes(secret));
    }
    const kept = await this.page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])');
    assert.ok(!kept.includes(secret));
  }

  /** Forgets errors so far: those of a daemon that was stopped on purpose. */
  forgive(): void {
    this.#errors.length = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close();
  }
}

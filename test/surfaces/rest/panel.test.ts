import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { bindStreams } from '../../../src/operations/handlers/exchange.ts';
import { panelStreams } from '../../../src/operations/panel.ts';
import { PanelFiles, panelPageHandlers } from '../../../src/surfaces/rest/panel-page.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { startWorld, type WorldOptions } from './support.ts';

const TOKEN = 'correct-horse-battery';
const SCRIPT = "console.log('panel');";

function build(directory: string): void {
  const files = { 'app-1.js': 'text/javascript; charset=utf-8', '../../secret': 'text/plain' };
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'manifest.json'), JSON.stringify({ files }));
  writeFileSync(join(directory, 'index.html'), '<!doctype html><script src="/panel/app-1.js"></script>');
  writeFileSync(join(directory, 'app-1.js'), SCRIPT);
  writeFileSync(join(directory, 'unlisted.js'), SCRIPT);
}

function panelWorld(t: TestContext, directory: string, options: WorldOptions = {}) {
  return startWorld(t, {
    ...options,
    streams: bindStreams(
      panelStreams,
      panelPageHandlers(new PanelFiles((name) => readFileSync(join(directory, name)))),
    ),
  });
}

function directoryOf(t: TestContext): string {
  return join(temporaryDirectory(t), 'panel');
}

test('the page and the files of the build are served, nothing else', async (t) => {
  const directory = directoryOf(t);
  build(directory);
  const world = await panelWorld(t, directory);
  const page = await world.request('GET', '/?from=a-link');
  assert.equal(page.status, 200);
  assert.match(page.text, /app-1\.js/);
  assert.equal(page.headers['cache-control'], 'no-store');
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
  const script = await world.request('GET', '/panel/app-1.js');
  assert.equal(script.text, SCRIPT);
  assert.equal(script.headers['cache-control'], 'private, max-age=31536000, immutable');
  assert.equal(script.headers['content-type'], 'text/javascript; charset=utf-8');
  assert.equal(script.headers['x-content-type-options'], 'nosniff');
  for (const path of ['/', '/panel/app-1.js']) {
    const head = await world.request('HEAD', path);
    assert.deepEqual([head.status, head.text], [200, '']);
    assert.notEqual(head.headers['content-length'], '0');
  }
  for (const name of ['unlisted.js', 'index.html', 'manifest.json', '..%2f..%2fsecret', '__proto__', 'constructor'])
    assert.equal((await world.request('GET', `/panel/${name}`)).status, 404, name);
  assert.equal((await world.request('POST', '/', { headers: { 'content-type': 'application/json' } })).status, 405);
});

test("the page's policy allows scripts only from its folder at the requested host", async (t) => {
  const directory = directoryOf(t);
  build(directory);
  const world = await panelWorld(t, directory);
  const { headers } = await world.request('GET', '/', { headers: { host: 'localhost:2121' } });
  const policy = String(headers['content-security-policy']);
  assert.match(
    policy,
    /^default-src 'none'; script-src http:\/\/localhost:2121\/panel\/; style-src http:\/\/localhost/,
  );
  assert.match(
    policy,
    /connect-src 'self'; .*frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'$/,
  );
  assert.ok(!policy.includes('unsafe'));
  assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
  assert.equal(headers['cross-origin-resource-policy'], 'same-origin');
  assert.equal(headers['referrer-policy'], 'no-referrer');
  assert.match(String(headers['permissions-policy']), /camera=\(\)/);
  assert.equal(headers['set-cookie'], undefined);
  const six = await world.request('GET', '/', { headers: { host: '[::1]:2121' } });
  assert.match(String(six.headers['content-security-policy']), /script-src 'self';/);
});

test('a Host that would inject into the policy is rejected', async (t) => {
  const directory = directoryOf(t);
  build(directory);
  const world = await panelWorld(t, directory, { token: TOKEN, apiAddr: '0.0.0.0:0' });
  for (const host of ["localhost;script-src'*'", 'localhost,x', "a'b.localhost"]) {
    const { status, headers } = await world.request('GET', '/', { headers: { host } });
    assert.equal(status, 403, host);
    assert.doesNotMatch(String(headers['content-security-policy']), /\*|localhost/);
  }
});

test('page and files need no token, everything else does', async (t) => {
  const directory = directoryOf(t);
  build(directory);
  const world = await panelWorld(t, directory, { token: TOKEN, requireLocalToken: true });
  for (const path of ['/', '/panel/app-1.js']) assert.equal((await world.request('GET', path)).status, 200, path);
  for (const path of ['/ping', '/panel', '/panel/', '/panel/a/b', '/nowhere', '//', '/secret'])
    assert.equal((await world.request('GET', path)).status, 401, path);
  assert.equal((await world.request('GET', '/', { headers: { host: 'evil.example' } })).status, 403);
});

test('any site may link to the page, but to nothing else of the panel', async (t) => {
  const directory = directoryOf(t);
  build(directory);
  const world = await panelWorld(t, directory);
  const navigation = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
  const status = async (path: string, headers: Record<string, string>, method = 'GET') =>
    (await world.request(method, path, { headers })).status;
  assert.equal(await status('/', navigation), 200);
  assert.equal(await status('/', { ...navigation, 'sec-fetch-site': 'same-site' }), 200);
  for (const path of ['/panel/app-1.js', '/ping', '/docs', '/?/../ping'.slice(2), '/aid/x/'])
    assert.equal(await status(path, navigation), 403, path);
  for (const other of [
    { 'sec-fetch-dest': 'iframe' },
    { 'sec-fetch-dest': 'embed' },
    { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ])
    assert.equal(await status('/', { ...navigation, ...other }), 403, JSON.stringify(other));
  assert.equal(await status('/', navigation, 'HEAD'), 403);
  assert.equal(await status('/', navigation, 'POST'), 403);
});

test('without a built panel the page explains how to build it', async (t) => {
  const directory = directoryOf(t);
  const world = await panelWorld(t, directory);
  const before = await world.request('GET', '/');
  assert.equal(before.status, 200);
  assert.match(before.text, /npm run build/);
  assert.equal((await world.request('GET', '/panel/app-1.js')).status, 404);
  build(directory);
  assert.match((await world.request('GET', '/')).text, /app-1\.js/);
});

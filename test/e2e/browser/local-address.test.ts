import assert from 'node:assert/strict';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { NO_CHROMIUM, startChromium } from '../../support/browser/chromium.ts';
import { RecordedSite } from '../../support/browser/recorded-site.ts';
import { TestDaemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';

const LONG = 'x'.repeat(1000);
/** Sets long cookies for each host that it can name, then reads its own. */
const PAGE = `<!doctype html><title>open</title><script>
for (const domain of ['', '; domain=localhost', '; domain=.localhost', '; domain=127.0.0.1', '; domain=' + location.hostname])
  for (let i = 0; i < 3; i++) document.cookie = 'c' + i + '=${LONG}; path=/; max-age=1000' + domain;
document.cookie = 'own=1; path=/';
document.title = /\\bown=1\\b/.test(document.cookie) ? 'filled' : 'refused';
</script>`;

interface Origin {
  readonly id: string;
  readonly url: string;
}

test('cookies of an agent, also of its scripts, reach no other program of this machine', {
  skip: NO_CHROMIUM,
}, async () => {
  await using daemon = await TestDaemon.start();
  const seen: (string | undefined)[] = [];
  await using service = await RecordedSite.start((request, response) => {
    if (request.url === '/again') {
      seen.push(request.headers.cookie);
      return void response.end('again');
    }
    const many = Array.from({ length: 3 }, (_, i) => `h${i}=${LONG}; Path=/; Domain=localhost`);
    response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': ['sid=1; Path=/', ...many] }).end(PAGE);
  });
  await using other = await RecordedSite.start((_request, response) => void response.end('mine'));
  const local = await daemon.newAgent();
  const [first, second] = await Promise.all(
    [0, 1].map(async () => {
      const aid = await daemon.newAgent(`127.0.0.1:${service.port}`);
      return daemon.call<Origin>('POST', `/origins/${aid}`, { local_aid: local });
    }),
  );
  assert.ok(first !== undefined && second !== undefined);
  await using browser = await startChromium();
  await using context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${first.url}/page?a=b`);
  const own = new URL(first.url);
  assert.equal(page.url(), `http://${first.id}.localhost:${own.port}/page?a=b`);
  assert.equal(
    await eventually('the script ran', async () => (await page.title()) !== 'open' && page.title()),
    'filled',
  );
  const cookies = await context.cookies();
  assert.ok(cookies.length > 0);
  assert.deepEqual([...new Set(cookies.map(({ domain }) => domain.replace(/^\./, '')))], [`${first.id}.localhost`]);
  await page.goto(`${first.url}/again`);
  assert.match(seen.pop() ?? '', /\bsid=1\b.*\bown=1\b/);
  for (const url of [`http://127.0.0.1:${other.port}/`, `http://localhost:${other.port}/`, daemon.api]) {
    const response = await page.goto(url);
    assert.equal(response?.status(), 200, url);
    assert.equal((await response?.request().allHeaders())?.['cookie'], undefined, url);
  }
  await page.goto(`${second.url}/again`);
  assert.equal(new URL(page.url()).host, `${second.id}.localhost:${new URL(second.url).port}`);
  assert.deepEqual(seen, [undefined]);
});

test('a browser that does not resolve names below localhost gets few and short cookies', async () => {
  await using daemon = await TestDaemon.start();
  await using service = await RecordedSite.start((request, response) => {
    const sent = JSON.parse(new URL(request.url ?? '/', 'http://x').searchParams.get('set') ?? '[]') as string[];
    response.writeHead(200, { 'set-cookie': sent }).end(request.headers.cookie ?? '');
  });
  const [local, aid] = [await daemon.newAgent(), await daemon.newAgent(`127.0.0.1:${service.port}`)];
  const { id, url } = await daemon.call<Origin>('POST', `/origins/${aid}`, { local_aid: local });
  const visit = (set: readonly string[], more: Record<string, string> = {}): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const mode = { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
      const headers = { ...mode, 'user-agent': 'Mozilla/5.0 Version/18.0 Safari/605.1.15', ...more };
      httpRequest(`${url}/?set=${encodeURIComponent(JSON.stringify(set))}`, { headers }, (answer) =>
        resolve(answer.resume()),
      )
        .on('error', reject)
        .end();
    });
  const given = async (set: readonly string[], cookie = 'x=1') =>
    (await visit(set, { cookie })).headers['set-cookie'] ?? [];
  const own = (text: string) => `${id}.${text}; Path=/; HttpOnly`;
  assert.deepEqual(await given(['a=1; Path=/deep; Domain=localhost']), [own('a=1')]);
  assert.deepEqual(await given([`b=${LONG}`]), []);
  assert.deepEqual(await given(['b=1'], `x=${LONG}`.repeat(5)), []);
  const many = Array.from({ length: 20 }, (_, i) => `c${i}=1`);
  assert.equal((await given(many)).length, 7);
  assert.deepEqual(await given(many.slice(10)), []);
  assert.deepEqual(await given(['a=2', 'late=1']), [own('a=2')]);
  const { statusCode, headers } = await visit([], {
    'user-agent': 'Chrome/140',
    host: `localhost:${new URL(url).port}`,
  });
  assert.deepEqual([statusCode, headers.location?.startsWith(`http://${id}.localhost:`)], [307, true]);
  assert.equal((await visit([], { host: 'other.localhost:1' })).statusCode, 403);
});

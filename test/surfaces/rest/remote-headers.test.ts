import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { acceptedHeaders, rewriteLocation, sentHeaders } from '../../../src/surfaces/rest/remote-headers.ts';

const PREFIX = '/aid/aid1x';
const HOST = '127.0.0.1:2121';
const place = { prefix: PREFIX, path: '/dir/page?q=1', host: HOST };
/** Limit in microseconds of CPU time of this process: far more than linear time needs, far less than quadratic time. */
const MAX_CPU_US = 5_000_000;

const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|\[::(?:1|ffff:.*)?\]|0\.0\.0\.0|localhost\.*)$/;

/** Strings that URL parsers read differently. */
const PARTS = [
  '/',
  '//',
  '\\',
  '..',
  '.',
  '%2e%2e',
  '%2f',
  '?',
  '#',
  '@',
  ':',
  'http:',
  'https://',
  'HTTP://',
  'javascript:',
  'data:text/html,',
  '127.0.0.1',
  '127.1',
  '0x7f.1',
  '2130706433',
  'localhost',
  'LOCALHOST.',
  '[::1]',
  '[::ffff:7f00:1]',
  '0.0.0.0',
  '0',
  '2121',
  'user:pw@',
  'agents',
  'example.org',
  '\t',
  '\n',
  ' ',
  'é',
];

test('no redirect of a service leads into this API outside its prefix', () => {
  const location = fc
    .array(fc.oneof(fc.constantFrom(...PARTS), fc.string({ maxLength: 4 })), { maxLength: 8 })
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(location, (text) => {
      const rewritten = rewriteLocation(text, place);
      if (rewritten === null) return;
      const followed = new URL(rewritten, `http://${HOST}${PREFIX}/dir/page?q=1`);
      assert.ok(followed.protocol === 'http:' || followed.protocol === 'https:', rewritten);
      if (followed.host === HOST) assert.ok(followed.pathname.startsWith(`${PREFIX}/`), rewritten);
      else assert.ok(!LOOPBACK.test(followed.hostname), rewritten);
    }),
    { seed: 7, numRuns: 10_000 },
  );
});

test('an absolute URL of the API under another name is within the prefix too', () => {
  const named = { ...place, host: 'box.local:2121' };
  assert.equal(rewriteLocation('http://BOX.local:2121/agents', named), `${PREFIX}/agents`);
  assert.equal(rewriteLocation('http://box.local/agents', named), 'http://box.local/agents');
  assert.equal(rewriteLocation('http://127.0.0.1:2121@box.example/agents', named), null);
});

test('a host of many dots is parsed in linear time', () => {
  const place = { prefix: PREFIX, path: '/', host: HOST };
  const began = process.cpuUsage();
  for (let i = 0; i < 40; i++)
    assert.equal(rewriteLocation(`http://${'.'.repeat(15_000)}a/`, place), `http://${'.'.repeat(15_000)}a/`);
  assert.equal(rewriteLocation('http://localhost.../x', place), `${PREFIX}/x`);
  // Quadratic parsing would take half a second per host. Other processes do not count.
  assert.ok(process.cpuUsage(began).user < MAX_CPU_US);
});

test("addresses that may mean this machine stand for the service's machine", () => {
  const hosts = ['127.1', '0x7f.1', '0', '0.1.2.3', 'localhost.', 'a.localhost', '[::]', '[::1]', '[::127.0.0.1]'];
  for (const host of [...hosts, '[::ffff:127.0.0.1]', '[::ffff:0.0.0.0]', '[64:ff9b::127.0.0.1]', '[2002:7f00:1::]'])
    assert.equal(rewriteLocation(`http://${host}:2121/agents`, place), `${PREFIX}/agents`, host);
  for (const host of ['10.0.0.1', '[2001:db8::1]', 'example.org'])
    assert.equal(rewriteLocation(`http://${host}:2121/agents`, place), `http://${host}:2121/agents`);
});

test('a WebSocket handshake keeps its headers, and no other forbidden header passes', () => {
  const asked = ['Sec-WebSocket-Key', 'k', 'Sec-WebSocket-Protocol', 'chat', 'Cookie', 'a=b', 'Sec-Fetch-Mode', 'x'];
  assert.deepEqual(sentHeaders(asked), ['Sec-WebSocket-Key', 'k', 'Sec-WebSocket-Protocol', 'chat']);
  const answered = ['Sec-WebSocket-Accept', 'a', 'SET-Cookie', 'a=b', 'Location', 'file:///etc/passwd'];
  assert.deepEqual(acceptedHeaders(answered, place), ['Sec-WebSocket-Accept', 'a']);
});

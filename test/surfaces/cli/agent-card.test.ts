import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { isPublicHost } from '../../../src/foundation/address.ts';
import { type ErrorCode, SvcError } from '../../../src/foundation/errors.ts';
import { encodeServicePayload } from '../../../src/foundation/records/payloads.ts';
import { payloadBudget } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { draftFromCard, draftFromService, fetchSmallJson } from '../../../src/surfaces/cli/find-card.ts';
import { newIdentity } from '../../support/identities.ts';
import { quietPort } from '../../support/programs.ts';

const CARD = new URL('http://127.0.0.1:8080/.well-known/agent-card.json');
const A2A = {
  protocolVersion: '0.3.0',
  name: 'Translator',
  description: 'Translates between 40 languages.',
  url: 'http://127.0.0.1:8080/a2a',
  provider: { organization: 'Words', url: 'https://words.example/' },
  skills: [
    { id: 'a', name: 'Translate', description: 'x', tags: ['Language', 'fast'] },
    { id: 'b', name: 'Detect', description: 'y', tags: ['language', 'detect'] },
  ],
};

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => (server.closeAllConnections(), server.close()));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${address.port}`;
}

/** Serves documents by path, and 404 for other paths. */
function documents(byPath: Readonly<Record<string, unknown>>): RequestListener {
  return ({ url = '' }, response) => {
    if (!Object.hasOwn(byPath, url)) response.statusCode = 404;
    response.end(Object.hasOwn(byPath, url) ? JSON.stringify(byPath[url]) : 'nothing here');
  };
}

async function refused(work: Promise<unknown>, code: ErrorCode, message: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof SvcError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  });
}

test('drafts a record from an A2A card without its private addresses', () => {
  assert.deepEqual(draftFromCard(A2A, CARD), {
    name: 'Translator',
    brief: 'Translates between 40 languages.',
    url: 'https://words.example/',
    protocols: ['a2a'],
    tags: ['language', 'fast', 'detect'],
    from: CARD.href,
    remarks: [],
  });
  const { provider: _provider, ...lonely } = A2A;
  const draft = draftFromCard(lonely, CARD);
  assert.equal(draft.url, undefined);
  assert.match(draft.remarks.join(), /address was omitted/);
});

test('reads old and new cards of MCP servers', () => {
  const old = {
    serverInfo: { name: 'files', title: 'Files' },
    description: 'Reads files',
    transport: { type: 'http' },
  };
  const { name, brief, protocols } = draftFromCard(old, CARD);
  assert.deepEqual([name, brief, protocols], ['Files', 'Reads files', ['mcp']]);
  const remotes = [{ type: 'streamable-http', url: 'https://mcp.example/mcp' }];
  assert.deepEqual(draftFromCard({ name: 'com.example/files', title: 'Files', remotes }, CARD).protocols, ['mcp']);
});

test('the draft of any card can be published and shown', () => {
  const { delegation } = newIdentity();
  const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 400 }), fc.webUrl(), fc.string());
  const card = fc.record(
    {
      name: text,
      title: fc.oneof(text, fc.anything()),
      description: fc.oneof(text, fc.anything()),
      url: text,
      documentationUrl: fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.anything()),
      tags: fc.oneof(fc.array(text), fc.anything()),
      skills: fc.oneof(fc.array(fc.record({ tags: fc.array(text, { maxLength: 30 }) })), fc.anything()),
      serverInfo: fc.anything(),
      provider: fc.anything(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(card, (value) => {
      let draft: ReturnType<typeof draftFromCard>;
      try {
        draft = draftFromCard(value, CARD);
      } catch (error) {
        assert.ok(error instanceof SvcError && error.code === 'invalid_request');
        return;
      }
      const { name = '', brief = '', url, protocols, tags } = draft;
      const meta = url === undefined ? '' : JSON.stringify({ url });
      const payload = encodeServicePayload({ service: 'lang.translate', name, brief, protocols, tags, meta });
      assert.ok(payload.length <= payloadBudget(RECORD.service, delegation));
      assert.doesNotMatch([name, brief, url ?? '', ...tags].join(' '), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    }),
    { seed: 11, numRuns: 400 },
  );
});

test('shortens long texts at a word boundary and reports it', () => {
  const tags = Array.from({ length: 40 }, (_, i) => `tag-number-${i}`);
  const draft = draftFromCard({ name: 'n', description: 'drei schöne Wörter '.repeat(40), tags }, CARD);
  assert.ok(Buffer.byteLength(draft.brief ?? '') <= 256);
  assert.match(draft.brief ?? '', /(drei|schöne|Wörter)…$/);
  assert.match(draft.remarks.join('\n'), /description was cut to 256 bytes[\s\S]*\d+ of 40 tags were omitted/);
});

test('tries the well-known paths in order, or only the given document', async (t) => {
  const at = '/.well-known/';
  const base = await serve(
    t,
    documents({ [`${at}agent.json`]: A2A, [`${at}mcp.json`]: { name: 'other' }, '/my.json': { name: 'mine' } }),
  );
  assert.equal((await draftFromService(base)).name, 'Translator');
  assert.equal((await draftFromService(base.replace('http://', ''))).from, `${base}${at}agent.json`);
  assert.equal((await draftFromService(`${base}/deeper/path`)).name, 'Translator');
  assert.equal((await draftFromService(`${base}/my.json`)).name, 'mine');
  assert.deepEqual((await draftFromService(`${base}${at}mcp.json`)).protocols, ['mcp']);
  await refused(draftFromService(`${base}/other.json`), 'not_found', /no agent card.*other\.json \(status 404\)/);
});

test('a server that returns a page for every path has no card', async (t) => {
  const base = await serve(t, (_request, response) => response.end('<!doctype html>'));
  await refused(draftFromService(base), 'not_found', /agent-card\.json \(not JSON\), .*mcp\.json \(not JSON\)/);
});

test('rejects JSON that is not a card', async (t) => {
  const base = await serve(t, documents({ '/a.json': [1], '/b.json': { a: 1 } }));
  await refused(draftFromService(`${base}/a.json`), 'invalid_request', /not a JSON object/);
  await refused(draftFromService(`${base}/b.json`), 'invalid_request', /neither a name nor a description/);
});

test('follows a limited number of redirects to the same server', async (t) => {
  const inside = await serve(t, documents({ '/secret.json': { name: 'secret' } }));
  const base = await serve(t, ({ url }, response) => {
    const to = { '/away.json': `${inside}/secret.json`, '/loop.json': '/loop.json', '/here.json': '/there.json' }[
      url ?? ''
    ];
    if (to === undefined) return void response.end('{"name":"there"}');
    response.writeHead(302, { location: to }).end();
  });
  assert.equal((await draftFromService(`${base}/here.json`)).from, `${base}/there.json`);
  await refused(draftFromService(`${base}/away.json`), 'protocol_error', /another server/);
  await refused(draftFromService(`${base}/loop.json`), 'protocol_error', /redirects more than 3 times/);
});

test('aborts an endless document and a silent server', async (t) => {
  const base = await serve(t, ({ url }, response) => {
    if (url === '/silent.json') return;
    response.on('error', () => {});
    const more = (): void => {
      while (!response.destroyed && response.write(' '.repeat(65_536)));
      response.once('drain', more);
    };
    more();
  });
  await refused(draftFromService(`${base}/endless.json`), 'too_large', /more than 262144 bytes/);
  await refused(fetchSmallJson(new URL(`${base}/silent.json`), 50), 'timeout', /did not respond/);
});

test('explains why a URL cannot be fetched', async () => {
  await refused(
    draftFromService(`127.0.0.1:${await quietPort()}`),
    'connect_failed',
    /cannot be reached \(ECONNREFUSED\)/,
  );
  await refused(draftFromService('file:///etc/passwd'), 'invalid_request', /at an HTTP URL/);
  await refused(draftFromService('http://user:secret@127.0.0.1:9'), 'invalid_request', /without user name/);
});

test('hosts of this machine and its LAN are private', () => {
  for (const host of [
    '127.0.0.1',
    '10.1.2.3',
    '192.168.0.9',
    '[::1]',
    '[fd00::1]',
    'localhost',
    'localhost.',
    'printer',
    'printer.',

    '127.0.0.1.',
    'nas.local',
    'a.home.arpa.',
    '0.0.0.0',
    '100.64.0.1',
    '127.1',
    '0x7f.1',
    '169.254.169.254',
    '172.31.255.255',
    '224.0.0.1',
    '255.255.255.255',
    '[::]',
    '[::ffff:10.0.0.1]',
    '[::127.0.0.1]',
    '[64:ff9b::10.0.0.1]',
    '[2002:a00:1::1]',
    '[fe80::1]',
    '[fec0::1]',
    '[ff02::1]',
  ])
    assert.equal(isPublicHost(new URL(`http://${host}/`)), false, host);
  for (const host of [
    'example.org',
    '93.184.216.34',
    '[2606:4700::1]',
    '[::ffff:8.8.8.8]',
    '[64:ff9b::8.8.8.8]',
    '172.32.0.1',
  ])
    assert.equal(isPublicHost(new URL(`http://${host}/`)), true, host);
});

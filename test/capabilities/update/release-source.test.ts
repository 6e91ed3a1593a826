import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { ReleaseSource } from '../../../src/capabilities/update/release-source.ts';
import type { ErrorCode } from '../../../src/foundation/errors.ts';
import { testKeys } from '../../support/agents.ts';
import {
  NpmRegistry,
  proofOf,
  type Release,
  SigningKey,
  sha512,
  TEST_RELEASE_KEY,
  TEST_RELEASE_KEYS,
} from '../../support/npm-registry.ts';

const TARBALL = Buffer.from('a tarball');
const NOW = Date.UTC(2026, 0, 1);

function release(version: string, more: Partial<Release> = {}): Release {
  return { name: 'svcd', version, tarball: TARBALL, ...more };
}

function sourceOf(url: string, releaseKeys = TEST_RELEASE_KEYS): ReleaseSource {
  return new ReleaseSource({ name: 'svcd', registry: async () => new URL(url), releaseKeys, now: () => NOW });
}

async function look(url: string, current = '1.0.0') {
  return sourceOf(url).latest(current, new AbortController().signal);
}

async function refused(url: string, code: ErrorCode, message: RegExp): Promise<void> {
  await assert.rejects(look(url), { code, message });
}

test('the newest release, once its signature holds, with its tarball', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0', { manifest: { engines: { node: '>=24.11' } } }));
  const { version, release: found } = await look(registry.url);
  assert.equal(version, '1.1.0');
  assert.equal(found?.node, '>=24.11');
  assert.equal(found.integrity, sha512(TARBALL));
  const content = await sourceOf(registry.url).tarball(found, new AbortController().signal);
  assert.deepEqual(content, TARBALL);
});

test('a registry below a path is asked there', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0'));
  await assert.rejects(look(`${registry.url}mirror`));
  assert.deepEqual(registry.requests, ['/mirror/svcd']);
});

test('nothing that is not newer is offered, nor a pre-release', async () => {
  await using registry = await NpmRegistry.start();
  for (const [version, current] of [
    ['1.0.0', '1.0.0'],
    ['0.9.9', '1.0.0'],
    ['1.0.0', '1.0.1-rc.1'],
    ['2.0.0-rc.1', '1.0.0'],
  ] as const) {
    registry.publish(release(version, { signedText: null }));
    assert.deepEqual(await look(registry.url, current), { version, release: null });
  }
});

test('a release that nobody signed, or somebody else, or with other words, is refused', async () => {
  await using registry = await NpmRegistry.start();
  const other = new SigningKey();
  const cases: [Partial<Release>, RegExp][] = [
    [{ signedText: null }, /is not signed/],
    [{ signedText: `svcd@1.0.9:${sha512(TARBALL)}` }, /signature of svcd@1\.1\.0 is wrong/],
    [{ signedText: 'svcd@1.1.0:sha512-' }, /is wrong/],
  ];
  for (const [more, message] of cases) {
    registry.publish(release('1.1.0', more));
    await refused(registry.url, 'protocol_error', message);
  }
  registry.publish(release('1.1.0'));
  registry.keys = [other];
  await refused(registry.url, 'protocol_error', /a key that the registry does not list/);
  registry.keys = null;
  await refused(registry.url, 'protocol_error', /lists no signing keys/);
  registry.keys = [];
  await refused(registry.url, 'protocol_error', /lists no signing keys/);
});

test('a release that no release key of this build has signed is refused, whatever the registry signs', async () => {
  await using registry = await NpmRegistry.start();
  const integrity = sha512(TARBALL);
  const right = proofOf({ name: 'svcd', version: '1.1.0', integrity });
  const [{ key, signature } = { key: '', signature: '' }] = right.signatures;
  const wrong: [unknown, RegExp][] = [
    [undefined, /svcd@1\.1\.0 is not signed with a release key/],
    [{ signatures: [] }, /is not signed with a release key/],
    [{ signatures: [{ key: key.toUpperCase(), signature }] }, /is not signed with a release key/],
    [{ signatures: Array.from({ length: 9 }, () => right.signatures[0]) }, /is not signed with a release key/],
    [proofOf({ name: 'svcd', version: '1.1.0', integrity }, testKeys(1)), /is not signed with a release key/],
    [proofOf({ name: 'svcd', version: '1.0.9', integrity }), /with the release key is wrong/],
    [proofOf({ name: 'svc', version: '1.1.0', integrity }), /with the release key is wrong/],
    [proofOf({ name: 'svcd', version: '1.1.0', integrity: sha512(Buffer.from('x')) }), /with the release key is wrong/],
    [{ signatures: [{ key, signature: '' }] }, /with the release key is wrong/],
  ];
  const plain = TEST_RELEASE_KEY.sign(Buffer.from(`svcd@1.1.0:${integrity}`));
  wrong.push([{ signatures: [{ key, signature: Buffer.from(plain).toString('base64') }] }, /key is wrong/]);
  for (const [proof, message] of wrong) {
    registry.publish(release('1.1.0', { proof }));
    await refused(registry.url, 'protocol_error', message);
  }
  registry.publish(release('1.1.0'));
  const noKeys = sourceOf(registry.url, []).latest('1.0.0', new AbortController().signal);
  await assert.rejects(noKeys, { message: /is not signed with a release key/ });
  assert.ok(!registry.requests.some((path) => path.includes('tarballs')), 'nothing is fetched');
  const both = [...proofOf({ name: 'svcd', version: '1.1.0', integrity }, testKeys(1)).signatures, ...right.signatures];
  registry.publish(release('1.1.0', { proof: { signatures: both } }));
  assert.equal(
    (await look(registry.url)).release?.version,
    '1.1.0',
    'a signature by a key of later builds is passed over',
  );
});

test('a key that had expired when the release was published does not count', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0'));
  registry.key.expires = new Date(NOW - 1).toISOString();
  await refused(registry.url, 'protocol_error', /had expired/);
  registry.key.expires = new Date(NOW + 1).toISOString();
  assert.equal((await look(registry.url)).release?.version, '1.1.0');
});

test('a key of another kind under the right name does not count', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0'));
  const body = JSON.stringify({ keys: [{ ...registry.key.view(), keytype: 'rsa' }] });
  registry.intercept = (path, response) => path === '/-/npm/v1/keys' && Boolean(response.end(body));
  await refused(registry.url, 'protocol_error', /does not list/);
});

test('a weak integrity is refused, and a tarball that lies elsewhere', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0', { integrity: 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }));
  await refused(registry.url, 'protocol_error', /no sha512 integrity/);
  registry.publish(release('1.1.0', { integrity: `${sha512(TARBALL)} ${sha512(Buffer.from('other'))}` }));
  await refused(registry.url, 'protocol_error', /no sha512 integrity/);
  for (const tarballUrl of ['http://127.0.0.1:1/svcd.tgz', 'file:///etc/passwd', 'nonsense']) {
    registry.publish(release('1.1.0', { tarballUrl }));
    await refused(registry.url, 'protocol_error', /outside of the registry/);
  }
});

test('what a registry says is bounded, and never led elsewhere', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0'));
  const answers: [(response: ServerResponse) => void, ErrorCode][] = [
    [(r) => r.end('{'), 'protocol_error'],
    [(r) => r.end('{"dist-tags":{"latest":"../../x"},"versions":{}}'), 'protocol_error'],
    [
      (r) => r.end('{"dist-tags":{"latest":"1.1.0"},"versions":{"1.1.0":{"name":"other","version":"1.1.0"}}}'),
      'protocol_error',
    ],
    [(r) => r.writeHead(500).end(), 'protocol_error'],
    [(r) => r.writeHead(404).end(), 'protocol_error'],
    [(r) => r.writeHead(302, { location: registry.url }).end(), 'connect_failed'],
    [(r) => r.destroy(), 'connect_failed'],
    [(r) => r.end(Buffer.alloc(17 * 1024 * 1024)), 'too_large'],
  ];
  for (const [answer, code] of answers) {
    registry.intercept = (path, response) => path === '/svcd' && (answer(response), true);
    await assert.rejects(look(registry.url), { code });
  }
});

test('a registry is asked over https, or on this machine', async () => {
  for (const url of ['http://registry.example.org/', 'ftp://127.0.0.1/', 'http://127.0.0.1.example.org/'])
    await refused(url, 'config_invalid', /without https/);
  await refused('http://[::1]:9/', 'connect_failed', /cannot be reached/);
});

test('a look is given up when svcd stops', async () => {
  await using registry = await NpmRegistry.start();
  const stopped = new AbortController();
  registry.intercept = () => (stopped.abort(), true);
  await assert.rejects(sourceOf(registry.url).latest('1.0.0', stopped.signal), { code: 'cancelled' });
});

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

test('the newest release with a valid signature, and its tarball', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0', { manifest: { engines: { node: '>=24.11' } } }));
  const { version, release: found } = await look(registry.url);
  assert.equal(version, '1.1.0');
  assert.equal(found?.node, '>=24.11');
  assert.equal(found.integrity, sha512(TARBALL));
  const content = await sourceOf(registry.url).tarball(found, new AbortController().signal);
  assert.deepEqual(content, TARBALL);
});

test('a registry below a path gets its requests there', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0'));
  await assert.rejects(look(`${registry.url}mirror`));
  assert.deepEqual(registry.requests, ['/mirror/svcd']);
});

test('older versions and pre-releases are not offered', async () => {
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

test('a release without a signature, with a foreign signature or with changed fields is rejected', async () => {
  await using registry = await NpmRegistry.start();
  const other = new SigningKey();
  const cases: [Partial<Release>, RegExp][] = [
    [{ signedText: null }, /is not signed/],
    [{ signedText: `svcd@1.0.9:${sha512(TARBALL)}` }, /signature of svcd@1\.1\.0 is invalid/],
    [{ signedText: 'svcd@1.1.0:sha512-' }, /is invalid/],
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

test('a release without a signature by a pinned release key is rejected, even if the registry signed it', async () => {
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
    [proofOf({ name: 'svcd', version: '1.0.9', integrity }), /invalid signature by the release key/],
    [proofOf({ name: 'svc', version: '1.1.0', integrity }), /invalid signature by the release key/],
    [
      proofOf({ name: 'svcd', version: '1.1.0', integrity: sha512(Buffer.from('x')) }),
      /invalid signature by the release key/,
    ],
    [{ signatures: [{ key, signature: '' }] }, /invalid signature by the release key/],
  ];
  const plain = TEST_RELEASE_KEY.sign(Buffer.from(`svcd@1.1.0:${integrity}`));
  wrong.push([
    { signatures: [{ key, signature: Buffer.from(plain).toString('base64') }] },
    /invalid signature by the release key/,
  ]);
  for (const [proof, message] of wrong) {
    registry.publish(release('1.1.0', { proof }));
    await refused(registry.url, 'protocol_error', message);
  }
  registry.publish(release('1.1.0'));
  const noKeys = sourceOf(registry.url, []).latest('1.0.0', new AbortController().signal);
  await assert.rejects(noKeys, { message: /is not signed with a release key/ });
  assert.ok(!registry.requests.some((path) => path.includes('tarballs')), 'the tarball is not fetched');
  const both = [...proofOf({ name: 'svcd', version: '1.1.0', integrity }, testKeys(1)).signatures, ...right.signatures];
  registry.publish(release('1.1.0', { proof: { signatures: both } }));
  assert.equal((await look(registry.url)).release?.version, '1.1.0', 'a signature by a key of later builds is ignored');
});

test('a key that had expired when the release was published does not count', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0'));
  registry.key.expires = new Date(NOW - 1).toISOString();
  await refused(registry.url, 'protocol_error', /had expired/);
  registry.key.expires = new Date(NOW + 1).toISOString();
  assert.equal((await look(registry.url)).release?.version, '1.1.0');
});

test('a key of another type with the right name does not count', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0'));
  const body = JSON.stringify({ keys: [{ ...registry.key.view(), keytype: 'rsa' }] });
  registry.intercept = (path, response) => path === '/-/npm/v1/keys' && Boolean(response.end(body));
  await refused(registry.url, 'protocol_error', /does not list/);
});

test('a weak integrity hash and a tarball outside the registry are rejected', async () => {
  await using registry = await NpmRegistry.start();
  registry.publish(release('1.1.0', { integrity: 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }));
  await refused(registry.url, 'protocol_error', /no sha512 integrity/);
  registry.publish(release('1.1.0', { integrity: `${sha512(TARBALL)} ${sha512(Buffer.from('other'))}` }));
  await refused(registry.url, 'protocol_error', /no sha512 integrity/);
  for (const tarballUrl of ['http://127.0.0.1:1/svcd.tgz', 'file:///etc/passwd', 'nonsense']) {
    registry.publish(release('1.1.0', { tarballUrl }));
    await refused(registry.url, 'protocol_error', /is outside the registry/);
  }
});

test('responses of a registry are limited, and redirects are not followed', async () => {
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

test('only https and loopback registries are used', async () => {
  for (const url of ['http://registry.example.org/', 'ftp://127.0.0.1/', 'http://127.0.0.1.example.org/'])
    await refused(url, 'config_invalid', /without https/);
  await refused('http://[::1]:9/', 'connect_failed', /Cannot reach/);
});

test('a check is canceled when svcd stops', async () => {
  await using registry = await NpmRegistry.start();
  const stopped = new AbortController();
  registry.intercept = () => (stopped.abort(), true);
  await assert.rejects(sourceOf(registry.url).latest('1.0.0', stopped.signal), { code: 'cancelled' });
});

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readCertificate, selfSigned } from '../../src/foundation/certificate.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { failsWith } from '../support/vectors.ts';

test('a self-signed certificate is valid X.509, with a signature of its key', () => {
  const { cert, key } = selfSigned('helper.test');
  const parsed = new X509Certificate(cert);
  assert.equal(parsed.subject, 'CN=helper.test');
  assert.equal(parsed.issuer, parsed.subject);
  assert.ok(parsed.verify(parsed.publicKey));
  assert.match(key, /BEGIN PRIVATE KEY/);
  assert.equal(parsed.validToDate.getUTCFullYear(), 9999);
  assert.notEqual(new X509Certificate(selfSigned().cert).serialNumber, parsed.serialNumber);
});

test('certificates with long names are encoded', () => {
  for (const length of [10, 60, 64]) {
    const parsed = new X509Certificate(selfSigned('n'.repeat(length)).cert);
    assert.equal(parsed.subject, `CN=${'n'.repeat(length)}`);
  }
});

test('a certificate is read from files, and faults name the key of the configuration', async (t) => {
  const folder = temporaryDirectory(t);
  const [one, other] = [selfSigned(), selfSigned()];
  const path = (name: string) => join(folder, name);
  const contents = { 'one.crt': one.cert, 'one.key': one.key, 'other.key': other.key, 'text.pem': 'no PEM' };
  for (const [name, content] of Object.entries(contents)) await writeFile(path(name), content);
  assert.deepEqual(await readCertificate({ cert: path('one.crt'), key: path('one.key') }), one);
  const faults = [
    [path('one.crt'), ''],
    ['', path('one.key')],
    [path('one.crt'), path('missing')],
    [path('one.crt'), path('other.key')],
    [path('text.pem'), path('one.key')],
    [path('one.crt'), path('text.pem')],
  ] as const;
  for (const [cert, key] of faults)
    await assert.rejects(readCertificate({ cert, key }), failsWith('config_invalid'), `${cert} ${key}`);
});

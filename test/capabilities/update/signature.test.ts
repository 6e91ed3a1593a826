import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signatureProblem } from '../../../src/capabilities/update/signature.ts';
import { SigningKey } from '../../support/npm-registry.ts';

/** The public key of the public npm registry until 2025, and a real signature: venv 0.1.0. */
const KEY = {
  keyid: 'SHA256:jl3bwswu80PjjokCgh0o2w5c2U4LhQAE57gj9cz1kzA',
  keytype: 'ecdsa-sha2-nistp256',
  key: 'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE1Olb3zMAFFxXKHiIkQO5cJ3Yhl5i6UPp+IhuteBJbuHcA5UogKo0EWtlWwW6KSaKoTNEYL7JlCQiVnkhBktUgg==',
  expires: '2025-01-29T00:00:00.000Z',
};
const SIGNED = {
  name: 'venv',
  version: '0.1.0',
  integrity: 'sha512-RMdeiD0OJC+S2w4931iqdi5MB9xe2T/lXZbRrHxbsmQrSA+FwhPk2bIqIwbNDCmThPgNw841Q272O6EFSYhBjQ==',
  signatures: [
    {
      keyid: KEY.keyid,
      sig: 'MEUCICKQJCEvvV3HdhCSj3TwH9qqIWLwc0GR1m/NED/s1bPIAiEAvkTmhIDIrD4MZoI2g27+HsuxoFJhC/evORT6T2UUwSc=',
    },
  ],
  publishedAt: Date.UTC(2023, 0, 1),
};

test('a real signature of the public registry is valid', () => {
  assert.equal(signatureProblem(SIGNED, [KEY]), null);
});

test('a signature is valid for its message and its time only', () => {
  for (const change of [
    { name: 'venw' },
    { version: '0.1.1' },
    { integrity: SIGNED.integrity.replace('R', 'S') },
    { signatures: [{ keyid: KEY.keyid, sig: 'bogus' }] },
    { signatures: [{ keyid: KEY.keyid, sig: '' }] },
  ])
    assert.match(signatureProblem({ ...SIGNED, ...change }, [KEY]) ?? '', /is invalid/, JSON.stringify(change));
  assert.match(signatureProblem({ ...SIGNED, publishedAt: Date.UTC(2025, 1, 1) }, [KEY]) ?? '', /had expired/);
});

test('while a registry changes its key, one valid signature suffices and an invalid one fails', () => {
  const next = new SigningKey();
  const text = `${SIGNED.name}@${SIGNED.version}:${SIGNED.integrity}`;
  const both = { ...SIGNED, signatures: [...SIGNED.signatures, next.sign(text)] };
  assert.equal(signatureProblem(both, [KEY]), null);
  assert.equal(signatureProblem(both, [KEY, next]), null);
  const wrong = { ...SIGNED, signatures: [...SIGNED.signatures, next.sign('something else')] };
  assert.match(signatureProblem(wrong, [KEY, next]) ?? '', /is invalid/);
});

test('an unreadable key does not count', () => {
  for (const key of ['', 'bogus', KEY.key.slice(0, 40)])
    assert.match(signatureProblem(SIGNED, [{ ...KEY, key }]) ?? '', /does not list/);
});

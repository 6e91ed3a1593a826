import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import {
  byteSequence,
  type CoveredComponent,
  contentDigest,
  signatureBase,
  signatureParams,
} from '../../../../src/capabilities/calls/evidence/signature-base.ts';

test('RFC 9421, appendix B.2.6: the base, and a signature with Ed25519', () => {
  // Appendix B.1.4, test-key-ed25519.
  const seed = Buffer.from('n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU', 'base64url');
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const components: CoveredComponent[] = [
    ['date', 'Tue, 20 Apr 2021 02:07:55 GMT'],
    ['@method', 'POST'],
    ['@path', '/foo'],
    ['@authority', 'example.com'],
    ['content-type', 'application/json'],
    ['content-length', '18'],
  ];
  const params = signatureParams(components, [
    ['created', 1618884473],
    ['keyid', 'test-key-ed25519'],
  ]);
  assert.equal(
    params,
    '("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
  );
  const base = signatureBase(components, params);
  assert.equal(
    base.toString('latin1'),
    [
      '"date": Tue, 20 Apr 2021 02:07:55 GMT',
      '"@method": POST',
      '"@path": /foo',
      '"@authority": example.com',
      '"content-type": application/json',
      '"content-length": 18',
      `"@signature-params": ${params}`,
    ].join('\n'),
  );
  const expected = 'wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==';
  assert.equal(byteSequence(sign(null, base, key)), `:${expected}:`);
  assert.ok(verify(null, base, createPublicKey(key), Buffer.from(expected, 'base64')));
});

test('RFC 9530, appendix B: digests of a body and of none', () => {
  assert.equal(
    contentDigest(Buffer.from('{"hello": "world"}\n')),
    'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:',
  );
  assert.equal(contentDigest(Buffer.alloc(0)), 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:');
});

test('header values are the bytes that Node decodes as Latin-1', () => {
  const base = signatureBase([['x-name', 'caf\u00e9']], '("x-name")');
  assert.deepEqual([...base.subarray(10, 14)], [0x63, 0x61, 0x66, 0xe9]);
});

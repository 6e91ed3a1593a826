import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deriveKey, PASSPHRASE_COST, scryptHash } from '../../../src/foundation/keys/passphrase.ts';
import { CHEAP_COST, cheapPassphrase } from '../../support/cheap-scrypt.ts';

const SALT = new Uint8Array(32).fill(1);

test('the hash is scrypt: a vector of RFC 7914', async () => {
  const hash = await scryptHash('password', Buffer.from('NaCl'), { N: 1024, r: 8, p: 16 });
  assert.equal(hash.toString('hex'), 'fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162');
});

test('a passphrase makes the same key in every normal form, another one with another salt or cost', async () => {
  const key = await deriveKey(cheapPassphrase('caf\u00e9 \ufb01'), SALT);
  assert.equal(key.symmetricKeySize, 32);
  assert.ok(key.equals(await deriveKey(cheapPassphrase('cafe\u0301 fi'), SALT)));
  assert.ok(!key.equals(await deriveKey(cheapPassphrase('cafe fi'), SALT)));
  assert.ok(!key.equals(await deriveKey(cheapPassphrase('caf\u00e9 \ufb01'), new Uint8Array(32))));
  for (const cost of [{ N: 4 }, { r: 2 }, { p: 2 }]) {
    const other = await deriveKey({ text: 'caf\u00e9 \ufb01', cost: { ...CHEAP_COST, ...cost } }, SALT);
    assert.ok(!key.equals(other), JSON.stringify(cost));
  }
});

test('a passphrase has the cost in the threat model, and node:crypto allows it', async () => {
  assert.deepEqual(PASSPHRASE_COST, { N: 131_072, r: 8, p: 1 });
  assert.equal((await deriveKey({ text: 'x', cost: PASSPHRASE_COST }, SALT)).symmetricKeySize, 32);
});

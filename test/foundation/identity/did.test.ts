import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { didOf, nativeAid, parseAid } from '../../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { decodeEd25519Multikey, encodeMultikey } from '../../../src/foundation/identity/multikey.ts';
import { testAid } from '../../support/agents.ts';
import { failsWith } from '../../support/vectors.ts'; /** Seeds and identifiers of the test vectors that come with the did:key method. */

const PUBLISHED = [
  [0, 'did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp'],
  [1, 'did:key:z6MkjchhfUsD6mmvni8mCdXHw216Xrm9bQe2mBH1P5RDjVJG'],
  [2, 'did:key:z6MknGc3ocHs3zdPiJbnaaqDi58NGb4pk1Sp9WxWufuXSdxf'],
] as const;

test('the published identifiers of known keys', () => {
  for (const [last, did] of PUBLISHED) {
    const seed = new Uint8Array(32);
    seed[31] = last;
    const aid = nativeAid(KeyPair.fromSeed(seed).publicKey);
    assert.equal(didOf(aid), did);
    assert.equal(parseAid(did), aid);
  }
});

test('each native AID has one, and it is another spelling of that AID', () => {
  for (let n = 0; n < 50; n++) {
    const aid = testAid(n);
    assert.equal(parseAid(` ${didOf(aid)}\n`), aid);
  }
});

test('agents of wallets have none', () => {
  assert.equal(didOf(parseAid(`0x${'ab'.repeat(20)}`)), null);
  assert.equal(didOf(parseAid('1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH')), null);
});

test('keys of another kind or length, another base and other methods are refused', () => {
  const key = KeyPair.fromSeed(new Uint8Array(32)).publicKey;
  const good = encodeMultikey('ed25519', key);
  const bad = [
    `did:key:${encodeMultikey('x25519', key)}`,
    `did:key:${encodeMultikey('ed25519', key.subarray(1))}`,
    `did:key:${encodeMultikey('ed25519', Uint8Array.of(...key, 0))}`,
    `did:key:f${good.slice(1)}`,
    `did:key:z1${good.slice(1)}`,
    `did:key:${good.replace('6', '0')}`,
    `did:key:${good}#${good}`,
    `did:web:${good}`,
    `DID:KEY:${good}`,
    'did:key:z',
    'did:key:',
    good,
    // A point of small order, which signs for everybody.
    `did:key:${encodeMultikey('ed25519', Uint8Array.of(1, ...new Uint8Array(31)))}`,
  ];
  for (const text of bad) assert.throws(() => parseAid(text), failsWith('bad_aid'), text);
});

test('any bytes behind the prefix are refused or come back as they were', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 60 }), (text) => {
      const key = decodeEd25519Multikey(text);
      if (key !== null) assert.equal(encodeMultikey('ed25519', key), text);
    }),
  );
});

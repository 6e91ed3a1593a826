import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decodeEndNotice,
  decodeOffer,
  encodeEndNotice,
  encodeOffer,
  MAX_OFFER_BODY_BYTES,
} from '../../../src/capabilities/file-offers/wire.ts';
import { encodeCbor } from '../../../src/foundation/cbor.ts';
import { MAX_OFFER_MESSAGE_CHARS, MAX_OFFERED_BYTES } from '../../../src/foundation/domain/file-offers.ts';
import { MAX_FILE_NAME_BYTES } from '../../../src/foundation/domain/objects.ts';

const ID = '0a'.repeat(8);
const OFFER = { id: ID, objectId: 'a1'.repeat(32), size: 3, name: 'plan.pdf', message: 'hi' };
const MAP = { v: 1, i: new Uint8Array(8), o: new Uint8Array(32), s: 3, n: 'plan.pdf' };

const decoded = (change: object) => decodeOffer(encodeCbor({ ...MAP, ...change }));

test('an offer is decoded as it was encoded, without or with a message', () => {
  assert.deepEqual(decodeOffer(encodeOffer(OFFER)), OFFER);
  assert.deepEqual(decodeOffer(encodeOffer({ ...OFFER, message: '' })), { ...OFFER, message: '' });
  assert.deepEqual(decodeOffer(encodeOffer({ ...OFFER, objectId: null })), { ...OFFER, objectId: null });
  assert.equal(decoded({})?.message, '');
});

test('the fields of an offer have limits', () => {
  assert.ok(decoded({ n: 'x'.repeat(MAX_FILE_NAME_BYTES) }));
  assert.equal(decoded({ n: 'x'.repeat(MAX_FILE_NAME_BYTES + 1) }), null);
  assert.equal(decoded({ n: 'é'.repeat(MAX_FILE_NAME_BYTES / 2 + 1) }), null);
  assert.ok(decoded({ m: 'x'.repeat(MAX_OFFER_MESSAGE_CHARS) }));
  assert.equal(decoded({ m: 'x'.repeat(MAX_OFFER_MESSAGE_CHARS + 1) }), null);
  assert.ok(decoded({ s: MAX_OFFERED_BYTES }));
  for (const s of [MAX_OFFERED_BYTES + 1, -1, 1.5, '3']) assert.equal(decoded({ s }), null, String(s));
});

test('an offer with a wrong field is invalid', () => {
  for (const change of [
    { v: 2 },
    { i: new Uint8Array(7) },
    { o: new Uint8Array(31) },
    { i: 'text' },
    { o: 'text' },
    { n: 7 },
    { m: 7 },
    { x: 1 },
  ])
    assert.equal(decoded(change), null, JSON.stringify(change));
  const { n: _name, ...nameless } = MAP;
  assert.equal(decodeOffer(encodeCbor(nameless)), null);
  assert.equal(decodeOffer(Buffer.from('nonsense')), null);
  assert.equal(decodeOffer(Buffer.concat([encodeOffer(OFFER), new Uint8Array(MAX_OFFER_BODY_BYTES)])), null);
});

test('the end of an offer is one of three', () => {
  for (const end of ['taken', 'declined', 'withdrawn'] as const)
    assert.deepEqual(decodeEndNotice(encodeEndNotice({ id: ID, end })), { id: ID, end });
  const notice = (change: object) => decodeEndNotice(encodeCbor({ v: 1, i: new Uint8Array(8), e: 0, ...change }));
  assert.ok(notice({}));
  for (const change of [{ e: 3 }, { e: -1 }, { e: 'taken' }, { v: 2 }, { i: new Uint8Array(9) }, { x: 1 }])
    assert.equal(notice(change), null, JSON.stringify(change));
});

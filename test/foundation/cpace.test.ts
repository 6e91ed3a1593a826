import assert from 'node:assert/strict';
import { test } from 'node:test';
import { confirmations, type Exchange, sharedKey, shareOf, withScalar } from '../../src/foundation/cpace.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');
const littleEndian = (bytes: Buffer): bigint => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);

// draft-irtf-cfrg-cpace, "Test vector for CPace using group ristretto255 and hash SHA-512".
const VECTOR: Exchange = {
  password: Buffer.from('Password'),
  channel: hex('0a41696e69746961746f720a42726573706f6e646572'),
  session: hex('7e4b4791d6a8ef019b936c79fb7f2c57'),
};
const INITIATOR = {
  scalar: littleEndian(hex('da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08')),
  share: hex('383a85dd236978f17f8c8545b50dabc52a39fcdab2cf8bc531ce040ff77ca82d'),
};
const RESPONDER = {
  scalar: littleEndian(hex('d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d')),
  share: hex('a6206309c0e8e5f579295e35997ac4300ab3fecec3c17f7b604f3e698fa1383c'),
};
const KEY = hex(`e91ccb2c0f5e0d0993a33956e3be59754f3f2b07db57631f5394452e
  a2e7b4354674eb1f5686c078462bf83bec72e8743df440108e638f3526d9b90e85be096f`);

test('shares and keys are those of the draft', () => {
  const shares = [INITIATOR.share, RESPONDER.share] as const;
  const data = [Buffer.from('ADa'), Buffer.from('ADb')] as const;
  for (const [own, other] of [
    [INITIATOR, RESPONDER],
    [RESPONDER, INITIATOR],
  ] as const) {
    const made = withScalar(VECTOR, own.scalar);
    assert.deepEqual(Buffer.from(made.share), own.share);
    assert.deepEqual(Buffer.from(sharedKey(VECTOR, made, other.share, shares, data) ?? []), KEY);
  }
});

test('invalid shares and the neutral element give no key', () => {
  const own = withScalar(VECTOR, INITIATOR.scalar);
  for (const other of [
    hex('2b3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c'),
    Buffer.alloc(32),
    Buffer.alloc(31, 1),
  ])
    assert.equal(sharedKey(VECTOR, own, other, [own.share, other]), null);
});

test('parties with different passwords, channels or sessions get different confirmations', () => {
  const initiator = shareOf(VECTOR);
  const seen = new Set<string>();
  for (const exchange of [
    VECTOR,
    { ...VECTOR, password: Buffer.from('password') },
    { ...VECTOR, channel: Buffer.from('other') },
    { ...VECTOR, session: Buffer.alloc(16) },
  ]) {
    const responder = shareOf(exchange);
    const shares = [initiator.share, responder.share] as const;
    const [one, other] = [
      sharedKey(VECTOR, initiator, responder.share, shares),
      sharedKey(exchange, responder, initiator.share, shares),
    ];
    assert.ok(one !== null && other !== null);
    const [mine, theirs] = [confirmations(VECTOR, one, shares), confirmations(exchange, other, shares)];
    assert.equal(Buffer.compare(mine.ofResponder, theirs.ofResponder) === 0, exchange === VECTOR);
    assert.notDeepEqual(mine.ofInitiator, mine.ofResponder);
    seen.add(Buffer.from(mine.ofInitiator).toString('hex'));
  }
  assert.equal(seen.size, 4);
});

test('the same random bytes give the same share, and others another one', () => {
  const random = Buffer.alloc(64, 7);
  assert.deepEqual(shareOf(VECTOR, random), shareOf(VECTOR, random));
  assert.notDeepEqual(shareOf(VECTOR).share, shareOf(VECTOR).share);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { base58 } from '@scure/base';
import * as fc from 'fast-check';
import { fromHex, toHex } from '../../../../src/foundation/bytes.ts';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { keyOfPeerId, parsePeer, privateKeyProto } from '../../../../src/network/transport/quic/engine.ts';

// The Ed25519 vectors of the libp2p peer id specification.
const PRIVATE_KEY_PROTO =
  '080112407e0830617c4a7de83925dfb2694556b12936c477a0e1feb2e148ec9da60fee7d1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e';
const PUBLIC_KEY = '1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e';
const PEER_ID_HEADER = Uint8Array.of(0x00, 0x24, 0x08, 0x01, 0x12, 0x20);

function peerId(key: Uint8Array, header = PEER_ID_HEADER): string {
  return base58.encode(Uint8Array.from([...header, ...key]));
}

test('a private key has the published encoding', () => {
  const seed = fromHex(PRIVATE_KEY_PROTO)?.subarray(4, 36) ?? new Uint8Array();
  const key = KeyPair.fromSeed(seed);
  assert.equal(toHex(key.publicKey), PUBLIC_KEY);
  assert.equal(toHex(privateKeyProto(key)), PRIVATE_KEY_PROTO);
});

test('a peer ID contains its key', () => {
  const key = KeyPair.generate().publicKey;
  assert.deepEqual(keyOfPeerId(peerId(key)), key);
  assert.match(peerId(key), /^12D3KooW/);
});

test('peer IDs with other key types, lengths or alphabets are rejected', () => {
  const key = KeyPair.generate().publicKey;
  const secp256k1 = Uint8Array.of(0x00, 0x24, 0x08, 0x02, 0x12, 0x20);
  const refused = ['', '0OIl', 'Q'.repeat(1000), peerId(key, secp256k1), peerId(key.subarray(1)), `${peerId(key)}1`];
  for (const text of refused) assert.equal(keyOfPeerId(text), null, text);
});

test('addresses of both families are decoded', () => {
  const key = KeyPair.generate().publicKey;
  const tail = `quic-v1/p2p/${peerId(key)}`;
  assert.deepEqual(parsePeer(`/ip4/203.0.113.7/udp/4122/${tail}`), {
    address: { host: '203.0.113.7', port: 4122 },
    key,
  });
  assert.deepEqual(parsePeer(`/ip6/2001:db8::1/udp/1/${tail}`), { address: { host: '2001:db8::1', port: 1 }, key });
  for (const wrong of [
    '',
    `/dns/x/udp/1/${tail}`,
    `/ip4/1.2.3.4/tcp/1/${tail}`,
    `/ip4/1.2.3.4/udp/1/${tail}/x`,
    '/ip4/1.2.3.4/udp/1/quic-v1',
  ])
    assert.equal(parsePeer(wrong), null, wrong);
});

test('no text makes the decoder throw', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), (text) => {
      const peer = parsePeer(text) ?? parsePeer(`/ip4/1.2.3.4/udp/1/quic-v1/p2p/${text}`);
      return peer === null || peer.key.length === 32;
    }),
    { seed: 1 },
  );
});

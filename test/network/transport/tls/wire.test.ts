import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyPair, verifySignature } from '../../../../src/foundation/identity/keys.ts';
import {
  type CarriedDatagram,
  closingEntry,
  decodeBatch,
  decodeClientHello,
  decodeHelperHello,
  decodeNonce,
  decodePing,
  encodeClientHello,
  encodeEntry,
  encodeHelperHello,
  encodePing,
  helloVersion,
  MAX_TLS_MESSAGE_BYTES,
  TLS_PURPOSE,
  TLS_STATUS,
} from '../../../../src/network/transport/tls/wire.ts';
import { hex, readVectors } from '../../../support/vectors.ts';

interface TlsVectors {
  readonly client_key_hex: string;
  readonly helper_key_hex: string;
  readonly helper_nonce_hex: string;
  readonly nonce_header: string;
  readonly client_nonce_hex: string;
  readonly client_hellos: readonly { exporter_hex: string; token_hex: string | null; message_hex: string }[];
  readonly helper_hellos: readonly {
    status: number;
    resumed: boolean;
    ports: number;
    host: string | null;
    message_hex: string;
  }[];
  readonly entries: readonly {
    number: number;
    host: string | null;
    port: number | null;
    datagram_hex: string;
    entry_hex: string;
  }[];
  readonly pings: readonly { written: number; payload_hex: string }[];
}

const vectors = readVectors('tls') as TlsVectors;
const helperNonce = hex(vectors.helper_nonce_hex);
const clientNonce = hex(vectors.client_nonce_hex);
const pair = KeyPair.fromSeed(new Uint8Array(32).fill(7));

/** An IPv6 entry with these address bytes. */
function ipv6Entry(host: string): Uint8Array {
  return hex(`001681${host}1019aabbcc`);
}

test('client hellos of the vectors decode, and their signature covers the nonce of the helper', () => {
  for (const { message_hex, exporter_hex, token_hex } of vectors.client_hellos) {
    const decoded = decodeClientHello(hex(message_hex), helperNonce);
    assert.ok(decoded !== null);
    assert.deepEqual(decoded.hello.nodeKey, hex(vectors.client_key_hex));
    assert.deepEqual(decoded.hello.nonce, clientNonce);
    assert.deepEqual(decoded.hello.exporter, hex(exporter_hex));
    assert.deepEqual(decoded.hello.token, token_hex === null ? null : hex(token_hex));
    assert.ok(verifySignature(decoded.hello.nodeKey, decoded.message, decoded.signature));
    const replayed = decodeClientHello(hex(message_hex), clientNonce);
    assert.ok(replayed !== null && !verifySignature(replayed.hello.nodeKey, replayed.message, replayed.signature));
  }
});

test('helper hellos of the vectors decode, and their signature covers the nonce of the client', () => {
  for (const { message_hex, status, resumed, ports, host } of vectors.helper_hellos) {
    const decoded = decodeHelperHello(hex(message_hex), clientNonce);
    assert.ok(decoded !== null);
    const { hello, message, signature } = decoded;
    assert.deepEqual([hello.status, hello.isResumed, hello.ports, hello.host], [status, resumed, ports, host]);
    assert.ok(verifySignature(hex(vectors.helper_key_hex), message, signature));
    const replayed = decodeHelperHello(hex(message_hex), helperNonce);
    assert.ok(replayed !== null && !verifySignature(hello.nodeKey, replayed.message, signature));
  }
});

test('every byte of a hello is signed', () => {
  const names = { tag: new Uint8Array(8), nodeKey: pair.publicKey, helperKey: new Uint8Array(32) };
  const hello = { purpose: TLS_PURPOSE.ports, ...names, nonce: clientNonce, exporter: helperNonce, token: null };
  const bytes = encodeClientHello(hello, helperNonce, pair);
  for (let at = 0; at < bytes.length; at++) {
    const changed = Uint8Array.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    const decoded = decodeClientHello(changed, helperNonce);
    const isValid = decoded !== null && verifySignature(pair.publicKey, decoded.message, decoded.signature);
    assert.ok(!isValid || !Buffer.from(decoded.hello.nodeKey).equals(pair.publicKey), `byte ${at}`);
  }
});

test('hellos of a wrong length, version, status, family or port count are invalid', () => {
  const [client] = vectors.client_hellos;
  const [helper] = vectors.helper_hellos;
  assert.ok(client !== undefined && helper !== undefined);
  const [ofClient, ofHelper] = [hex(client.message_hex), hex(helper.message_hex)];
  assert.equal(helloVersion(ofClient), 1);
  assert.equal(helloVersion(new Uint8Array()), null);
  for (const bytes of [ofClient.subarray(1), ofClient.subarray(0, -1), Uint8Array.of(...ofClient, 0), new Uint8Array()])
    assert.equal(decodeClientHello(bytes, helperNonce), null);
  for (const bytes of [ofHelper.subarray(0, -1), Uint8Array.of(...ofHelper, 0), new Uint8Array()])
    assert.equal(decodeHelperHello(bytes, clientNonce), null);
  const faults = [
    [0, 2],
    [1, 8],
    [82, 2],
    [83, 128],
    [84, 5],
  ] as const;
  for (const [at, value] of faults)
    assert.equal(decodeHelperHello(ofHelper.with(at, value), clientNonce), null, `${at}`);
  assert.equal(decodeClientHello(ofClient.with(0, 2), helperNonce), null);
});

test('an unknown address of a helper is zeros', () => {
  const hello = { nodeKey: pair.publicKey, exporter: helperNonce, resume: new Uint8Array(16), isResumed: false };
  const bytes = encodeHelperHello({ ...hello, status: TLS_STATUS.full, ports: 0, host: null }, clientNonce, pair);
  assert.equal(decodeHelperHello(bytes, clientNonce)?.hello.host, null);
});

test('entries of the vectors are encoded and decoded, one by one and as one batch', () => {
  const entries: CarriedDatagram[] = vectors.entries.map(({ number, host, port, datagram_hex }) => ({
    number,
    remote: host === null || port === null ? null : { host, port },
    datagram: hex(datagram_hex),
  }));
  const plain = (all: readonly CarriedDatagram[] | null) =>
    all?.map(({ datagram, ...rest }) => ({ ...rest, datagram: Buffer.from(datagram).toString('hex') }));
  for (const [i, entry] of entries.entries()) {
    const encoded = hex(vectors.entries[i]?.entry_hex ?? '');
    assert.deepEqual(new Uint8Array(encodeEntry(entry)), encoded);
    assert.deepEqual(plain(decodeBatch(encoded)), plain([entry]));
  }
  assert.deepEqual(plain(decodeBatch(Buffer.concat(entries.map(encodeEntry)))), plain(entries));
});

test('IPv6 addresses keep their canonical form', () => {
  for (const host of ['::1', '2001:db8::', '2001:db8:0:1:1:1:1:1', '1:2:3:4:5:6:7:8', 'fe80::1:0:0:1'])
    assert.equal(
      decodeBatch(encodeEntry({ number: 1, remote: { host, port: 4121 }, datagram: pair.publicKey }))?.[0]?.remote
        ?.host,
      host,
    );
});

test('a batch with any invalid entry is invalid', () => {
  const good = encodeEntry({ number: 1, remote: { host: '203.0.113.7', port: 4121 }, datagram: Uint8Array.of(1) });
  const invalid = {
    empty: new Uint8Array(),
    'too long': new Uint8Array(MAX_TLS_MESSAGE_BYTES + 1),
    'cut off': good.subarray(0, -1),
    'a half head': Uint8Array.of(...good, 0),
    'number 0': hex('000800cb00710710190a'),
    'shorter than its address': hex('000601cb0071071019'),
    'port 0 with a datagram': hex('000801cb00710700000a'),
    'port 0 with an address': hex('000701cb0071070000'),
    'a closing entry of IPv6': hex(`001381${'00'.repeat(16)}0000`),
    'a mapped IPv4 address': ipv6Entry('00000000000000000000ffffcb007107'),
    'a datagram of 1501 bytes': hex(`05e401cb0071071019${'00'.repeat(1501)}`),
  };
  for (const [why, bytes] of Object.entries(invalid)) assert.equal(decodeBatch(bytes), null, why);
  assert.equal(decodeBatch(hex(`05e301cb0071071019${'00'.repeat(1500)}`))?.[0]?.datagram.length, 1500);
});

test('an entry that cannot be sent is not encoded', () => {
  const entry = { number: 1, remote: { host: '203.0.113.7', port: 4121 }, datagram: new Uint8Array() };
  for (const number of [0, 128, 1.5]) assert.throws(() => encodeEntry({ ...entry, number }), RangeError);
  assert.throws(() => encodeEntry({ ...entry, datagram: new Uint8Array(1501) }), RangeError);
  for (const host of ['example.com', '::ffff:203.0.113.7', '2001:DB8::1', ''])
    assert.throws(() => encodeEntry({ ...entry, remote: { host, port: 1 } }), TypeError);
  assert.deepEqual(
    decodeBatch(encodeEntry(closingEntry(9)))?.map(({ number, remote }) => ({ number, remote })),
    [{ number: 9, remote: null }],
  );
});

test('pings carry the count of bytes, and the nonce header is strict', () => {
  for (const { written, payload_hex } of vectors.pings) {
    assert.deepEqual(new Uint8Array(encodePing(written)), hex(payload_hex));
    assert.equal(decodePing(hex(payload_hex)), written);
  }
  for (const bytes of ['', '00', 'ffffffffffffffff', '000000000000000000']) assert.equal(decodePing(hex(bytes)), null);
  assert.deepEqual(decodeNonce(vectors.nonce_header), helperNonce);
  for (const text of [
    undefined,
    '',
    `${vectors.nonce_header}=`,
    vectors.nonce_header.slice(1),
    ` ${vectors.nonce_header}`,
  ])
    assert.equal(decodeNonce(text), null);
});

import { sha256 } from '@noble/hashes/sha2.js';
import { bech32, bech32m, createBase58check } from '@scure/base';
import { fromHex, toHex } from '../../src/foundation/bytes.ts';
import { aidOf, aidToBytes, parseAid } from '../../src/foundation/identity/aid.ts';
import { encodeMultikey } from '../../src/foundation/identity/multikey.ts';
import { phraseBytes, phrasePair } from './common.ts';

const base58check = createBase58check(sha256);

function segwit(prefix: string, version: number, program: Uint8Array): string {
  return bech32.encode(prefix, [version, ...bech32.toWords(program)], 120);
}

function valid() {
  const master = phrasePair('master').publicKey;
  const hash = phraseBytes('address').subarray(0, 20);
  const native = aidOf('native', master);
  const paralism = aidOf('paralism', hash);
  const ethereum = aidOf('ethereum', hash);
  // EIP-55's own examples, and the example address of BIP 173 (private key 1) in its three spellings.
  const eip55 = [
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ];
  const bip173 = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
  const bip173Hash = aidToBytes(parseAid(bip173)).subarray(1);
  return [
    {
      text: native,
      also: [native.toUpperCase(), `  ${native}\n`, `did:key:${encodeMultikey('ed25519', master)}`],
      scheme: 'native',
    },
    { text: paralism, also: [paralism.toUpperCase(), segwit('pr', 0, hash)], scheme: 'paralism' },
    {
      text: bip173,
      also: [segwit('pr', 0, bip173Hash), '1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH', bip173.toUpperCase()],
      scheme: 'paralism',
    },
    { text: ethereum, also: [ethereum.toLowerCase(), ` ${ethereum} `], scheme: 'ethereum' },
    ...eip55.map((text) => ({ text, also: [text.toLowerCase()], scheme: 'ethereum' })),
  ].map((entry) => ({ ...entry, canonical_hex: toHex(aidToBytes(parseAid(entry.text))) }));
}

function invalidTexts() {
  const key = phrasePair('master').publicKey;
  const hash = phraseBytes('address').subarray(0, 20);
  const native = aidOf('native', key);
  const ethereum = aidOf('ethereum', hash);
  const words = bech32m.toWords(key);
  const weak = Uint8Array.from(key, (_, index) => (index === 0 ? 1 : 0));
  return [
    { text: '', why: 'empty' },
    { text: 'aid', why: 'no body' },
    { text: `${native.slice(0, -1)}${native.endsWith('q') ? 'p' : 'q'}`, why: 'wrong checksum' },
    { text: `A${native.slice(1)}`, why: 'mixed case' },
    { text: `${native.slice(0, 20)} ${native.slice(20)}`, why: 'a blank inside' },
    { text: native.replace('aid1', 'ald1'), why: 'another prefix' },
    { text: bech32.encode('aid', words, 120), why: 'the checksum of bech32 instead of bech32m' },
    { text: bech32m.encode('aid1x', words, 120), why: 'the prefix is "aid1x"' },
    { text: bech32m.encode('aid', bech32m.toWords(key.subarray(1)), 120), why: '31 bytes' },
    { text: bech32m.encode('aid', bech32m.toWords(Buffer.concat([key, hash.subarray(0, 1)])), 120), why: '33 bytes' },
    { text: bech32m.encode('aid', [...words.slice(0, -1), 31], 120), why: 'padding that is not zero' },
    { text: `did:key:${encodeMultikey('x25519', key)}`, why: 'the did:key of a key that does not sign' },
    { text: `did:key:${encodeMultikey('ed25519', weak)}`, why: 'the did:key of a key of small order' },
    { text: `did:key:f${toHex(key)}`, why: 'another base than base58btc' },
    { text: `DID:KEY:${encodeMultikey('ed25519', key)}`, why: 'the prefix of a did:key in capitals' },
    { text: `did:web:${encodeMultikey('ed25519', key)}`, why: 'another DID method' },
    { text: aidLike(weak), why: 'a public key of small order' },
    { text: aidLike(new Uint8Array(32).fill(0xff)), why: 'a public key that is not reduced' },
    { text: segwit('bc', 1, hash), why: 'segwit version 1' },
    { text: segwit('bc', 0, key), why: 'segwit version 0 of 32 bytes (P2WSH)' },
    { text: segwit('bc1x', 0, hash), why: 'the prefix is "bc1x"' },
    { text: segwit('tb', 0, hash), why: 'another network' },
    { text: bech32m.encode('bc', [0, ...bech32m.toWords(hash)], 120), why: 'the checksum of bech32m' },
    { text: base58check.encode(Buffer.concat([Uint8Array.of(5), hash])), why: 'a P2SH address' },
    { text: '1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMJ', why: 'wrong checksum' },
    { text: swapCase(ethereum), why: 'wrong EIP-55 checksum' },
    { text: ethereum.slice(0, -1), why: '39 hex characters' },
    { text: `${ethereum.toLowerCase()}00`, why: '42 hex characters' },
    { text: ethereum.slice(2).toLowerCase(), why: 'no 0x' },
    { text: `0X${ethereum.slice(2).toLowerCase()}`, why: '0X instead of 0x' },
    { text: withKelvinSign(), why: 'the Kelvin sign instead of K' },
    { text: 'x'.repeat(101), why: 'too long' },
  ];
}

function aidLike(key: Uint8Array): string {
  return bech32m.encode('aid', bech32m.toWords(key), 120);
}

/** A native AID in upper case with a letter that case folding turns into "k". */
function withKelvinSign(): string {
  for (let n = 0; ; n++) {
    const text = aidLike(phrasePair(`kelvin ${n}`).publicKey).toUpperCase();
    if (text.includes('K')) return text.replace('K', '\u212a');
  }
}

/** Turns the case of the last letter. */
function swapCase(text: string): string {
  return text.replace(/[a-fA-F](?=[^a-fA-F]*$)/, (c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase()));
}

function invalidBytes() {
  const key = toHex(phrasePair('master').publicKey);
  const hash = toHex(phraseBytes('address').subarray(0, 20));
  return [
    { hex: '', why: 'empty' },
    { hex: 'a0', why: 'no body' },
    { hex: `a0${key}00`, why: '33 bytes of body' },
    { hex: `a0${key.slice(2)}`, why: '31 bytes of body' },
    { hex: `a2${key}`, why: 'a body of another scheme' },
    { hex: `a3${hash.slice(2)}`, why: '19 bytes of body' },
    { hex: `a1${key}`, why: 'unknown version' },
    { hex: key, why: 'no version' },
    { hex: `a0${toHex(fromHex('01') ?? new Uint8Array())}${'00'.repeat(31)}`, why: 'a public key of small order' },
  ];
}

export function aidVectors(): unknown {
  return { valid: valid(), invalid_texts: invalidTexts(), invalid_bytes: invalidBytes() };
}

import { toHex } from '../../src/foundation/bytes.ts';
import { KeyPair, parsePrivateKey } from '../../src/foundation/identity/keys.ts';
import { parseWalletKey, walletAid, walletPublicKey } from '../../src/foundation/identity/wallet-keys.ts';
import { encryptionKeyId } from '../../src/foundation/records/payloads.ts';
import { phraseBytes, phrasePair } from './common.ts';

/** RFC 8032, section 7.1, tests 1 to 3. */
const RFC_8032 = [
  ['9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', ''],
  ['4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb', '72'],
  ['c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7', 'af82'],
] as const;
/** The order of secp256k1. */
const ORDER = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';

function signatures() {
  const own = [
    ['master', 'hello'],
    ['operational', 'svcd'],
  ] as const;
  const cases: readonly (readonly [string, string])[] = [
    ...RFC_8032,
    ...own.map(([phrase, text]) => [toHex(phraseBytes(phrase)), toHex(Buffer.from(text))] as const),
  ];
  return cases.map(([seed_hex, message_hex]) => {
    const pair = parsePrivateKey(seed_hex);
    const signature_hex = toHex(pair.sign(Buffer.from(message_hex, 'hex')));
    return { seed_hex, public_key_hex: toHex(pair.publicKey), message_hex, signature_hex };
  });
}

function privateKeys() {
  const pair = phrasePair('operational');
  const [seed, key] = [toHex(pair.seed), toHex(pair.publicKey)];
  return {
    public_key_hex: key,
    valid: [seed, seed.toUpperCase(), `0x${seed}`, ` 0X${seed} `, seed + key, `0x${seed}${key}`.toUpperCase()],
    invalid: [
      { text: '', why: 'empty' },
      { text: seed.slice(2), why: '31 bytes' },
      { text: `${seed}00`, why: '33 bytes' },
      { text: seed.slice(1), why: 'half a byte' },
      { text: `g${seed.slice(1)}`, why: 'not hex' },
      { text: `${seed.slice(0, 32)} ${seed.slice(32)}`, why: 'a blank inside' },
      { text: seed + seed, why: 'the public half is not of the private half' },
    ],
  };
}

function unusablePublicKeys() {
  const ends = (first: string, middle: string, last: string) => first + middle.repeat(30) + last;
  return [
    { hex: ends('00', '00', '00'), why: 'order 4' },
    { hex: ends('00', '00', '80'), why: 'order 4, other sign' },
    { hex: ends('01', '00', '00'), why: 'order 1' },
    { hex: ends('01', '00', '80'), why: 'order 1, impossible sign' },
    { hex: ends('ec', 'ff', '7f'), why: 'order 2' },
    { hex: ends('ec', 'ff', 'ff'), why: 'order 2, impossible sign' },
    { hex: '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', why: 'order 8' },
    { hex: '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85', why: 'order 8' },
    { hex: 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a', why: 'order 8' },
    { hex: 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa', why: 'order 8' },
    { hex: ends('ed', 'ff', '7f'), why: 'not reduced: the prime itself' },
    { hex: ends('ee', 'ff', '7f'), why: 'not reduced: the prime plus 1' },
    { hex: ends('ff', 'ff', 'ff'), why: 'not reduced' },
    { hex: toHex(phraseBytes('short').subarray(1)), why: '31 bytes' },
  ];
}

function walletKeys() {
  const one = `${'00'.repeat(31)}01`;
  // Private key 1, and the first account that Hardhat shows to everyone.
  const known = [one, 'ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'];
  const keys = [...known, toHex(phraseBytes('wallet'))];
  return {
    valid: keys.map((private_key_hex) => {
      const key = walletPublicKey(parseWalletKey(private_key_hex));
      return {
        private_key_hex,
        public_key_hex: toHex(key),
        ethereum_aid: walletAid('ethereum', key),
        paralism_aid: walletAid('paralism', key),
      };
    }),
    invalid: [
      { text: '00'.repeat(32), why: 'zero' },
      { text: ORDER, why: 'the order of the curve' },
      { text: 'ff'.repeat(32), why: 'above the order of the curve' },
      { text: one.slice(2), why: '31 bytes' },
    ],
  };
}

function encryptionKeyIds() {
  return ['x25519 a', 'x25519 b'].map((phrase) => {
    const key = KeyPair.fromSeed(phraseBytes(phrase)).publicKey;
    return { public_key_hex: toHex(key), key_id_hex: toHex(encryptionKeyId(key)) };
  });
}

export function keyVectors(): unknown {
  return {
    ed25519_signatures: signatures(),
    private_keys: privateKeys(),
    unusable_public_keys: unusablePublicKeys(),
    wallet_keys: walletKeys(),
    encryption_key_ids: encryptionKeyIds(),
  };
}

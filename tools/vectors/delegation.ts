import { toHex } from '../../src/foundation/bytes.ts';
import { encodeCbor } from '../../src/foundation/cbor.ts';
import { aidToBytes } from '../../src/foundation/identity/aid.ts';
import {
  type Delegation,
  delegationSigningInput,
  encodeDelegation,
  issueDelegation,
} from '../../src/foundation/identity/delegation.ts';
import { signDelegation } from '../../src/foundation/identity/wallet.ts';
import { walletAid, walletPublicKey } from '../../src/foundation/identity/wallet-keys.ts';
import { hexOf, NOW, phraseBytes, phrasePair, turned } from './common.ts';

const DAY_S = 86_400;

export const MASTER = phrasePair('master');
export const OPERATIONAL = phrasePair('operational');
const WALLET = phraseBytes('wallet');
const WALLET_KEY = walletPublicKey(WALLET);
const GRANT = { operationalKey: OPERATIONAL.publicKey, scope: 1, issuedAt: NOW, expiresAt: NOW + 365 * DAY_S };

export const NATIVE: Delegation = issueDelegation(MASTER, OPERATIONAL.publicKey, NOW);
export const ETHEREUM: Delegation = signDelegation('ethereum', WALLET, {
  ...GRANT,
  agent: walletAid('ethereum', WALLET_KEY),
});
export const PARALISM: Delegation = signDelegation('paralism', WALLET, {
  ...GRANT,
  agent: walletAid('paralism', WALLET_KEY),
});

type Members = Record<string, Uint8Array | number | string | undefined>;

function membersOf(d: Delegation): Members {
  const unsigned = { v: 1, a: aidToBytes(d.agent), k: d.operationalKey, s: d.scope, i: d.issuedAt, e: d.expiresAt };
  return { ...unsigned, g: d.signature, t: d.text };
}

/** The hex of a native proof with some members changed, signed by the master as it is then. */
function signedWith(changes: Members): string {
  const { g: _signature, t: _text, ...unsigned } = { ...membersOf(NATIVE), ...changes };
  const input = Buffer.concat([Buffer.from('svcd/delegation/v1\0'), encodeCbor(unsigned)]);
  return toHex(encodeCbor({ ...unsigned, g: MASTER.sign(input) }));
}

/** The hex of a proof with some members changed and its old signature. */
function changed(d: Delegation, changes: Members): string {
  return toHex(encodeCbor({ ...membersOf(d), ...changes }));
}

function described(name: string, d: Delegation) {
  return {
    name,
    agent: d.agent,
    operational_public_key_hex: toHex(d.operationalKey),
    scope: d.scope,
    issued_at: d.issuedAt,
    expires_at: d.expiresAt,
    ...(d.text === undefined ? { signing_input_hex: toHex(delegationSigningInput(d)) } : { text: d.text }),
    signature_hex: toHex(d.signature),
    proof_hex: toHex(encodeDelegation(d)),
  };
}

/** n − s and the other parity: the second signature that everyone can make of one. */
function highS(signature: Uint8Array): Uint8Array {
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const s = (order - BigInt(`0x${toHex(signature.subarray(32, 64))}`)).toString(16).padStart(64, '0');
  const v = 27 + (1 - ((signature[64] ?? 0) - 27));
  return Uint8Array.from([...signature.subarray(0, 32), ...Buffer.from(s, 'hex'), v]);
}

function withByte(bytes: Uint8Array, index: number, value: number): Uint8Array {
  return Uint8Array.from(bytes, (byte, at) => (at === index ? value : byte));
}

/** The native proof with its map header and one key spelled in a longer way. */
function longSpelling(): string {
  return toHex(encodeDelegation(NATIVE)).replace(/^a7/, 'b807');
}

function unsorted(): string {
  const map = encodeDelegation(NATIVE);
  const version = Buffer.from('617601', 'hex');
  return hexOf(map.subarray(0, 1), version, map.subarray(1, -version.length));
}

function invalid() {
  const text = ETHEREUM.text ?? '';
  return [
    { why: 'no CBOR', proof_hex: 'ff' },
    { why: 'something behind the map', proof_hex: `${toHex(encodeDelegation(NATIVE))}00` },
    { why: 'a header that is not the shortest', proof_hex: longSpelling() },
    { why: 'keys in another order', proof_hex: unsorted() },
    { why: 'version 2', proof_hex: signedWith({ v: 2 }) },
    { why: 'a member too many', proof_hex: signedWith({ x: 1 }) },
    { why: 'no scope', proof_hex: signedWith({ s: undefined }) },
    { why: 'scope 0 is spelled 1 in a proof', proof_hex: signedWith({ s: 0 }) },
    { why: 'scope 2', proof_hex: signedWith({ s: 2 }) },
    { why: 'a time that is negative', proof_hex: signedWith({ i: -1 }) },
    { why: 'a time after the year 9999', proof_hex: signedWith({ e: 253_402_300_800 }) },
    { why: 'it ends when it begins', proof_hex: signedWith({ e: NOW }) },
    { why: 'an operational key of small order', proof_hex: signedWith({ k: withByte(new Uint8Array(32), 0, 1) }) },
    { why: 'an operational key of 31 bytes', proof_hex: signedWith({ k: new Uint8Array(31).fill(7) }) },
    { why: 'a time that is a fraction', proof_hex: signedWith({ i: NOW + 0.5 }) },
    {
      why: 'the signature of another key',
      proof_hex: changed(NATIVE, { g: OPERATIONAL.sign(delegationSigningInput(NATIVE)) }),
    },
    {
      why: 'a signature without the domain',
      proof_hex: changed(NATIVE, { g: MASTER.sign(delegationSigningInput(NATIVE).subarray(19)) }),
    },
    { why: 'a turned bit in the signature', proof_hex: changed(NATIVE, { g: turned(NATIVE.signature, 0) }) },
    { why: 'a signature of 63 bytes', proof_hex: changed(NATIVE, { g: NATIVE.signature.subarray(1) }) },
    { why: 'a later time than was signed', proof_hex: changed(NATIVE, { i: NOW + 1 }) },
    { why: 'another operational key than was signed', proof_hex: changed(NATIVE, { k: MASTER.publicKey }) },
    { why: 'another agent than has signed', proof_hex: changed(NATIVE, { a: aidToBytes(ETHEREUM.agent) }) },
    { why: 'a native proof with a text', proof_hex: changed(NATIVE, { t: text }) },
    { why: 'a wallet proof without a text', proof_hex: changed(ETHEREUM, { t: undefined }) },
    { why: 'a text with another key', proof_hex: changed(ETHEREUM, { k: MASTER.publicKey }) },
    { why: 'a text with another time', proof_hex: changed(ETHEREUM, { e: 0 }) },
    { why: 'a text with another agent', proof_hex: changed(ETHEREUM, { t: PARALISM.text }) },
    { why: 'a line break at the end of the text', proof_hex: changed(ETHEREUM, { t: `${text}\n` }) },
    {
      why: 'the agent in lower case in the text',
      proof_hex: changed(ETHEREUM, { t: text.replace(ETHEREUM.agent, ETHEREUM.agent.toLowerCase()) }),
    },
    {
      why: 'a number with a zero before it',
      proof_hex: changed(ETHEREUM, { t: text.replace('scope: 1', 'scope: 01') }),
    },
    {
      why: 'v of 0 or 1 instead of 27 or 28',
      proof_hex: changed(ETHEREUM, { g: withByte(ETHEREUM.signature, 64, (ETHEREUM.signature[64] ?? 0) - 27) }),
    },
    { why: 'v of 29', proof_hex: changed(ETHEREUM, { g: withByte(ETHEREUM.signature, 64, 29) }) },
    {
      why: 'the other parity',
      proof_hex: changed(ETHEREUM, { g: withByte(ETHEREUM.signature, 64, 55 - (ETHEREUM.signature[64] ?? 0)) }),
    },
    { why: 'a high s', proof_hex: changed(ETHEREUM, { g: highS(ETHEREUM.signature) }) },
    { why: 'a turned bit in s', proof_hex: changed(ETHEREUM, { g: turned(ETHEREUM.signature, 40) }) },
    {
      why: 'r of zero',
      proof_hex: changed(ETHEREUM, { g: Uint8Array.from(ETHEREUM.signature, (byte, at) => (at < 32 ? 0 : byte)) }),
    },
    { why: 'a Bitcoin signature for an Ethereum agent', proof_hex: changed(ETHEREUM, { g: PARALISM.signature }) },
    {
      why: 'the header of an uncompressed key',
      proof_hex: changed(PARALISM, { g: withByte(PARALISM.signature, 0, (PARALISM.signature[0] ?? 0) - 4) }),
    },
    {
      why: 'the header of native segwit',
      proof_hex: changed(PARALISM, { g: withByte(PARALISM.signature, 0, (PARALISM.signature[0] ?? 0) + 8) }),
    },
    { why: 'a turned bit in r', proof_hex: changed(PARALISM, { g: turned(PARALISM.signature, 5) }) },
  ];
}

function windows() {
  const expiring = issueDelegation(MASTER, OPERATIONAL.publicKey, NOW, NOW + DAY_S);
  const proof_hex = toHex(encodeDelegation(expiring));
  const end = NOW + DAY_S;
  return [
    { proof_hex, now: NOW - 61, valid: false },
    { proof_hex, now: NOW - 60, valid: true },
    { proof_hex, now: end + 60, valid: true },
    { proof_hex, now: end + 61, valid: false },
    { proof_hex: toHex(encodeDelegation(NATIVE)), now: NOW + 100 * 365 * DAY_S, valid: true },
  ];
}

export function delegationVectors(): unknown {
  return {
    now: NOW,
    master_seed_hex: toHex(MASTER.seed),
    operational_seed_hex: toHex(OPERATIONAL.seed),
    wallet_private_key_hex: toHex(WALLET),
    valid: [described('native', NATIVE), described('ethereum', ETHEREUM), described('paralism', PARALISM)],
    windows: windows(),
    invalid: invalid(),
  };
}

/** AIDs, keys, delegation proofs and wallet texts. */
import { readCredentials } from '../../../src/capabilities/agents/keyring.ts';
import { equalBytes, toHex } from '../../../src/foundation/bytes.ts';
import { aidFromBytes, aidToBytes, parseAid } from '../../../src/foundation/identity/aid.ts';
import { decodeDelegation, encodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { verifyDelegation } from '../../../src/foundation/identity/delegation-verifier.ts';
import { parsePrivateKey, parsePublicKey, parseSeed } from '../../../src/foundation/identity/keys.ts';
import { parseWalletText, walletDelegation, walletText } from '../../../src/foundation/identity/wallet.ts';
import { parseWalletKey } from '../../../src/foundation/identity/wallet-keys.ts';
import { bytesOf, decoder, refusal, textOf, violation } from '../engine/properties.ts';
import { vectorBytes, vectorTexts } from '../engine/seeds.ts';
import type { FuzzTarget } from '../engine/target.ts';

const NOW = 1_760_000_000;
/** Valid proofs, also those for other times. The fuzzer must not produce a new one. */
const PROOFS = [...vectorBytes('delegation', 'valid.*.proof_hex'), ...vectorBytes('delegation', 'windows.*.proof_hex')];

const aidText = decoder({
  name: 'aid-text',
  inputs: 5000,
  words: ['aid1', 'bc1', 'pr1', '0x', '1', 'q', ' ', '\u212a', '\u0130', '\u{1f600}'],
  seeds: () => bytesOf(...vectorTexts('aid', 'valid.*.text'), ...vectorTexts('aid', 'valid.*.also.*')),
  decode: (bytes) => parseAid(textOf(bytes)),
  refuses: ['bad_aid'],
  encode: (aid) => new TextEncoder().encode(aid),
  check: (aid) => {
    if (aidFromBytes(aidToBytes(aid)) !== aid) throw violation('its bytes decode to another agent', aid);
  },
});

const aidBytes = decoder({
  name: 'aid-bytes',
  inputs: 5000,
  seeds: () => vectorBytes('aid', 'valid.*.canonical_hex'),
  decode: aidFromBytes,
  refuses: ['bad_aid'],
  encode: aidToBytes,
  canonical: true,
  check: (aid) => {
    if (parseAid(aid) !== aid) throw violation('its text decodes to another agent', aid);
  },
});

const delegation = decoder({
  name: 'delegation',
  inputs: 4000,
  seeds: () => PROOFS,
  decode: decodeDelegation,
  refuses: ['bad_delegation'],
  encode: encodeDelegation,
  canonical: true,
  check: (proof, bytes) => {
    try {
      verifyDelegation(proof, NOW);
    } catch (error) {
      return refusal(error, ['bad_delegation']);
    }
    if (!PROOFS.some((known) => equalBytes(known, bytes))) throw violation('a proof was forged', bytes);
    return 'verified';
  },
});

const walletTexts = decoder({
  name: 'wallet-text',
  inputs: 5000,
  words: ['\n', ': ', 'op_key: ', 'agent: ', 'scope: ', 'issued_at: ', 'expires_at: ', '00', '\r\n', '-', ' '],
  seeds: () => bytesOf(...vectorTexts('wallet', 'signatures.*.message')),
  decode: (bytes) => parseWalletText(textOf(bytes)),
  encode: (grant) => new TextEncoder().encode(walletText(grant)),
});

/** A signature over the text of the first vector: only the signature of that vector is valid. */
const walletSignature = decoder({
  name: 'wallet-signature',
  inputs: 500,
  maxBytes: 80,
  edit: () => null,
  seeds: () => vectorBytes('wallet', 'signatures.0.signature_hex'),
  decode: (bytes) => {
    const grant = parseWalletText(vectorTexts('wallet', 'signatures.0.message')[0] ?? '');
    return grant === null ? null : walletDelegation(grant, bytes);
  },
  refuses: ['bad_delegation'],
  check: (proof, bytes) => {
    const [known = new Uint8Array()] = vectorBytes('wallet', 'signatures.0.signature_hex');
    // The last byte has four valid values with the same parity.
    if (!equalBytes(known, proof.signature)) throw violation('a signature was forged', bytes);
  },
});

const KEY_READERS = [parsePrivateKey, parseSeed, parsePublicKey, parseWalletKey];

const keyTexts = decoder({
  name: 'key-text',
  inputs: 2000,
  maxBytes: 400,
  words: ['0x', '0X', ' ', '\n', 'ff', '00', '\u0660'],
  edit: () => null,
  seeds: () =>
    bytesOf(
      ...vectorTexts('keys', 'private_keys.valid.*').map((text) => `0${text}`),
      ...vectorTexts('keys', 'wallet_keys.valid.*.private_key_hex').map((text) => `3${text}`),
      ...vectorTexts('keys', 'ed25519_signatures.*.public_key_hex').map((text) => `2${text}`),
    ),
  // The first character selects the parser.
  decode: (bytes) => {
    const text = textOf(bytes);
    const read = KEY_READERS[Number(text[0])] ?? parseSeed;
    try {
      return read(text.slice(1));
    } catch (error) {
      if (error instanceof Error && text.length > 20 && JSON.stringify(error.message).includes(text.slice(1)))
        throw violation('the error shows the key', text);
      throw error;
    }
  },
  refuses: ['bad_key'],
});

/** A private key and a proof, separated by a space. */
const credentials = decoder({
  name: 'credentials',
  inputs: 2000,
  edit: () => null,
  seeds: () => {
    const [key = ''] = vectorTexts('delegation', 'operational_seed_hex');
    return bytesOf(...PROOFS.slice(0, 3).map((proof) => `${key}|${toHex(proof)}`));
  },
  decode: (bytes) => {
    const [key = '', proof = ''] = textOf(bytes).split('|', 2);
    return readCredentials(key, proof, NOW);
  },
  refuses: ['bad_key', 'bad_delegation'],
});

export const identityTargets: readonly FuzzTarget[] = [
  aidText,
  aidBytes,
  delegation,
  walletTexts,
  walletSignature,
  keyTexts,
  credentials,
];

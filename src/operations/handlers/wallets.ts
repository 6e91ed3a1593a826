/** Handlers of the operations on wallet agents. */
import type { AgentRegistry } from '../../capabilities/agents/registry.ts';
import { fromHex, toHex } from '../../foundation/bytes.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, schemeOf } from '../../foundation/identity/aid.ts';
import { encodeDelegation } from '../../foundation/identity/delegation.ts';
import { badDelegation, checkWindow, type Grant, scopeOf } from '../../foundation/identity/grant.ts';
import { KeyPair, parsePrivateKey, parsePublicKey, parseSeed } from '../../foundation/identity/keys.ts';
import type { NewAids } from '../../foundation/identity/new-identities.ts';
import { issueWalletDelegation, walletDelegation, walletText } from '../../foundation/identity/wallet.ts';
import { makeWalletIdentity } from '../../foundation/identity/wallet-identity.ts';
import { parseWalletKey, type WalletScheme } from '../../foundation/identity/wallet-keys.ts';
import type { Handlers } from '../operation.ts';
import type { walletOperations } from '../wallets.ts';

export interface WalletHandlerDependencies {
  readonly agents: AgentRegistry;
  readonly newAids: NewAids;
  readonly clock: Clock;
}

/** The forms of the operational key that a request may have. */
const KEY_FORMS = [
  'operational_private_key_hex',
  'operational_private_key_seed_hex',
  'operational_public_key_hex',
] as const;

type KeyInput = Readonly<Partial<Record<(typeof KEY_FORMS)[number], string>>>;

type ProofInput = KeyInput & { readonly issued_at: number; readonly expires_at: number; readonly scope?: number };

/** Longest accepted signature, characters: 65 bytes in hex, `0x`, and some white space. */
const MAX_SIGNATURE_TEXT = 160;

function notOneForm(problem: string): SvcError {
  const path = '/operational_private_key_seed_hex';
  return new SvcError('invalid_request', {
    message: `Invalid body: ${path} ${problem}.`,
    details: { in: 'body', path, problem },
  });
}

/** @throws SvcError `bad_key` */
function pairOf(input: KeyInput): KeyPair | null {
  const { operational_private_key_hex: key, operational_private_key_seed_hex: seed } = input;
  // Two forms could contradict each other.
  if (KEY_FORMS.filter((form) => input[form] !== undefined).length > 1)
    throw notOneForm('is one of several forms of the operational key: send exactly one');
  if (key !== undefined) return parsePrivateKey(key);
  return seed === undefined ? null : parseSeed(seed);
}

/** @throws SvcError `bad_key`, `invalid_request` */
function publicKeyOf(input: KeyInput): Uint8Array | null {
  const pair = pairOf(input);
  const { operational_public_key_hex: hex } = input;
  return hex === undefined ? (pair?.publicKey ?? null) : parsePublicKey(hex);
}

/** @throws SvcError `invalid_request` if there is no key */
function required<T>(key: T | null): T {
  if (key === null) throw notOneForm('or another form of the operational key is missing');
  return key;
}

/** @throws SvcError `bad_aid` */
function ethereumAgent(agent: Aid): Aid {
  if (schemeOf(agent) !== 'ethereum')
    throw new SvcError('bad_aid', {
      message: 'This AID is not an Ethereum address (0x and 40 hex digits).',
      details: { reason: 'not an Ethereum address', in: 'body', path: '/agent' },
    });
  return agent;
}

/** @throws SvcError `bad_delegation` */
function signatureBytes(hex: string): Uint8Array {
  const bytes = hex.length > MAX_SIGNATURE_TEXT ? null : fromHex(hex.trim());
  if (bytes === null) throw badDelegation('the signature is not 65 bytes in hex');
  return bytes;
}

function proofOf(scheme: WalletScheme, walletKeyHex: string, input: ProofInput) {
  const walletKey = parseWalletKey(walletKeyHex);
  scopeOf(input.scope);
  const key = publicKeyOf(input) ?? KeyPair.generate();
  const operationalKey = key instanceof KeyPair ? key.publicKey : key;
  const proof = issueWalletDelegation(scheme, walletKey, operationalKey, input.issued_at, input.expires_at);
  return {
    aid: proof.agent,
    delegation_proof_hex: toHex(encodeDelegation(proof)),
    message: proof.text,
    operational_public_key_hex: toHex(operationalKey),
    operational_private_key_hex: key instanceof KeyPair ? toHex(key.seed) : undefined,
  };
}

export function walletHandlers({
  agents,
  newAids,
  clock,
}: WalletHandlerDependencies): Handlers<typeof walletOperations> {
  return {
    walletGenerate: ({ chain = 'ethereum' }) => {
      const identity = makeWalletIdentity(chain, unixSeconds(clock));
      newAids.add(identity.aid);
      return {
        chain,
        aid: identity.aid,
        master_private_key_hex: toHex(identity.walletKey),
        operational_private_key_hex: toHex(identity.operational.seed),
        delegation_proof_hex: toHex(encodeDelegation(identity.delegation)),
        warning:
          "The master key is the wallet's private key. It is shown once and stored nowhere. Keep it safe and offline.",
      };
    },
    ethereumMessage: (input) => {
      const message = walletText({
        agent: ethereumAgent(input.agent),
        operationalKey: required(publicKeyOf(input)),
        scope: scopeOf(input.scope),
        issuedAt: input.issued_at,
        expiresAt: input.expires_at,
      });
      return { message };
    },
    ethereumRegister: async (input) => {
      const pair = required(pairOf(input));
      const grant: Grant = {
        agent: ethereumAgent(input.agent),
        operationalKey: pair.publicKey,
        scope: scopeOf(undefined),
        issuedAt: input.issued_at,
        expiresAt: input.expires_at,
      };
      // Checked first: if the text has expired, the wallet must sign a new one anyway.
      checkWindow(grant, unixSeconds(clock));
      const proof = walletDelegation(grant, signatureBytes(input.eth_signature_hex));
      const aid = await agents.register({
        operationalPrivateKeyHex: toHex(pair.seed),
        delegationProofHex: toHex(encodeDelegation(proof)),
        ...(input.service_tcp === undefined ? {} : { serviceTcp: input.service_tcp }),
      });
      return { aid, status: 'registered' };
    },
    ethereumProof: (input) => proofOf('ethereum', input.ethereum_private_key_hex, input),
    paralismProof: (input) => proofOf('paralism', input.paralism_private_key_hex, input),
  };
}

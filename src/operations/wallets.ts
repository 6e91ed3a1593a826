/** Operations on agents whose master key is a wallet (Ethereum or Paralism). */
import { Type } from 'typebox';
import { AID_FORMAT } from '../foundation/domain/agents.ts';
import { MAX_UNIX_S } from '../foundation/domain/time.ts';
import type { Aid } from '../foundation/identity/aid.ts';
import { agentOperations, PrivateKeyHex, ServiceTcp } from './agents.ts';
import { declare } from './declare.ts';
import { AidText, closed, exactlyOne } from './schemas.ts';

const COMMON = { tag: 'Wallets' };

const Chain = Type.Union([Type.Literal('ethereum'), Type.Literal('paralism')]);
const EthereumAddress = Type.Unsafe<Aid>(Type.String({ format: AID_FORMAT, description: 'Ethereum address, `0x…`.' }));
const UnixTime = { minimum: 0, maximum: MAX_UNIX_S } as const;
const Window = {
  issued_at: Type.Integer({ ...UnixTime, description: 'Unix seconds.' }),
  expires_at: Type.Integer({ ...UnixTime, description: 'Unix seconds after `issued_at`; 0: never.' }),
};
const Scope = Type.Optional(Type.Integer({ minimum: 0, description: '1, network operations; 0 means 1.' }));
const SeedHex = Type.Optional(Type.String({ description: 'Operational key: its 32-byte seed in hex.' }));
const PublicKeyHex = Type.Optional(Type.String({ description: 'Operational key: its public key in hex.' }));
const WalletKeyHex = Type.String({ description: "The wallet's private key, 64 hex characters." });

/** At most one of them. Without any, a new key is generated. */
const OPERATIONAL_KEY = {
  operational_private_key_hex: Type.Optional(PrivateKeyHex),
  operational_private_key_seed_hex: SeedHex,
  operational_public_key_hex: PublicKeyHex,
};

const Proof = Type.Object({
  aid: AidText,
  delegation_proof_hex: Type.String(),
  message: Type.String({ description: 'The signed text.' }),
  operational_public_key_hex: Type.String(),
  operational_private_key_hex: Type.Optional(
    Type.String({ description: 'Present if it was generated here. Returned once, stored nowhere.' }),
  ),
});

/** The key of a wallet may protect more than an agent: it must stay on this machine. */
const PROOF = {
  output: Proof,
  permission: 'local_only',
  errors: ['bad_key', 'bad_delegation', 'local_only'],
} as const;

const MessageBody = closed({
  agent: EthereumAddress,
  ...Window,
  scope: Scope,
  operational_public_key_hex: PublicKeyHex,
  operational_private_key_seed_hex: SeedHex,
});

const RegisterBody = closed({
  agent: EthereumAddress,
  ...Window,
  eth_signature_hex: Type.String({ description: '65 bytes, as `personal_sign` returns them.' }),
  service_tcp: Type.Optional(ServiceTcp),
  operational_private_key_hex: Type.Optional(PrivateKeyHex),
  operational_private_key_seed_hex: SeedHex,
});

const EthereumProofBody = closed({
  ethereum_private_key_hex: WalletKeyHex,
  ...Window,
  scope: Scope,
  ...OPERATIONAL_KEY,
});

const ParalismProofBody = closed({
  paralism_private_key_hex: WalletKeyHex,
  ...Window,
  scope: Scope,
  ...OPERATIONAL_KEY,
});

export const walletOperations = declare(COMMON, {
  walletGenerate: {
    summary: 'Generates a wallet and its identity, and returns the keys once. Nothing is stored or registered.',
    route: 'POST /agents/generate',
    body: closed({ chain: Type.Optional(Type.Union([...Chain.anyOf], { default: 'ethereum' })) }),
    output: Type.Object({ chain: Chain, ...agentOperations.identityGenerate.output.properties }),
    tool: {
      name: 'svc_agents_generate_ethereum',
      description: 'Generate an Ethereum wallet and its identity. Keys are shown once.',
      omit: ['chain'],
    },
  },

  ethereumMessage: {
    summary:
      'Returns the text that an Ethereum wallet signs (EIP-191 `personal_sign`) to delegate to an operational key.',
    route: 'POST /agents/ethereum/delegation-message',
    body: MessageBody,
    shownBody: exactlyOne(MessageBody, ['operational_public_key_hex', 'operational_private_key_seed_hex']),
    output: Type.Object({ message: Type.String() }),
    permission: 'read',
    errors: ['bad_aid', 'bad_key', 'bad_delegation'],
    tool: {
      name: 'svc_ethereum_delegation_message',
      description: 'Text for the wallet to sign; takes one form of the operational key.',
    },
  },

  ethereumRegister: {
    summary: "Registers an Ethereum agent with the wallet's signature of the delegation message.",
    route: 'POST /agents/ethereum/register',
    body: RegisterBody,
    shownBody: exactlyOne(RegisterBody, ['operational_private_key_hex', 'operational_private_key_seed_hex']),
    output: agentOperations.agentRegister.output,
    errors: ['bad_aid', ...agentOperations.agentRegister.errors],
    tool: {
      name: 'svc_ethereum_register',
      description: 'Register an agent with its Ethereum wallet.',
      idempotent: true,
    },
  },

  ethereumProof: {
    ...PROOF,
    summary: 'Signs a delegation with an Ethereum private key. The key is not stored.',
    route: 'POST /agents/ethereum/proof',
    body: EthereumProofBody,
    shownBody: exactlyOne(EthereumProofBody, Object.keys(OPERATIONAL_KEY), true),
    tool: {
      name: 'svc_ethereum_proof',
      description: 'Sign a delegation with a wallet key.',
    },
  },

  paralismProof: {
    ...PROOF,
    summary: 'Signs a delegation with a Paralism private key. The key is not stored.',
    route: 'POST /agents/paralism/proof',
    body: ParalismProofBody,
    shownBody: exactlyOne(ParalismProofBody, Object.keys(OPERATIONAL_KEY), true),
  },
});

/**
 * `svc wallet`: agents of a wallet that keeps its own key, such as a hardware wallet. The wallet only signs a
 * text.
 */
import { fromBase64, fromHex, toHex } from '../../../foundation/bytes.ts';
import { systemClock, unixSeconds } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { readText } from '../../../foundation/files.ts';
import { parseAid, schemeOf } from '../../../foundation/identity/aid.ts';
import { delegates, encodeDelegation } from '../../../foundation/identity/delegation.ts';
import { badDelegation, SCOPE_NETWORK } from '../../../foundation/identity/grant.ts';
import { KeyPair, parseSeed } from '../../../foundation/identity/keys.ts';
import { parseWalletText, walletDelegation, walletText } from '../../../foundation/identity/wallet.ts';
import { memberOf, parseJson } from '../../../foundation/json.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { saveSecret } from '../master-file.ts';
import { EXPIRES_OPTION, expiryOf } from '../new-identity.ts';
import { required } from '../options.ts';
import { NO_PUBLISH, REGISTERED_OUTPUT, registerIdentity } from './identity.ts';

const EXAMPLES = [
  'svc wallet message 0x… --save request.json   # prints the text to sign',
  'svc wallet register request.json 0x…         # the signature of the wallet',
];

async function makeRequest(context: CliContext, address: string, file: string, expires: string | undefined) {
  const agent = parseAid(await context.aid(address));
  if (schemeOf(agent) === 'native')
    throw new SvcError('bad_aid', { message: 'This AID is not a wallet. Only Ethereum and Paralism addresses are.' });
  const operational = KeyPair.generate();
  const text = walletText({
    agent,
    operationalKey: operational.publicKey,
    scope: SCOPE_NETWORK,
    issuedAt: unixSeconds(systemClock),
    expiresAt: expiryOf(expires),
  });
  const request = { message: text, operational_private_key_hex: toHex(operational.seed) };
  saveSecret(file, `${JSON.stringify(request, null, 2)}\n`, 'request');
  return { aid: agent, message: text, request_file: file };
}

/** The file between message and signature. @throws SvcError `invalid_request`, `bad_key` */
function readRequest(file: string) {
  const broken = (cause?: unknown): SvcError =>
    new SvcError('invalid_request', { message: `${file} was not written by "svc wallet message".`, cause });
  let parsed: unknown;
  try {
    parsed = parseJson(readText(file));
  } catch (error) {
    throw broken(error);
  }
  const text = memberOf(parsed, 'message');
  const seed = memberOf(parsed, 'operational_private_key_hex');
  const grant = typeof text === 'string' ? parseWalletText(text) : null;
  if (grant === null || typeof seed !== 'string') throw broken();
  const operational = parseSeed(seed);
  if (!delegates(grant, operational.publicKey)) throw broken();
  return { grant, operational };
}

/** A signature in hex (Ethereum wallets) or base64 (others). */
function readSignature(text: string): Uint8Array {
  const trimmed = text.trim();
  const bytes = fromHex(trimmed) ?? fromBase64(trimmed);
  if (bytes === null) throw badDelegation('the signature is neither hex nor base64');
  return bytes;
}

/** The identity of a request that a wallet signed. */
async function signedIdentity(context: CliContext, file: string, signature: string | undefined) {
  const { grant, operational } = readRequest(file);
  const given = signature === undefined || signature === '-' ? await context.readSecret('signature: ') : signature;
  const proof = walletDelegation(grant, readSignature(given));
  return {
    operational_private_key_hex: toHex(operational.seed),
    delegation_proof_hex: toHex(encodeDelegation(proof)),
  };
}

export function walletCommands(svc: CommandGroup): void {
  const about = 'agents of an Ethereum or Paralism wallet whose key stays in the wallet';
  const wallet = svc.group('wallet', about, EXAMPLES);
  wallet.run('message', 'print the text that a wallet signs to register an agent', {
    examples: EXAMPLES,
    options: {
      '<address>': "the wallet's address",
      '--save <file>': required('save the new operational key to a new file with mode 0600, for "svc wallet register"'),
      ...EXPIRES_OPTION,
    },
    run: (context, { address, save, expires }) => makeRequest(context, address, save, expires),
    text: ({ message }) => message,
    remark: ({ aid, request_file }) =>
      `\nSign these eight lines, without a trailing line break, with the wallet of ${aid}. Then:\n  svc wallet register ${request_file} <signature>`,
  });
  wallet.run('register', 'register and publish the agent with the signature of its wallet', {
    examples: EXAMPLES,
    options: {
      '<file>': 'file written by "svc wallet message"',
      '[signature]': 'hex or base64; prompts or reads standard input if omitted',
      '--service-tcp <address>': 'the service that answers its calls',
      ...NO_PUBLISH,
    },
    run: async (context, { file, signature, ...options }) =>
      registerIdentity(context, await signedIdentity(context, file, signature), options),
    ...REGISTERED_OUTPUT,
    remark: (_, { file }) => `${file} contains the operational key, which the daemon now stores. Delete the file.`,
  });
}

/**
 * `svc wallet`: agents of a wallet whose key stays where it is, such as in a hardware wallet. It
 * signs a text; nothing else of it is needed.
 */
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { fromBase64, fromHex, toHex } from '../../../foundation/bytes.ts';
import { systemClock, unixSeconds } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { parseAid, schemeOf } from '../../../foundation/identity/aid.ts';
import { delegates, encodeDelegation } from '../../../foundation/identity/delegation.ts';
import { badDelegation, type Grant, SCOPE_NETWORK } from '../../../foundation/identity/grant.ts';
import { KeyPair, parseSeed } from '../../../foundation/identity/keys.ts';
import { walletDelegation } from '../../../foundation/identity/wallet.ts';
import { parseWalletText, walletText } from '../../../foundation/identity/wallet-text.ts';
import { memberOf, parseJson } from '../../../foundation/json.ts';
import type { CliContext, ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { saveSecret } from '../master-file.ts';
import { addExpiryOption, expiryOf } from '../new-identity.ts';
import { type PublishOptions, registerIdentity } from './identity.ts';

interface MessageOptions {
  readonly save: string;
  /** ISO 8601. */
  readonly expires?: string;
}

/** What is kept between the message and the signature: the operational key that the message is about. */
interface Request {
  readonly grant: Grant;
  readonly operational: KeyPair;
}

const EXAMPLE = examples(
  'svc wallet message 0x… --save request.json   # prints the text to sign',
  'svc wallet register request.json 0x…         # the signature that the wallet gave',
);

async function message(context: CliContext, address: string, options: MessageOptions): Promise<void> {
  const agent = parseAid(await context.aid(address));
  if (schemeOf(agent) === 'native')
    throw new SvcError('bad_aid', { message: 'This AID is no wallet: only Ethereum and Paralism addresses are.' });
  const operational = KeyPair.generate();
  const text = walletText({
    agent,
    operationalKey: operational.publicKey,
    scope: SCOPE_NETWORK,
    issuedAt: unixSeconds(systemClock),
    expiresAt: expiryOf(options.expires),
  });
  const request = { message: text, operational_private_key_hex: toHex(operational.seed) };
  saveSecret(options.save, `${JSON.stringify(request, null, 2)}\n`, 'request');
  context.show({ aid: agent, message: text, request_file: options.save }, { text: (r) => r.message });
  context.note(
    `\nSign these eight lines, without a line break at the end, with the wallet of ${agent}. Then:\n  svc wallet register ${options.save} <signature>`,
  );
}

/** @throws SvcError `invalid_request`, `bad_key` */
function readRequest(file: string): Request {
  const broken = (cause?: unknown): SvcError =>
    new SvcError('invalid_request', { message: `${file} was not written by "svc wallet message".`, cause });
  let parsed: unknown;
  try {
    parsed = parseJson(readFileSync(file, 'utf8'));
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

/** A signature in hex, as Ethereum wallets give it, or in base64, as the others do. */
function readSignature(text: string): Uint8Array {
  const trimmed = text.trim();
  const bytes = fromHex(trimmed) ?? fromBase64(trimmed);
  if (bytes === null) throw badDelegation('the signature is neither hex nor base64');
  return bytes;
}

async function registerSigned(
  context: CliContext,
  file: string,
  signature: string | undefined,
  options: PublishOptions,
): Promise<void> {
  const { grant, operational } = readRequest(file);
  const given = signature === undefined || signature === '-' ? await context.readSecret('signature: ') : signature;
  const proof = walletDelegation(grant, readSignature(given));
  await registerIdentity(
    context,
    {
      operational_private_key_hex: toHex(operational.seed),
      delegation_proof_hex: toHex(encodeDelegation(proof)),
    },
    options,
  );
  context.note(`${file} holds the operational key, which the daemon keeps from now on: delete the file.`);
}

export function walletCommands(program: Command, contextOf: ContextOf): void {
  const wallet = program
    .command('wallet')
    .description('agents of an Ethereum or Paralism wallet whose key stays in the wallet')
    .addHelpText('after', EXAMPLE);
  const request = wallet
    .command('message')
    .description('print the text that a wallet signs so that an agent of it can be registered')
    .argument('<address>', "the wallet's address")
    .requiredOption('--save <file>', 'keep the new operational key in a new file of mode 0600 until then')
    .addHelpText('after', EXAMPLE)
    .action((address: string, options: MessageOptions, command: Command) =>
      message(contextOf(command), address, options),
    );
  addExpiryOption(request);
  wallet
    .command('register')
    .description('register and publish the agent of a wallet that has signed')
    .argument('<file>', 'of "svc wallet message"')
    .argument('[signature]', 'hex or base64; asked for, or read from standard input, where it is left out')
    .option('--service-tcp <address>', 'the service that answers its calls')
    .option('--no-publish', 'do not wait until it is published; the daemon does that soon unless auto_publish is off')
    .addHelpText('after', EXAMPLE)
    .action((file: string, signature: string | undefined, options: PublishOptions, command: Command) =>
      registerSigned(contextOf(command), file, signature, options),
    );
}

/** `svc register`, `svc identity`: create identities. */
import { SvcError } from '../../../foundation/errors.ts';
import { parseServiceAddress } from '../../../foundation/service-address.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { discardSecret, saveMasterKey } from '../master-file.ts';
import {
  EXPIRES_OPTION,
  type IdentityOptions,
  MASTER_OPTION,
  type NewIdentity,
  newIdentity,
  WALLET_KINDS,
  WALLET_OPTIONS,
  type WalletKind,
} from '../new-identity.ts';
import type { ParsedOptions } from '../options.ts';
import { closeFirstPart, showFirstPart, writeOnce } from '../output.ts';
import { type PublishAttempt, publishedText, tryPublish } from '../publication.ts';
import { formatFields, type WrappedText } from '../text.ts';
import { rejectUsedLabel, setLabel } from './alias.ts';

/** A new identity is published after registration unless this option is set. */
export const NO_PUBLISH = {
  '--no-publish': 'do not publish it until "svc agents publish", even if auto_publish is on',
} as const;

const REGISTER = {
  '--service-tcp <address>': 'the service that answers its calls: host:port, http://host:port or https://host:port',
  '--label <label>': 'your label for it; commands accept it in place of the AID',
  '--save-master <file>': 'save the master key to a new file with mode 0600 instead of printing it',
  ...NO_PUBLISH,
} as const;

type Typeable = ParsedOptions<'', typeof REGISTER>;
/** Commands that register for another purpose have their own name option. */
type RegisterOptions = IdentityOptions & Omit<Typeable, 'label'> & Partial<Pick<Typeable, 'label'>>;

type Credentials = Pick<NewIdentity, 'operational_private_key_hex' | 'delegation_proof_hex'>;

/** A new agent before its registration. */
export interface CreatedAgent {
  readonly aid: string;
  readonly label?: string | undefined;
  readonly master_private_key_hex?: string | undefined;
}

interface Registered extends CreatedAgent, Partial<PublishAttempt> {
  readonly master_file?: string | undefined;
}

export const MASTER_WARNING =
  'The master key is shown once and svcd does not store it. Keep it offline: it is the only way to restore this identity.';

/** The location of the master key of a new identity. */
export function masterKeyText({
  master_private_key_hex: key,
  master_file: file,
}: Pick<Registered, 'master_private_key_hex' | 'master_file'>): string {
  return key ?? (file === undefined ? 'the key that you provided' : `saved in ${file}`);
}

/** Output for a registered identity. */
export const REGISTERED_OUTPUT = {
  text: (r: Registered): WrappedText =>
    formatFields({
      aid: r.aid,
      label: r.label,
      'master key': masterKeyText(r),
      published: publishedText(r),
    }),
  quiet: ({ aid }: Registered): string => aid,
};

/** Labels a new agent. A failure leaves the identity registered. */
async function labelled(context: CliContext, aid: string, label: string): Promise<void> {
  try {
    await setLabel(context, aid, label);
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown failure';
    context.warn(
      `The agent is registered, but could not get the label "${label}": ${reason} Try another one: svc alias add <label> ${aid}`,
    );
  }
}

/** Options of commands that create an agent if none exists. */
export const NEW_AGENT_OPTIONS = {
  '--save-master <file>': 'save the master key of a new agent to a new file with mode 0600 instead of printing it',
  '--print-master': 'print the master key of a new agent even if the output is no terminal',
} as const;

/**
 * Keeps the master key of an agent that a command creates out of logs, unless the user wants it there.
 * @throws SvcError `invalid_request`
 */
export function protectMasterKey({ io }: CliContext, options: ParsedOptions<'', typeof NEW_AGENT_OPTIONS>): void {
  const { save_master: file, print_master: isPrinted } = options;
  if (file !== undefined || isPrinted === true || io.stdout.isTTY === true) return;
  throw new SvcError('invalid_request', {
    message:
      'Nothing was done: this creates an agent, and its master key is shown only once. Save the key with --save-master <file>, or print it with --print-master.',
  });
}

/**
 * Prints the master key before the agent is registered, in the output format of the command.
 * @throws SvcError `not_writable`
 */
export type ShowKey = (agent: CreatedAgent, made: string) => Promise<void>;

/**
 * Creates an identity, saves or prints its master key, then registers and publishes it.
 * @throws SvcError `not_writable` if the key can be neither saved nor printed. Nothing is registered in that case
 */
export async function register(context: CliContext, options: RegisterOptions, showKey: ShowKey, kind?: WalletKind) {
  const { save_master: file, label, service_tcp } = options;
  // Reject an invalid service before a key is shown that would belong to no agent.
  if (service_tcp !== undefined) parseServiceAddress(service_tcp);
  const identity = await newIdentity(context, options, kind);
  const { aid, master_private_key_hex: masterHex, ownMaster } = identity;
  // Check that the daemon answers first. Otherwise a key file would be left behind that blocks the next attempt.
  await context.client.agentsList({ limit: 1 });
  if (label !== undefined) await rejectUsedLabel(context, label);
  if (file !== undefined) saveMasterKey(file, aid, masterHex);
  const shown = file === undefined && !ownMaster ? masterHex : undefined;
  if (shown !== undefined) {
    const made = `The agent ${aid} is registered. If its master key was lost, delete it: svc agents rm ${aid}`;
    // With --quiet, standard output contains only the AID.
    if (isQuiet(context)) await writeOnce(context.io.stderr, `master key of ${aid}: ${masterHex}\n`);
    else await showKey({ aid, label, master_private_key_hex: shown }, made);
  }
  const { aid: registered, ...state } = await registerIdentity(context, identity, options).catch(async (error) => {
    closeFirstPart(context);
    if (await isRefused(context, aid, error)) {
      if (file !== undefined) discardSecret(file);
      if (shown !== undefined) context.warn(`Nothing was registered. Discard the master key of ${aid}.`);
    }
    throw error;
  });
  if (label !== undefined) await labelled(context, registered, label);
  return { aid, label, master_private_key_hex: shown, master_file: file, ...state };
}

function isQuiet({ options }: CliContext): boolean {
  return options.quiet === true && options.json !== true;
}

/** Errors after which the identity may or may not be registered. */
const UNCERTAIN: ReadonlySet<string> = new Set(['timeout', 'cancelled', 'daemon_unreachable']);

/** True if the daemon rejected an identity and confirms that it does not have it. Its master key is useless then. */
async function isRefused({ client }: CliContext, aid: string, error: unknown): Promise<boolean> {
  if (!(error instanceof SvcError) || UNCERTAIN.has(error.code)) return false;
  try {
    await client.agentGet({ aid });
    return false;
  } catch (answer) {
    return answer instanceof SvcError && answer.code === 'not_found';
  }
}

/** Registers an identity here and publishes it, unless disabled. */
export async function registerIdentity(
  context: CliContext,
  { operational_private_key_hex, delegation_proof_hex }: Credentials,
  { service_tcp, publish }: Pick<RegisterOptions, 'service_tcp' | 'publish'>,
) {
  const { client } = context;
  const { aid } = await client.agentRegister({
    operational_private_key_hex,
    delegation_proof_hex,
    service_tcp,
    ...(publish ? {} : { publish }),
  });
  if (!publish) return { aid, published: false };
  return { aid, ...(await context.progress('Publishing', tryPublish(context, aid))) };
}

function ofWallet(kind: WalletKind | undefined): string {
  return kind === undefined ? '' : ` of ${kind.title}`;
}

/**
 * Adds `svc register`, `svc agents new`, or `svc agents new-eth` for one kind of wallet.
 * @param path the words after `svc`
 */
export function addRegister(parent: CommandGroup, path: string, kind?: WalletKind): void {
  parent.run(path.replace(/^.* /, ''), `create an identity${ofWallet(kind)}, register it here and publish it`, {
    examples: [`svc ${path} --service-tcp 127.0.0.1:8080 --save-master master.key`, `svc ${path} --label home`],
    options: { ...REGISTER, ...(kind?.takes ?? { ...WALLET_OPTIONS, ...MASTER_OPTION }), ...EXPIRES_OPTION },
    run: (context, typed) =>
      register(
        context,
        typed,
        (agent, made) => showFirstPart<Registered, unknown>(context, agent, typed, REGISTERED_OUTPUT, made),
        kind,
      ),
    ...REGISTERED_OUTPUT,
    remark: (r) => r.master_private_key_hex !== undefined && MASTER_WARNING,
  });
}

async function makeKeys(context: CliContext, options: IdentityOptions, kind?: WalletKind) {
  const { ownMaster, master_private_key_hex, ...keys } = await newIdentity(context, options, kind);
  return { ...keys, ...(ownMaster ? {} : { master_private_key_hex, warning: MASTER_WARNING }) };
}

export function identityCommands(svc: CommandGroup): void {
  addRegister(svc, 'register');
  const identity = svc.group('identity', 'create keys', ['svc identity new']);
  for (const kind of [undefined, ...WALLET_KINDS]) {
    const usage = kind?.command ?? 'new';
    identity.run(
      usage,
      `create the keys of an identity${ofWallet(kind)} and print them without registering or storing anything`,
      {
        examples: [`svc identity ${usage} --json`],
        options: { ...EXPIRES_OPTION, ...(kind?.takes ?? MASTER_OPTION) },
        run: (context, typed) => makeKeys(context, typed, kind),
        text: (made) =>
          formatFields({
            aid: made.aid,
            master_private_key_hex: made.master_private_key_hex,
            operational_private_key_hex: made.operational_private_key_hex,
            delegation_proof_hex: made.delegation_proof_hex,
          }),
        quiet: ({ aid }) => aid,
        once: { holds: () => true },
        remark: ({ warning }) => warning,
      },
    );
  }
}

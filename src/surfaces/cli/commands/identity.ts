/** `svc register`, `svc identity`: new identities. */
import type { Command } from 'commander';
import type { CliContext, ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { saveMasterKey } from '../master-file.ts';
import {
  addExpiryOption,
  addMasterOption,
  type IdentityOptions,
  type NewIdentity,
  newIdentity,
} from '../new-identity.ts';
import { counted, formatFields } from '../text.ts';
import { addWalletKeyOption, addWalletOptions, WALLETS, type WalletKind } from '../wallet-options.ts';

/** What becomes of an identity once it is registered. */
export interface PublishOptions {
  readonly serviceTcp?: string;
  readonly publish: boolean;
}

interface RegisterOptions extends IdentityOptions, PublishOptions {
  readonly saveMaster?: string;
}

type Credentials = Pick<NewIdentity, 'operational_private_key_hex' | 'delegation_proof_hex'>;

interface RegisterResult {
  readonly aid: string;
  readonly master_private_key_hex?: string;
  readonly master_file?: string;
  readonly published: boolean;
  readonly seq?: number;
  readonly replicas?: number;
  readonly publish_error?: string;
}

const MASTER_WARNING =
  'The master key is shown once and not kept by svcd. Store it offline: it is the only way to restore this identity.';

/** Makes an identity, keeps its master key first of all, then registers and publishes it. */
async function register(context: CliContext, options: RegisterOptions, kind?: WalletKind): Promise<void> {
  const identity = await newIdentity(context, options, kind);
  const { aid, master_private_key_hex: masterHex, ownMaster } = identity;
  // A key file of an identity that no daemon takes would only be in the way of the next try.
  await context.client.agentsList({ limit: 1 });
  if (options.saveMaster !== undefined) saveMasterKey(options.saveMaster, aid, masterHex);
  const shown = options.saveMaster === undefined && !ownMaster;
  await registerIdentity(context, identity, options, {
    ...(shown ? { master_private_key_hex: masterHex } : {}),
    ...(options.saveMaster === undefined ? {} : { master_file: options.saveMaster }),
  });
  if (!shown) return;
  context.note(MASTER_WARNING);
  if (context.options.quiet === true) context.warn(`master key of ${aid}: ${masterHex}`);
}

/** Registers an identity here and publishes it, unless that is not wanted. */
export async function registerIdentity(
  context: CliContext,
  identity: Credentials,
  options: PublishOptions,
  master: Pick<RegisterResult, 'master_private_key_hex' | 'master_file'> = {},
): Promise<void> {
  const { client } = context;
  const { aid } = await client.agentRegister({
    operational_private_key_hex: identity.operational_private_key_hex,
    delegation_proof_hex: identity.delegation_proof_hex,
    ...(options.serviceTcp === undefined ? {} : { service_tcp: options.serviceTcp }),
  });
  let published: { seq: number; replicas: number } | null = null;
  let publishError: string | undefined;
  if (options.publish) {
    try {
      published = await context.progress('Publishing', client.agentPublish({ aid }));
    } catch (error) {
      // The identity stands; the daemon publishes it when the network is there.
      publishError = error instanceof Error ? error.message : 'unknown failure';
    }
  }
  const result: RegisterResult = {
    aid,
    ...master,
    published: published !== null,
    ...published,
    ...(publishError === undefined ? {} : { publish_error: publishError }),
  };
  const masterText = (r: RegisterResult): string =>
    r.master_private_key_hex ?? (r.master_file === undefined ? 'the one you have' : `saved in ${r.master_file}`);
  context.show(result, {
    text: (r) =>
      formatFields([
        ['aid', r.aid],
        ['master key', masterText(r)],
        ['published', r.published ? `yes, kept by ${counted(r.replicas ?? 0, 'node')}` : (r.publish_error ?? 'no')],
      ]),
    quiet: (r) => r.aid,
  });
}

function ofWallet(kind: WalletKind | undefined): string {
  return kind === undefined ? '' : ` of ${kind.title}`;
}

/**
 * `svc register` and `svc agents new` are the same command; `svc agents new-eth` is it for one kind
 * of wallet.
 */
export function addRegister(parent: Command, name: string, contextOf: ContextOf, kind?: WalletKind): void {
  const command = parent
    .command(name)
    .description(`make an identity${ofWallet(kind)}, register it here and publish it`)
    .option(
      '--service-tcp <address>',
      'the service that answers its calls: host:port, http://host:port or https://host:port',
    )
    .option('--save-master <file>', 'write the master key to a new file of mode 0600 instead of showing it')
    .option('--no-publish', 'do not wait until it is published; the daemon does that soon unless auto_publish is off')
    .addHelpText(
      'after',
      examples(
        `svc ${parent.name() === 'svc' ? '' : 'agents '}${name} --service-tcp 127.0.0.1:8080 --save-master master.key`,
      ),
    )
    .action((options: RegisterOptions, self: Command) => register(contextOf(self), options, kind));
  if (kind === undefined) addMasterOption(addWalletOptions(command));
  else addWalletKeyOption(command, kind);
  addExpiryOption(command);
}

function showKeys(context: CliContext, { ownMaster, master_private_key_hex, ...keys }: NewIdentity): void {
  const master = ownMaster ? {} : { master_private_key_hex, warning: MASTER_WARNING };
  context.show(
    { ...keys, ...master },
    {
      text: (i) =>
        formatFields([
          ['aid', i.aid],
          ['master_private_key_hex', i.master_private_key_hex],
          ['operational_private_key_hex', i.operational_private_key_hex],
          ['delegation_proof_hex', i.delegation_proof_hex],
        ]),
      quiet: (i) => i.aid,
    },
  );
  if (!ownMaster) context.note(MASTER_WARNING);
}

export function identityCommands(program: Command, contextOf: ContextOf): void {
  addRegister(program, 'register', contextOf);
  const identity = program
    .command('identity')
    .description('make keys')
    .addHelpText('after', examples('svc identity new'));
  const add = (name: string, kind?: WalletKind): Command => {
    const command = identity
      .command(name)
      .description(`make the keys of an identity${ofWallet(kind)} and print them; nothing is registered or kept`)
      .addHelpText('after', examples(`svc identity ${name} --json`))
      .action(async (options: IdentityOptions, self: Command) => {
        const context = contextOf(self);
        showKeys(context, await newIdentity(context, options, kind));
      });
    return addExpiryOption(command);
  };
  addMasterOption(add('new'));
  for (const kind of WALLETS) addWalletKeyOption(add(kind.command, kind), kind);
}

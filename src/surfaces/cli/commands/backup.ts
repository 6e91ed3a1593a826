/** `svc backup`, `svc restore`: a whole node. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { isoTime, systemClock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { SEALED_PREFIX, seal, unseal } from '../../../foundation/moving/sealed-file.ts';
import type { CliContext, ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { beginningOf, readFilePieces, refuseExisting, writeNewFile } from '../new-file.ts';
import { newPassword, type PasswordOptions, readPassword } from '../password.ts';

interface BackupOptions extends PasswordOptions {
  readonly dataDir?: string;
  readonly keyDir?: string;
  /** False with --no-password. */
  readonly password: boolean;
}

interface RestoreOptions extends PasswordOptions {
  readonly dataDir?: string;
  readonly force?: boolean;
}

const CLEAR_WARNING = 'The file holds every key of this node in clear: whoever reads it can act as all of its agents.';

function agentsText(count: number): string {
  return count === 1 ? '1 agent' : `${count} agents`;
}

/** @throws SvcError `local_only` */
function refuseRemote({ options }: CliContext): void {
  if (options.via !== undefined)
    throw new SvcError('local_only', { message: 'This works on the files of this machine: run it there.' });
}

/** The data directory that is named, or that of the daemon that is named, or the one of this user. */
async function dataDirOf(context: CliContext, named: string | undefined): Promise<string> {
  if (named !== undefined) return resolve(named);
  const isNamed = context.options.api !== undefined || context.io.env['SVC_API'] !== undefined;
  return isNamed ? (await context.local.status()).data_dir : resolve(context.dataDir);
}

async function backup(context: CliContext, file: string, options: BackupOptions, version: string): Promise<void> {
  refuseRemote(context);
  // The database is a large thing to load: only who needs it does.
  const [{ takeSnapshot }, { writeArchive }] = await Promise.all([
    import('../../../foundation/moving/node-backup.ts'),
    import('../../../foundation/moving/node-archive.ts'),
  ]);
  refuseExisting(file);
  const dataDir = await dataDirOf(context, options.dataDir);
  const password = options.password ? await newPassword(context, options) : null;
  const keyDir = options.keyDir === undefined ? undefined : resolve(options.keyDir);
  const snapshot = takeSnapshot({ dataDir, keyDir, pid: process.pid });
  try {
    const createdAt = isoTime(systemClock.now());
    const archive = writeArchive(snapshot.files, { svcdVersion: version, createdAt, agents: snapshot.agents });
    const content = password === null ? archive : seal('node', password, archive);
    const size = await context.progress('Backing up', writeNewFile(file, content));
    const { agents } = snapshot;
    context.show(
      { file, size, agents, data_dir: dataDir, created_at: createdAt, sealed: password !== null },
      { text: () => `${dataDir} with ${agentsText(agents)} is in ${file}, ${size} bytes.`, quiet: () => file },
    );
  } finally {
    snapshot.dispose();
  }
  if (password === null) context.note(CLEAR_WARNING);
  context.note('Objects below files_root are not part of it: copy that folder as well.');
}

async function restore(context: CliContext, file: string, options: RestoreOptions): Promise<void> {
  refuseRemote(context);
  const { restoreNode } = await import('../../../foundation/moving/node-restore.ts');
  const dataDir = resolve(options.dataDir ?? context.dataDir);
  const isSealed = (await beginningOf(file, SEALED_PREFIX.length)) === SEALED_PREFIX;
  const pieces = readFilePieces(file);
  const archive = isSealed ? unseal('node', await readPassword(context, options), pieces) : pieces;
  const restoring = restoreNode(archive, { dataDir, force: options.force === true, now: systemClock.now() });
  const { manifest, replaced } = await context.progress('Restoring', restoring);
  const { agents, createdAt } = manifest;
  context.show(
    { data_dir: dataDir, agents, created_at: createdAt, replaced },
    {
      text: () => `The node of ${createdAt} with ${agentsText(agents)} is in ${dataDir}. Start svcd.`,
      quiet: () => dataDir,
    },
  );
  if (replaced !== null) context.note(`What was there before is in ${replaced}.`);
  context.note('Never run the node of a backup beside the one that it was taken from: they are the same node.');
}

export function backupCommands(program: Command, contextOf: ContextOf, version: string): void {
  program
    .command('backup')
    .argument('<file>')
    .option('--password-file <file>', 'file with the password in its first line; it is asked for otherwise')
    .option('--no-password', 'write it in clear')
    .option('--data-dir <dir>', 'the data directory of the node')
    .option('--key-dir <dir>', 'where its keys are, if that is not in config.toml')
    .description('write the whole node to a sealed file, while the daemon runs or not')
    .addHelpText(
      'after',
      examples('svc backup node.svcd', 'svc backup node.svcd --password-file /root/backup.password'),
    )
    .action((file: string, options: BackupOptions, command: Command) =>
      backup(contextOf(command), file, options, version),
    );
  program
    .command('restore')
    .argument('<file>')
    .option('--password-file <file>', 'file with the password in its first line; it is asked for otherwise')
    .option('--data-dir <dir>', 'the data directory to restore to')
    .option('--force', 'replace a node that is there; it is kept aside')
    .description('put a node back from a backup, all of it or nothing; no daemon may run there')
    .addHelpText('after', examples('svc restore node.svcd', 'svc restore node.svcd --data-dir ./second'))
    .action((file: string, options: RestoreOptions, command: Command) => restore(contextOf(command), file, options));
}

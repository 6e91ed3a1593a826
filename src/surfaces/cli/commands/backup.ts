/** `svc backup`, `svc restore`: back up a whole node. */
import { resolve } from 'node:path';
import { isoTime, systemClock } from '../../../foundation/clock.ts';
import { pluralize } from '../../../foundation/display-text.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { seal } from '../../../foundation/moving/sealed-file.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { openFile, rejectExisting, writeNewFile } from '../new-file.ts';
import type { ParsedOptions } from '../options.ts';
import { writeOnce } from '../output.ts';
import { newPassword } from '../password.ts';
import { shortSize } from '../reach-text.ts';

const PASSWORD = {
  '--password-file <file>': 'file with the password in its first line; prompts if omitted',
} as const;

const BACKUP = {
  ...PASSWORD,
  '--no-password': 'write it unencrypted',
  '--data-dir <dir>': 'the data directory of the node',
  '--key-dir <dir>': 'its key directory, unless config.toml names it',
} as const;

const RESTORE = {
  ...PASSWORD,
  '--data-dir <dir>': 'the data directory to restore to',
  '--force': 'replace an existing node and keep its data in another directory',
} as const;

const CLEAR_WARNING =
  'The file contains all keys of this node unencrypted. Anyone who can read it can act as all of its agents.';

/** The file name that means standard output. */
const STANDARD_OUTPUT = '-';

const OBJECTS_REMARK = 'Objects in files_root are not included. Copy that folder too.';

function remarks(sealed: boolean): string {
  return `${sealed ? '' : `${CLEAR_WARNING}\n`}${OBJECTS_REMARK}`;
}

/** @throws SvcError `local_only` */
function refuseRemote({ options }: CliContext): void {
  if (options.via !== undefined)
    throw new SvcError('local_only', { message: 'This command works on local files. Run it on that machine.' });
}

/** The named data directory, the directory of the named daemon, or the default. */
async function dataDirOf(context: CliContext, named: string | undefined): Promise<string> {
  if (named !== undefined) return resolve(named);
  const isNamed = context.options.api !== undefined || context.io.env['SVC_API'] !== undefined;
  return isNamed ? (await context.local.status()).data_dir : resolve(context.dataDir);
}

async function backup(context: CliContext, options: ParsedOptions<'<file>', typeof BACKUP>, version: string) {
  refuseRemote(context);
  // Loading the database takes long, so only this command does it.
  const [{ takeSnapshot }, { writeArchive }] = await Promise.all([
    import('../../../foundation/moving/node-backup.ts'),
    import('../../../foundation/moving/node-archive.ts'),
  ]);
  const { file } = options;
  const isPiped = file === STANDARD_OUTPUT;
  if (isPiped && context.io.stdout.isTTY === true)
    throw new SvcError('invalid_request', {
      message: 'A backup is binary. Name a file, or pipe the output to a program.',
    });
  if (!isPiped) rejectExisting(file);
  const dataDir = await dataDirOf(context, options.data_dir);
  const password = options.password ? await newPassword(context, options) : null;
  const keyDir = options.key_dir === undefined ? undefined : resolve(options.key_dir);
  const snapshot = takeSnapshot({ dataDir, keyDir, pid: process.pid });
  try {
    const { agents } = snapshot;
    const createdAt = isoTime(systemClock.now());
    const archive = writeArchive(snapshot.files, { svcdVersion: version, createdAt, agents });
    const content = password === null ? archive : seal('node', password, archive);
    if (isPiped) {
      for await (const piece of content) await writeOnce(context.io.stdout, piece);
      context.info(remarks(password !== null));
      return undefined;
    }
    const size = await context.progress('Backing up', writeNewFile(file, content));
    return { file, size, agents, data_dir: dataDir, created_at: createdAt, sealed: password !== null };
  } finally {
    snapshot.dispose();
  }
}

async function restore(context: CliContext, options: ParsedOptions<'<file>', typeof RESTORE>) {
  refuseRemote(context);
  const { restoreNode } = await import('../../../foundation/moving/node-restore.ts');
  const { file, force } = options;
  const dataDir = resolve(options.data_dir ?? context.dataDir);
  const archive = await openFile(context, 'node', file, options);
  const restoring = restoreNode(archive, { dataDir, force: force === true, now: systemClock.now() });
  const { manifest, replaced } = await context.progress('Restoring', restoring);
  return { data_dir: dataDir, agents: manifest.agents, created_at: manifest.createdAt, replaced };
}

export function backupCommands(svc: CommandGroup, version: string): void {
  svc.run('backup', 'write an encrypted backup of the whole node; the daemon may be running', {
    examples: [
      'svc backup node.svcd',
      'svc backup node.svcd --password-file /root/backup.password',
      "svc backup - --password-file /root/backup.password | ssh box 'cat > node.svcd'",
    ],
    options: { '<file>': 'a new file with mode 0600; "-" for standard output', ...BACKUP },
    run: (context, typed) => backup(context, typed, version),
    text: (b) => `Backed up ${b.data_dir} with ${pluralize(b.agents, 'agent')} to ${b.file}, ${shortSize(b.size)}.`,
    quiet: ({ file }) => file,
    remark: ({ sealed }) => remarks(sealed),
  });
  svc.run('restore <file>', 'restore a node from a backup, all or nothing; no daemon may be running there', {
    examples: ['svc restore node.svcd', 'svc restore node.svcd --data-dir ./second'],
    options: RESTORE,
    run: restore,
    text: (r) =>
      `Restored the node of ${r.created_at} with ${pluralize(r.agents, 'agent')} to ${r.data_dir}. Start svcd.`,
    quiet: (r) => r.data_dir,
    remark: ({ replaced }) =>
      `${replaced === null ? '' : `The previous node is in ${replaced}.\n`}Never run a restored node while the original is running: both are the same node.`,
  });
}

/** `svc backup`, `svc restore`: a whole node. */
import { resolve } from 'node:path';
import { isoTime, systemClock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { seal } from '../../../foundation/moving/sealed-file.ts';
import { counted } from '../../../foundation/plain-words.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { openFile, refuseExisting, writeNewFile } from '../new-file.ts';
import { deliver } from '../output.ts';
import { newPassword } from '../password.ts';
import type { Typed } from '../takes.ts';

const PASSWORD = {
  '--password-file <file>': 'file with the password in its first line; it is asked for otherwise',
} as const;

const BACKUP = {
  ...PASSWORD,
  '--no-password': 'write it in clear',
  '--data-dir <dir>': 'the data directory of the node',
  '--key-dir <dir>': 'where its keys are, if that is not in config.toml',
} as const;

const RESTORE = {
  ...PASSWORD,
  '--data-dir <dir>': 'the data directory to restore to',
  '--force': 'replace a node that is there; it is kept aside',
} as const;

const CLEAR_WARNING = 'The file holds every key of this node in clear: whoever reads it can act as all of its agents.';

/** What stands for standard output in the place of a file. */
const STANDARD_OUTPUT = '-';

const OBJECTS_REMARK = 'Objects below files_root are not part of it: copy that folder as well.';

function remarks(sealed: boolean): string {
  return `${sealed ? '' : `${CLEAR_WARNING}\n`}${OBJECTS_REMARK}`;
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

async function backup(context: CliContext, options: Typed<'<file>', typeof BACKUP>, version: string) {
  refuseRemote(context);
  // The database is a large thing to load: only who needs it does.
  const [{ takeSnapshot }, { writeArchive }] = await Promise.all([
    import('../../../foundation/moving/node-backup.ts'),
    import('../../../foundation/moving/node-archive.ts'),
  ]);
  const { file } = options;
  const isPiped = file === STANDARD_OUTPUT;
  if (isPiped && context.io.stdout.isTTY === true)
    throw new SvcError('invalid_request', { message: 'A backup is not text: name a file, or pipe it to a program.' });
  if (!isPiped) refuseExisting(file);
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
      for await (const piece of content) await deliver(context.io.stdout, piece);
      context.note(remarks(password !== null));
      return undefined;
    }
    const size = await context.progress('Backing up', writeNewFile(file, content));
    return { file, size, agents, data_dir: dataDir, created_at: createdAt, sealed: password !== null };
  } finally {
    snapshot.dispose();
  }
}

async function restore(context: CliContext, options: Typed<'<file>', typeof RESTORE>) {
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
  svc.run('backup', 'write the whole node to a sealed file, while the daemon runs or not', {
    examples: [
      'svc backup node.svcd',
      'svc backup node.svcd --password-file /root/backup.password',
      "svc backup - --password-file /root/backup.password | ssh box 'cat > node.svcd'",
    ],
    takes: { '<file>': 'a new file of mode 0600; "-" is standard output', ...BACKUP },
    run: (context, typed) => backup(context, typed, version),
    text: (b) => `${b.data_dir} with ${counted(b.agents, 'agent')} is in ${b.file}, ${b.size} bytes.`,
    quiet: ({ file }) => file,
    remark: ({ sealed }) => remarks(sealed),
  });
  svc.run('restore <file>', 'put a node back from a backup, all of it or nothing; no daemon may run there', {
    examples: ['svc restore node.svcd', 'svc restore node.svcd --data-dir ./second'],
    takes: RESTORE,
    run: restore,
    text: (r) => `The node of ${r.created_at} with ${counted(r.agents, 'agent')} is in ${r.data_dir}. Start svcd.`,
    quiet: (r) => r.data_dir,
    remark: ({ replaced }) =>
      `${replaced === null ? '' : `What was there before is in ${replaced}.\n`}Never run the node of a backup beside the one that it was taken from: they are the same node.`,
  });
}

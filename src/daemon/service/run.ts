/** The program that the service manager starts: the supervisor with its dependencies. */
import { join } from 'node:path';
import { Releases } from '../../capabilities/update/releases.ts';
import { systemClock } from '../../foundation/clock.ts';
import { DataDir } from '../../foundation/data-dir/data-dir.ts';
import { acquireLock } from '../../foundation/data-dir/lock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isSingleFile } from '../../foundation/package-file.ts';
import { VERSION } from '../../foundation/version.ts';
import { nodeProgram } from '../package.ts';
import { onStopSignal } from '../signals.ts';
import { DatabaseSnapshot } from './snapshot.ts';
import { ServiceSupervisor } from './supervisor.ts';

/**
 * Runs the daemon of a data directory until it exits or this process receives a stop signal.
 * @param program path of the installed `svcd`
 * @param args arguments of the daemon
 * @returns the exit code
 * @throws SvcError `already_running`, `not_writable`
 */
export async function superviseDaemon(dataDir: string, program: string, args: readonly string[]): Promise<number> {
  // Creates the directory with owner-only access. The daemon locks it while it runs.
  DataDir.open({ path: dataDir, version: VERSION }, { clock: systemClock }).close();
  const releases = new Releases(dataDir);
  releases.open();
  const lock = acquireLock(releases.directory);
  if (lock === null)
    throw new SvcError('already_running', { message: `Another service uses the data directory ${dataDir}.` });
  const supervisor = new ServiceSupervisor(
    {
      dataDir,
      installed: { version: VERSION, program },
      alone: isSingleFile,
      node: nodeProgram(),
      args,
      environment: process.env,
    },
    {
      releases,
      snapshot: new DatabaseSnapshot(dataDir, join(releases.directory, '.before')),
      clock: systemClock,
      say: (line) => void process.stderr.write(`svcd service: ${line}\n`),
    },
  );
  onStopSignal(process, () => supervisor.stop());
  try {
    return await supervisor.run();
  } finally {
    lock.release();
  }
}

/** The agent that `svc use` selected for commands that name none. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { SvcError } from '../../foundation/errors.ts';
import { writeFileAtomic } from '../../foundation/files.ts';

/** File with the selection, in the data directory of the daemon. */
const CHOICE_FILE = 'svc-use';

function fileIn(dataDir: string): string {
  return join(dataDir, CHOICE_FILE);
}

/** The selected AID of a data directory, unchecked. */
export function chosenAgent(dataDir: string): string | undefined {
  try {
    return readFileSync(fileIn(dataDir), 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Stores the selection. Undefined clears it. @throws SvcError `not_found`, `not_writable` */
export function chooseAgent(dataDir: string, aid: string | undefined): void {
  if (!existsSync(dataDir))
    throw new SvcError('not_found', { message: `The data directory ${dataDir} does not exist. Set SVC_AID instead.` });
  if (aid === undefined) rmSync(fileIn(dataDir), { force: true });
  else writeFileAtomic(fileIn(dataDir), `${aid}\n`);
}

/** The agent that a person has chosen to act as where a command names none. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '../../foundation/atomic-file.ts';
import { SvcError } from '../../foundation/errors.ts';

/** Where the choice is kept, in the data directory of the daemon. */
const CHOICE_FILE = 'svc-use';

function fileIn(dataDir: string): string {
  return join(dataDir, CHOICE_FILE);
}

/** The AID that was chosen for the daemon of a data directory, unchecked. */
export function chosenAgent(dataDir: string): string | undefined {
  try {
    return readFileSync(fileIn(dataDir), 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Keeps a choice; undefined takes it back. @throws SvcError `not_found`, `not_writable` */
export function chooseAgent(dataDir: string, aid: string | undefined): void {
  if (!existsSync(dataDir))
    throw new SvcError('not_found', { message: `There is no data directory ${dataDir}: set SVC_AID instead.` });
  if (aid === undefined) rmSync(fileIn(dataDir), { force: true });
  else writeFileAtomic(fileIn(dataDir), `${aid}\n`);
}

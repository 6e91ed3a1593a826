/** The agent that `svc use` selected for commands that name none. */
import { accessSync, constants, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { SvcError } from '../../foundation/errors.ts';
import { writeFileAtomic } from '../../foundation/files.ts';
import { isObject } from '../../foundation/json.ts';

/** File in the data directory of a daemon. */
const CHOICE_FILE = 'svc-use';
/** File in the user's directory, for daemons whose data directory the user cannot write: AIDs by address of the API. */
const CHOICES_FILE = 'svc-use.json';
/** Stored addresses. A new one replaces the oldest. */
const MAX_ADDRESSES = 100;

interface Place {
  /** Data directory of the daemon; null if it is named by its address. */
  readonly dataDir: string | null;
  /** The user's own data directory; null if there is none. */
  readonly userDir: string | null;
  /** Address of the API. */
  readonly api: () => string;
}

export class ChosenAgent {
  readonly #place: Place;

  constructor(place: Place) {
    this.#place = place;
  }

  /** The selected AID, unchecked. Undefined if none is. */
  read(): string | undefined {
    return this.#inDataDir() ?? this.#byAddress()[this.#address()];
  }

  /** Stores the selection. Undefined clears it. @throws SvcError `not_found`, `not_writable` */
  write(aid: string | undefined): void {
    const { dataDir } = this.#place;
    if (dataDir === null || !isWritable(dataDir)) return this.#writeByAddress(aid);
    const file = join(dataDir, CHOICE_FILE);
    if (aid === undefined) rmSync(file, { force: true });
    else writeFileAtomic(file, `${aid}\n`);
    // A choice from before the directory was writable.
    if (this.#byAddress()[this.#address()] !== undefined) this.#writeByAddress(undefined);
  }

  #inDataDir(): string | undefined {
    const { dataDir } = this.#place;
    if (dataDir === null) return undefined;
    try {
      return readFileSync(join(dataDir, CHOICE_FILE), 'utf8').trim() || undefined;
    } catch {
      return undefined;
    }
  }

  #address(): string {
    return this.#place.api().replace(/\/+$/, '').toLowerCase();
  }

  #byAddress(): Readonly<Record<string, string>> {
    const { userDir } = this.#place;
    try {
      const stored: unknown = userDir === null ? {} : JSON.parse(readFileSync(join(userDir, CHOICES_FILE), 'utf8'));
      const entries = Object.entries(isObject(stored) ? stored : {});
      return Object.fromEntries(entries.filter((one): one is [string, string] => typeof one[1] === 'string'));
    } catch {
      return {};
    }
  }

  #writeByAddress(aid: string | undefined): void {
    const { userDir } = this.#place;
    if (userDir === null)
      throw new SvcError('invalid_request', {
        message:
          'This user has no home directory. Set HOME, or give the data directory with SVCD_DATA_DIR or the agent with SVC_AID.',
      });
    const { [this.#address()]: _before, ...others } = this.#byAddress();
    const kept = Object.entries(others).slice(aid === undefined ? 0 : -(MAX_ADDRESSES - 1));
    const choices = Object.fromEntries(aid === undefined ? kept : [...kept, [this.#address(), aid]]);
    try {
      mkdirSync(userDir, { recursive: true, mode: 0o700 });
    } catch (cause) {
      throw new SvcError('not_writable', {
        message: `The directory ${userDir} cannot be created. Set SVC_AID instead.`,
        cause,
      });
    }
    writeFileAtomic(join(userDir, CHOICES_FILE), `${JSON.stringify(choices, null, 2)}\n`);
  }
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

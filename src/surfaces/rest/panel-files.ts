/** The files of the built panel, read once and kept: they are small, and a build while the daemon runs changes none of them. */
import { memberOf, readJson } from '../../foundation/json.ts';

/** The page that loads the others. */
export const PANEL_PAGE = 'index.html';
const MANIFEST = 'manifest.json';
/** Most files of a panel. */
const MAX_PANEL_FILES = 200;

export interface PanelFile {
  readonly type: string;
  readonly content: Buffer;
}

/** Reads a file of the build by its name; throws where it is not there. */
type ReadFile = (name: string) => Buffer;

type Files = ReadonlyMap<string, PanelFile>;

/** Names and media types as the build wrote them down; none where there is no build. */
function listed(read: ReadFile): readonly (readonly [string, string])[] {
  const manifest = readJson(read(MANIFEST).toString('utf8'));
  const files = memberOf(manifest, 'files');
  if (typeof files !== 'object' || files === null) return [];
  return Object.entries(files)
    .filter((pair): pair is [string, string] => typeof pair[1] === 'string' && /^\w[\w.-]*$/.test(pair[0]))
    .slice(0, MAX_PANEL_FILES);
}

function readAll(read: ReadFile): Files | null {
  try {
    const names = new Map([[PANEL_PAGE, 'text/html; charset=utf-8'], ...listed(read)]);
    return new Map([...names].map(([name, type]) => [name, { type, content: read(name) }]));
  } catch {
    // Not built, or half: as if it were not there, until it is whole.
    return null;
  }
}

export class PanelFiles {
  readonly #read: ReadFile;
  #files: Files | null = null;

  /** @param read gives what the build made; it need not be there yet */
  constructor(read: ReadFile) {
    this.#read = read;
  }

  /** One of the files; undefined for a name that the build did not list, and where there is none. */
  get(name: string): PanelFile | undefined {
    this.#files ??= readAll(this.#read);
    return this.#files?.get(name);
  }
}

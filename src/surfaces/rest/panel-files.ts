/**
 * The files of the built panel. They are small, so they are read once and cached. A build while the daemon runs has no
 * effect.
 */
import { memberOf, readJson } from '../../foundation/json.ts';

/** The page that loads all other files. */
export const PANEL_PAGE = 'index.html';
const MANIFEST = 'manifest.json';
/** Maximum number of panel files. */
const MAX_PANEL_FILES = 200;

export interface PanelFile {
  readonly type: string;
  readonly content: Buffer;
}

/** Reads a file of the build by name. Throws if it does not exist. */
type ReadFile = (name: string) => Buffer;

type Files = ReadonlyMap<string, PanelFile>;

/** Names and media types from the build manifest; none if there is no build. */
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
    // The build is missing or incomplete. Try again on the next request.
    return null;
  }
}

export class PanelFiles {
  readonly #read: ReadFile;
  #files: Files | null = null;

  /** @param read reads a file of the build, which may not exist yet */
  constructor(read: ReadFile) {
    this.#read = read;
  }

  /** A file of the panel; undefined for an unlisted name, or if there is no build. */
  get(name: string): PanelFile | undefined {
    this.#files ??= readAll(this.#read);
    return this.#files?.get(name);
  }
}

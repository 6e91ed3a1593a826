/** The files of the built panel, read once and kept: they are small, and a build while the daemon runs changes none of them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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

type Files = ReadonlyMap<string, PanelFile>;

/** Names and media types as the build wrote them down; none where there is no build. */
function listed(directory: string): readonly (readonly [string, string])[] {
  const manifest = readJson(readFileSync(join(directory, MANIFEST), 'utf8'));
  const files = memberOf(manifest, 'files');
  if (typeof files !== 'object' || files === null) return [];
  return Object.entries(files)
    .filter((pair): pair is [string, string] => typeof pair[1] === 'string' && /^\w[\w.-]*$/.test(pair[0]))
    .slice(0, MAX_PANEL_FILES);
}

function read(directory: string): Files | null {
  try {
    const names = new Map([[PANEL_PAGE, 'text/html; charset=utf-8'], ...listed(directory)]);
    return new Map([...names].map(([name, type]) => [name, { type, content: readFileSync(join(directory, name)) }]));
  } catch {
    // Not built, or half: as if it were not there, until it is whole.
    return null;
  }
}

export class PanelFiles {
  readonly #directory: string;
  #files: Files | null = null;

  /** @param directory where the build puts the panel; it need not exist yet */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** One of the files; undefined for a name that the build did not list, and where there is none. */
  get(name: string): PanelFile | undefined {
    this.#files ??= read(this.#directory);
    return this.#files?.get(name);
  }
}

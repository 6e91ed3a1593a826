/** Writes tar archives from memory, with explicit owners and modes. */
import { Header } from 'tar';

const BLOCK = 512;

export type Entry = {
  /** Without a slash at its beginning. */
  readonly path: string;
  /** Permissions. By default readable by everyone, and executable for folders. */
  readonly mode?: number;
  /** User and group id. Root by default. */
  readonly owner?: number;
} & ({ readonly content: Uint8Array } | { readonly link: string } | { readonly directory: true });

function header(entry: Entry, time: Date): Buffer {
  const { path, owner = 0 } = entry;
  const isDirectory = 'directory' in entry;
  const block = Buffer.alloc(BLOCK);
  const head = new Header({
    path: isDirectory ? `${path}/` : path,
    mode: entry.mode ?? ('content' in entry ? 0o644 : 0o755),
    uid: owner,
    gid: owner,
    size: 'content' in entry ? entry.content.length : 0,
    mtime: time,
    type: isDirectory ? 'Directory' : 'link' in entry ? 'SymbolicLink' : 'File',
    linkpath: 'link' in entry ? entry.link : '',
  });
  if (head.encode(block)) throw new Error(`${path} does not fit in a tar header. Shorten the path.`);
  return block;
}

/** The archive, with these entries in this order. @param time timestamp of all entries */
export function archive(entries: readonly Entry[], time: Date): Buffer {
  const parts = entries.flatMap((entry) => {
    if (!('content' in entry)) return [header(entry, time)];
    const rest = -entry.content.length & (BLOCK - 1);
    return [header(entry, time), entry.content, Buffer.alloc(rest)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

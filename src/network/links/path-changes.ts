/** Tells when new streams to a node begin to take another path. */
import { formatAddress } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Path } from '../transport/path.ts';

/** The path to a node is another one from now on. */
export interface PathChange {
  readonly nodeKey: Uint8Array;
  /** Null where no connection to the node stands any more. */
  readonly path: Path | null;
  /** Null where none stood. */
  readonly before: Path | null;
}

function nameOf(path: Path | null): string {
  return path === null ? '' : `${path.kind} ${formatAddress(path.remote)}`;
}

export class PathChanges {
  /** Told of each change, after it. */
  readonly heard: Listeners<[PathChange]> = new Listeners();
  /** The paths that stand, by the hex of the node's key. */
  readonly #paths = new Map<string, Path>();

  /** Notes what path new streams to a node take now, null for none. */
  note(nodeKey: Uint8Array, path: Path | null): void {
    const node = toHex(nodeKey);
    const before = this.#paths.get(node) ?? null;
    if (path === null) this.#paths.delete(node);
    else this.#paths.set(node, path);
    if (nameOf(path) !== nameOf(before)) this.heard.notify({ nodeKey, path, before });
  }
}

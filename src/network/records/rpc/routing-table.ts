/**
 * The nodes that this node knows. A row holds the nodes whose ids share a number of leading bits with the own id: many
 * near ones, few far ones.
 */
import { type Address, formatAddress } from '../../../foundation/address.ts';

/** Nodes in a row: more than the blocks that one attacker is likely to have. */
export const ROW_NODES = 40;

export interface TableNode extends Address {
  readonly id: Uint8Array;
  /** When it entered the table, when it was last heard, and when it was last heard or pinged. Unix milliseconds. */
  readonly addedAt: number;
  heardAt: number;
  triedAt: number;
}

/** Leading bits that two ids have in common. */
function commonBits(a: Uint8Array, b: Uint8Array): number {
  const at = a.findIndex((byte, i) => byte !== b[i]);
  return at < 0 ? a.length * 8 : at * 8 + Math.clz32((a[at] ?? 0) ^ (b[at] ?? 0)) - 24;
}

export class RoutingTable {
  #id: Uint8Array;
  /** By address; the node that was silent longest comes first. */
  readonly #nodes = new Map<string, TableNode>();

  constructor(id: Uint8Array) {
    this.#id = id;
  }

  get id(): Uint8Array {
    return this.#id;
  }

  get size(): number {
    return this.#nodes.size;
  }

  /** All nodes. The one that was silent longest comes first. */
  nodes(): TableNode[] {
    return [...this.#nodes.values()];
  }

  get(address: Address): TableNode | null {
    return this.#nodes.get(formatAddress(address)) ?? null;
  }

  /** The nodes in the row of an id. */
  row(id: Uint8Array): TableNode[] {
    const bits = commonBits(this.#id, id);
    return this.nodes().filter((node) => commonBits(this.#id, node.id) === bits);
  }

  /** Adds a node. False if it is in the table, is this node itself, or its row is full. */
  add(node: TableNode): boolean {
    const key = formatAddress(node);
    if (this.#nodes.has(key) || commonBits(this.#id, node.id) === this.#id.length * 8) return false;
    if (this.row(node.id).length >= ROW_NODES) return false;
    this.#nodes.set(key, node);
    return true;
  }

  /** Notes that a node was heard. */
  heard(node: TableNode, now: number): void {
    const key = formatAddress(node);
    if (!this.#nodes.delete(key)) return;
    node.heardAt = now;
    node.triedAt = now;
    this.#nodes.set(key, node);
  }

  /** False if the node was not in the table. */
  remove(address: Address): boolean {
    return this.#nodes.delete(formatAddress(address));
  }

  /** Takes another own id. Nodes that find no room in their new rows leave the table. */
  moveTo(id: Uint8Array): void {
    const nodes = this.nodes();
    this.#id = id;
    this.#nodes.clear();
    for (const node of nodes) this.add(node);
  }
}

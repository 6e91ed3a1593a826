/**
 * Keeps the routing table alive: pings nodes that were silent, replaces dead ones, and starts searches for new ones.
 */
import { type Address, formatAddress } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { headOf } from '../node-address.ts';

/** Nodes per row: more than the blocks that one attacker is likely to have. */
export const ROW_NODES = 40;

export interface TableNode extends Address {
  readonly id: Uint8Array;
  /** The first bytes of the id. */
  readonly head: number;
  /** When it entered the table, when it was last heard, and when it was last heard or pinged. Unix milliseconds. */
  readonly addedAt: number;
  heardAt: number;
  triedAt: number;
}

/** Leading bits that two ids have in common. */
function commonBits(a: Uint8Array, b: Uint8Array): number {
  for (let at = 0; at < a.length; at++) {
    const difference = (a[at] ?? 0) ^ (b[at] ?? 0);
    if (difference !== 0) return at * 8 + Math.clz32(difference) - 24;
  }
  return a.length * 8;
}

/**
 * The known nodes. A row has the nodes whose ids share a number of leading bits with the own id: many near nodes, few
 * far nodes.
 */
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

  /** All nodes. The longest silent node comes first. */
  nodes(): TableNode[] {
    return [...this.#nodes.values()];
  }

  get(address: Address): TableNode | null {
    return this.#nodes.get(formatAddress(address)) ?? null;
  }

  /** The nodes in the row of an id. */
  row(id: Uint8Array): TableNode[] {
    const bits = commonBits(this.#id, id);
    const row: TableNode[] = [];
    for (const node of this.#nodes.values()) if (commonBits(this.#id, node.id) === bits) row.push(node);
    return row;
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

/** How often the nodes that were silent longest are pinged, milliseconds. */
const PING_PERIOD_MS = 40_000;
/**
 * Nodes pinged in one period: usually, during other traffic, and if every node was heard or pinged in the last minute.
 */
const PINGS = 5;
const PINGS_IF_BUSY = 3;
const PINGS_IF_RECENT = 2;
const RECENT_MS = 60_000;
/** A node of a full row that was silent this long must answer to keep its place, in ms (BEP 5: 15 minutes). */
export const QUESTIONABLE_MS = 900_000;
/** Nodes that are pinged at one time because a newcomer wants their place. */
const MAX_CONTESTED = 3;
/** How often a search for new nodes starts, milliseconds. */
const REFRESH_MS = 300_000;

export interface TableKeeperDependencies {
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  /** Whether a node answers; null if this node stopped meanwhile. */
  readonly ping: (node: Address) => Promise<boolean | null>;
  readonly isBusy: () => boolean;
  /** Which node of a full row leaves for a newcomer of another block. */
  readonly leavingFor: (newcomer: Address, row: readonly TableNode[]) => TableNode | null;
  readonly onAdd: (node: TableNode) => void;
  readonly onRemove: (node: TableNode) => void;
  /** Searches for the nodes near an id. */
  readonly onRefresh: (id: Uint8Array) => void;
}

export class TableKeeper {
  readonly table: RoutingTable;
  readonly #deps: TableKeeperDependencies;
  #tasks: RepeatingTask[] = [];
  #challenges = 0;

  /** @param id random, until this node has an address */
  constructor(id: Uint8Array, dependencies: TableKeeperDependencies) {
    this.table = new RoutingTable(id);
    this.#deps = dependencies;
  }

  start(): void {
    const { clock, random } = this.#deps;
    // No task below throws. Nodes that start together do not ping and search together.
    const from = (periodMs: number) => ({ periodMs, firstMs: periodMs * (1 - random() / 2), onError: () => {} });
    this.#tasks = [
      every(clock, from(PING_PERIOD_MS), () => this.#pingSome()),
      every(clock, from(REFRESH_MS), () => this.#refresh()),
    ];
  }

  stop(): void {
    for (const task of this.#tasks) task.stop();
  }

  /** A node answered, or a known node sent a request. */
  heard(address: Address, id: Uint8Array): void {
    const now = this.#deps.clock.monotonic();
    const known = this.table.get(address);
    if (known !== null) return this.table.heard(known, now);
    const { host, port } = address;
    const node = { host, port, id, head: headOf(id), addedAt: now, heardAt: now, triedAt: now };
    if (!this.#add(node)) this.#makeRoom(node);
  }

  remove(address: Address): void {
    const node = this.table.get(address);
    if (node === null) return;
    this.table.remove(node);
    this.#deps.onRemove(node);
  }

  #add(node: TableNode): boolean {
    if (!this.table.add(node)) return false;
    this.#deps.onAdd(node);
    return true;
  }

  /** Whether a node that is not in the table would get a place, or may get that of a silent node. */
  mayGetPlace(address: Address, id: Uint8Array): boolean {
    const row = this.table.row(id);
    if (row.length < ROW_NODES || this.#questionable(row) !== null) return true;
    return this.#deps.leavingFor(address, row) !== null;
  }

  /** The node of a row that was silent longest, if it must answer to keep its place. */
  #questionable(row: readonly TableNode[]): TableNode | null {
    const [first, ...others] = row;
    if (first === undefined) return null;
    const tried = others.reduce((a, b) => (b.triedAt < a.triedAt ? b : a), first);
    return this.#deps.clock.monotonic() - tried.triedAt < QUESTIONABLE_MS ? null : tried;
  }

  /** A row is full: one of several nodes of a block leaves for a missing block, and a silent node for any. */
  #makeRoom(newcomer: TableNode): void {
    const row = this.table.row(newcomer.id);
    const leaving = this.#deps.leavingFor(newcomer, row);
    if (leaving !== null) {
      this.remove(leaving);
      this.#add(newcomer);
    } else detach(this.#challenge(row, newcomer));
  }

  async #challenge(row: readonly TableNode[], newcomer: TableNode): Promise<void> {
    // Checked first, because every answer of a node without a place comes here.
    if (this.#challenges >= MAX_CONTESTED) return;
    const silent = this.#questionable(row);
    if (silent === null) return;
    this.#challenges++;
    await this.#check(silent);
    this.#challenges--;
    if (this.table.get(silent) === null) this.#add(newcomer);
  }

  /** Removes a node that does not answer. */
  async #check(node: TableNode): Promise<void> {
    node.triedAt = this.#deps.clock.monotonic();
    const answers = await this.#deps.ping(node);
    if (answers === false && this.table.get(node) === node) this.remove(node);
  }

  #pingSome(): void {
    const nodes = this.table.nodes();
    const [oldest] = nodes;
    if (oldest === undefined) return;
    const isRecent = this.#deps.clock.monotonic() - oldest.triedAt < RECENT_MS;
    const count = isRecent ? PINGS_IF_RECENT : this.#deps.isBusy() ? PINGS_IF_BUSY : PINGS;
    for (const node of nodes.slice(0, count)) detach(this.#check(node));
  }

  #refresh(): void {
    const nodes = this.table.nodes();
    const node = nodes[Math.floor(this.#deps.random() * nodes.length)];
    if (node !== undefined) this.#deps.onRefresh(node.id);
  }
}

/** The honest nodes of the attacked network: real nodes, each at its own public address, all in this process. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import type { Address } from '../../../src/foundation/address.ts';
import { type Clock, systemClock, type Timer } from '../../../src/foundation/clock.ts';
import { NodeRequestHub } from '../memory-node-requests.ts';
import { dhtNode, reached, type TestNode } from '../testnet-dht.ts';
import { closestPositions, type Position } from './positions.ts';

/** The name of the attacked network. */
export const NETWORK = 'attacked';
/** Bootstrap nodes. */
const BOOTSTRAP_NODES = 5;
/** Nodes that join concurrently. */
const BATCH = 20;
/** Consecutive checks without unread datagrams, and milliseconds between two checks. */
const IDLE_CHECKS = 10;
const IDLE_CHECK_MS = 30;
/** Honest nodes that are too near a key to read it: they may store the record themselves. */
const TOO_NEAR = 64;

/** Timers of at least this time are periodic work, in milliseconds. */
const PERIODIC_MS = 30_000;
/** Nodes that do their periodic work concurrently: few, so that they answer each other as quickly as usual. */
const PERIODIC_BATCH = 5;

/**
 * A clock whose periodic work runs on request. Here 200 nodes share one processor, so their periodic searches would
 * delay reads. On separate machines they do not.
 */
class SteppedClock implements Clock {
  readonly #periodic = new Set<() => void>();

  now(): number {
    return systemClock.now();
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  after(ms: number, task: () => void): Timer {
    if (ms < PERIODIC_MS) return systemClock.after(ms, task);
    const periodic = (): void => task();
    this.#periodic.add(periodic);
    return { cancel: () => void this.#periodic.delete(periodic) };
  }

  runPeriodicWork(): void {
    const due = [...this.#periodic];
    this.#periodic.clear();
    for (const task of due) task();
  }
}

export interface HonestNode extends TestNode {
  readonly position: Position;
  readonly clock: SteppedClock;
}

export class HonestNetwork {
  readonly nodes: HonestNode[] = [];
  readonly #positions: readonly Position[];
  readonly #hub = new NodeRequestHub();

  constructor(positions: readonly Position[]) {
    this.#positions = positions;
  }

  /** Starts the bootstrap nodes. */
  async startBootstrap(): Promise<void> {
    for (const position of this.#positions.slice(0, BOOTSTRAP_NODES)) await this.#add(position, true);
  }

  /**
   * Starts all other nodes in batches.
   * @param isAttacked whether nodes may be kept out of the routing tables
   * @param meanwhile called for each batch
   */
  async startOthers(isAttacked: boolean, meanwhile: (nth: number) => Promise<void>): Promise<void> {
    for (let at = BOOTSTRAP_NODES; at < this.#positions.length; at += BATCH) {
      const coming = this.#positions.slice(at, at + BATCH).map((position) => this.#add(position, !isAttacked));
      await Promise.all([...coming, meanwhile(Math.floor(at / BATCH))]);
    }
  }

  async #add(position: Position, toTables: boolean): Promise<void> {
    const bootstrap = this.nodes.slice(0, BOOTSTRAP_NODES).map((node) => addressOf(node.position));
    const clock = new SteppedClock();
    const node = dhtNode(this.#hub, { listen: addressOf(position), bootstrap, network: NETWORK, clock });
    this.nodes.push({ ...node, position, clock });
    await node.dht.start();
    await reached(node.dht, (r) => r.inRoutingTables || (!toTables && r.ready));
  }

  get addresses(): readonly Address[] {
    return this.nodes.map(({ position }) => addressOf(position));
  }

  /** Waits until all nodes have read their datagrams. Outside of a test, each node would have its own machine. */
  async settle(): Promise<void> {
    for (let looks = 0; looks < IDLE_CHECKS; looks = isAllRead() ? looks + 1 : 0) {
      await delay(IDLE_CHECK_MS);
      // After the I/O events of the delay.
      await turn();
    }
  }

  /** All nodes do what they do every minute: search for lost nodes, replicate, remove expired records. */
  async runPeriodicWork(): Promise<void> {
    for (let at = 0; at < this.nodes.length; at += PERIODIC_BATCH) {
      for (const { clock } of this.nodes.slice(at, at + PERIODIC_BATCH)) clock.runPeriodicWork();
      await this.settle();
    }
  }

  /** The nodes far from a key, farthest first. */
  farFrom(key: Uint8Array): HonestNode[] {
    const byPosition = new Map(this.nodes.map((node) => [node.position, node]));
    const far = closestPositions(key, [...byPosition.keys()], this.nodes.length).slice(
      Math.min(TOO_NEAR, this.nodes.length >> 1),
    );
    return far.reverse().flatMap((position) => byPosition.get(position) ?? []);
  }

  /** Nodes at the shared address. */
  atSharedAddress(): HonestNode[] {
    const groups = [...Map.groupBy(this.nodes, ({ position }) => position.host).values()];
    return groups.reduce((most, group) => (group.length > most.length ? group : most), []);
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map(({ dht }) => dht.stop()));
  }
}

/** Whether all sockets of this network namespace, hostile ones included, have no unread datagram. */
function isAllRead(): boolean {
  const [, ...sockets] = readFileSync('/proc/net/udp', 'utf8').trimEnd().split('\n');
  return sockets.every((line) => line.trim().split(/\s+/)[4] === '00000000:00000000');
}

function addressOf({ host, port }: Position): Address {
  return { host, port };
}

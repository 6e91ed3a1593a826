/** The honest nodes of the attacked network: real nodes, each at its own public address, all in this process. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import type { Address } from '../../../src/foundation/address.ts';
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

export interface HonestNode extends TestNode {
  readonly position: Position;
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
    const node = dhtNode(this.#hub, { listen: addressOf(position), bootstrap, network: NETWORK });
    this.nodes.push({ ...node, position });
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

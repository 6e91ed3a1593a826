/** The honest nodes of an attacked network: real ones, each at its own public address, all in this process. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import type { Address } from '../../../src/foundation/address.ts';
import { NodeRequestHub } from '../memory-node-requests.ts';
import { dhtNode, reached, type TestNode } from '../testnet-dht.ts';
import { closestPlaces, type Place } from './places.ts';

/** The name of the attacked network. */
export const NETWORK = 'attacked';
/** Nodes that the others begin with. */
const FIRST_NODES = 5;
/** Nodes that come at once. */
const JOINING = 20;
/** Looks in a row that find nothing unread, and the time between two, milliseconds. */
const CALM_LOOKS = 10;
const CALM_LOOK_MS = 30;
/** Honest nodes that are too near a key to be its readers: they may keep what they would look for. */
const TOO_NEAR = 64;

export interface HonestNode extends TestNode {
  readonly place: Place;
}

export class HonestNetwork {
  readonly nodes: HonestNode[] = [];
  readonly #places: readonly Place[];
  readonly #hub = new NodeRequestHub();

  constructor(places: readonly Place[]) {
    this.#places = places;
  }

  /** The nodes that all others know from the start. */
  async startFirst(): Promise<void> {
    for (const place of this.#places.slice(0, FIRST_NODES)) await this.#add(place, true);
  }

  /**
   * All others, some at a time.
   * @param isAttacked whether nodes may be kept out of the tables
   * @param meanwhile told of each group that comes
   */
  async startOthers(isAttacked: boolean, meanwhile: (nth: number) => Promise<void>): Promise<void> {
    for (let at = FIRST_NODES; at < this.#places.length; at += JOINING) {
      const coming = this.#places.slice(at, at + JOINING).map((place) => this.#add(place, !isAttacked));
      await Promise.all([...coming, meanwhile(Math.floor(at / JOINING))]);
    }
  }

  async #add(place: Place, toTables: boolean): Promise<void> {
    const bootstrap = this.nodes.slice(0, FIRST_NODES).map((node) => addressOf(node.place));
    const node = dhtNode(this.#hub, { listen: addressOf(place), bootstrap, network: NETWORK });
    this.nodes.push({ ...node, place });
    await node.dht.start();
    await reached(node.dht, (r) => r.inRoutingTables || (!toTables && r.ready));
  }

  get addresses(): readonly Address[] {
    return this.nodes.map(({ place }) => addressOf(place));
  }

  /** Waits until all nodes have read what they were sent: outside of a test each would have a machine of its own. */
  async calm(): Promise<void> {
    for (let looks = 0; looks < CALM_LOOKS; looks = isAllRead() ? looks + 1 : 0) {
      await delay(CALM_LOOK_MS);
      // Behind what came while nobody looked.
      await turn();
    }
  }

  /** The nodes that are far from a key, the farthest first. */
  farFrom(key: Uint8Array): HonestNode[] {
    const byPlace = new Map(this.nodes.map((node) => [node.place, node]));
    const far = closestPlaces(key, [...byPlace.keys()], this.nodes.length).slice(
      Math.min(TOO_NEAR, this.nodes.length >> 1),
    );
    return far.reverse().flatMap((place) => byPlace.get(place) ?? []);
  }

  /** Nodes behind the address that most of them share. */
  behindOne(): HonestNode[] {
    const groups = [...Map.groupBy(this.nodes, ({ place }) => place.host).values()];
    return groups.reduce((most, group) => (group.length > most.length ? group : most), []);
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map(({ dht }) => dht.stop()));
  }
}

/** Whether no socket of this network namespace, those of the attackers too, holds a datagram that nobody has taken. */
function isAllRead(): boolean {
  const [, ...sockets] = readFileSync('/proc/net/udp', 'utf8').trimEnd().split('\n');
  return sockets.every((line) => line.trim().split(/\s+/)[4] === '00000000:00000000');
}

function addressOf({ host, port }: Place): Address {
  return { host, port };
}

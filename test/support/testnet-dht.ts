/** A record network of real nodes on 127.0.0.1. */
import { join } from 'node:path';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import { DelegationVerifier } from '../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { RecordVerifier } from '../../src/foundation/records/verifier.ts';
import type { NodeAt } from '../../src/network/node-requests.ts';
import { RecordDht, type RecordDhtOptions } from '../../src/network/records/record-dht.ts';
import type { Reachability } from '../../src/network/records/types.ts';
import { eventually } from './eventually.ts';
import { NodeRequestHub } from './memory-node-requests.ts';

export interface TestNode {
  readonly dht: RecordDht;
  readonly nodeKey: Uint8Array;
  /** The database of its records. */
  readonly storeFile: string;
}

export type TestNodeOptions = Partial<Omit<RecordDhtOptions, 'nodeKey'>> & {
  readonly clock?: Clock;
  /** A folder for the databases of all nodes. Default: in memory. */
  readonly storeIn?: string;
  readonly resolveName?: (name: string) => Promise<readonly string[]>;
  /** Which nodes prove their keys. Default: all. */
  readonly proves?: (node: NodeAt) => boolean;
};

/** Number of peers that each node of a large network knows before the test begins. */
const SETTLED_PEERS = 16;

/** Ports that no node listens on: here they only identify nodes. */
let lastQuicPort = 10_000;

/** A node that is not started. */
export function dhtNode(hub: NodeRequestHub, options: TestNodeOptions = {}): TestNode {
  const { publicKey: nodeKey } = KeyPair.generate();
  const { clock = systemClock, storeIn, resolveName, proves = () => true, ...rest } = options;
  const port = (lastQuicPort = (lastQuicPort % 60_000) + 1);
  const storeFile = rest.storeFile ?? (storeIn === undefined ? ':memory:' : join(storeIn, `${port}.db`));
  const dht = new RecordDht(
    {
      listen: { host: '127.0.0.1', port: 0 },
      bootstrap: [],
      network: 'test',
      maxStoreBytes: 8 * 1024 * 1024,
      minObservedPeers: 3,
      ...rest,
      storeFile,
      nodeKey,
    },
    {
      clock,
      log: silentLog,
      verifier: new RecordVerifier({}, { delegations: new DelegationVerifier() }),
      nodeRequests: hub.join(nodeKey, port),
      quicPort: () => port,
      proveKey: async (node) => proves(node),
      random: Math.random,
      ...(resolveName === undefined ? {} : { resolveName }),
    },
  );
  return { dht, nodeKey, storeFile };
}

/** Waits for a state of a node's reachability. */
export async function reached(dht: RecordDht, holds: (r: Reachability) => boolean): Promise<void> {
  await eventually('the node has joined the network', () => holds(dht.reachability()));
}

export class DhtTestnet {
  readonly hub: NodeRequestHub;
  readonly nodes: TestNode[];

  private constructor(hub: NodeRequestHub, nodes: TestNode[]) {
    this.hub = hub;
    this.nodes = nodes;
  }

  /** Starts `count` nodes that know each other. The first one is the bootstrap node. */
  static async start(count: number, options: TestNodeOptions = {}): Promise<DhtTestnet> {
    const hub = new NodeRequestHub();
    const first = dhtNode(hub, options);
    await first.dht.start();
    const net = new DhtTestnet(hub, [first]);
    const others = Array.from({ length: count - 1 }, () => net.add(options));
    try {
      await Promise.all(others);
      const peers = Math.min(count - 1, SETTLED_PEERS);
      await Promise.all(net.nodes.map(({ dht }) => reached(dht, (r) => r.peers >= peers)));
    } catch (error) {
      // No other object references these nodes, which would keep the process running.
      await Promise.allSettled(others);
      await net[Symbol.asyncDispose]();
      throw error;
    }
    return net;
  }

  /** Adds a node. Resolves when it is in the tables of other nodes. */
  async add(options: TestNodeOptions = {}): Promise<TestNode> {
    const node = dhtNode(this.hub, { bootstrap: [this.at(0).dht.address], ...options });
    this.nodes.push(node);
    await node.dht.start();
    await reached(node.dht, (r) => r.ready && r.inRoutingTables);
    return node;
  }

  at(index: number): TestNode {
    const node = this.nodes.at(index);
    if (node === undefined) throw new RangeError(`no node ${index}`);
    return node;
  }

  /** Stops a node without notice, like a crash. */
  async kill(node: TestNode): Promise<void> {
    this.hub.leave(node.nodeKey);
    this.nodes.splice(this.nodes.indexOf(node), 1);
    await node.dht.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map(({ dht }) => dht.stop()));
  }
}

/**
 * A node with links over the native engine in a separate process. The parent forks this file with the seed of its key
 * and its port, and kills it at the end. It hosts one agent, whose links echo (`tcp`), count (`note`), or send the
 * requested number of MiB (`object`).
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { systemClock } from '../../src/foundation/clock.ts';
import { detach } from '../../src/foundation/detached.ts';
import { type Aid, nativeAid } from '../../src/foundation/identity/aid.ts';
import { selfDelegation } from '../../src/foundation/identity/delegation.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { AgentLinks } from '../../src/network/links/links.ts';
import type { AgentLocation, LinkStream } from '../../src/network/links/types.ts';
import { UNHELPED } from '../../src/network/peers/dial.ts';
import { PeerTable } from '../../src/network/peers/peer-table.ts';
import { loadEngine, type QuicEngine } from '../../src/network/transport/quic/engine.ts';
import { NativeQuicEndpoint } from '../../src/network/transport/quic/native-endpoint.ts';
import type { BulkStreams } from '../../src/network/transport/types.ts';
import { heapInUse } from './leak-check.ts';

const MIB = 1024 * 1024;
const LOOPBACK = '127.0.0.1';

/** A node whose identity is also its only agent. */
export class NativeNode {
  readonly key: KeyPair;
  readonly aid: Aid;
  readonly endpoint: NativeQuicEndpoint;
  readonly pool: PeerTable;
  readonly links: AgentLinks;
  /** Locations of other agents. */
  readonly directory = new Map<Aid, AgentLocation>();

  /**
   * @param standard true to serve the links described at the top of this file
   * @param engine replaces the default engine
   * @param bulk the lanes of the node
   */
  constructor(key: KeyPair, port: number, standard = true, engine?: QuicEngine, bulk?: BulkStreams) {
    this.key = key;
    this.aid = nativeAid(key.publicKey);
    const common = { clock: systemClock, log: silentLog };
    this.endpoint = new NativeQuicEndpoint(
      { key, host: LOOPBACK, port },
      { ...common, ...(engine === undefined ? {} : { engine }) },
    );
    this.pool = new PeerTable({ nodeKey: key.publicKey, network: '' }, { endpoint: this.endpoint, ...common });
    const identity = { aid: this.aid, delegation: selfDelegation(key), sign: (m: Uint8Array) => key.sign(m) };
    this.links = new AgentLinks({
      pool: this.pool,
      ...common,
      identity: (aid) => (aid === this.aid ? identity : null),
      resolver: {
        locate: async (aid) => {
          const location = this.directory.get(aid);
          if (location === undefined) throw new Error('not in the directory of the test');
          return location;
        },
      },
      authorize: () => {},
      ...(bulk === undefined ? {} : { bulk }),
    });
    if (!standard) return;
    this.links.accept('tcp', (link) => void link.pipe(link));
    this.links.accept('note', swallow);
    this.links.accept('object', give);
  }

  async start(): Promise<void> {
    await this.endpoint.start();
    await this.pool.start();
  }

  async stop(): Promise<void> {
    await this.pool.stop();
    await this.endpoint.stop();
  }
}

/** An engine whose streams buffer little. */
export function narrowEngine(): QuicEngine {
  const engine = loadEngine();
  const NarrowConfig = class extends engine.QuinnConfig {
    constructor(options: ConstructorParameters<QuicEngine['QuinnConfig']>[0]) {
      super({ ...options, maxStreamData: 4096 });
    }
  };
  return { ...engine, QuinnConfig: NarrowConfig };
}

function swallow(link: LinkStream): void {
  let total = 0;
  link.on('data', (chunk: Uint8Array) => {
    total += chunk.length;
  });
  link.on('end', () => link.end(String(total)));
}

/** Shared by all links, because tests measure the memory that a link needs. */
const CHUNK: Buffer = Buffer.alloc(64 * 1024, 7);

/** The first byte is the number of requested MiB. */
function give(link: LinkStream): void {
  link.once('data', (wanted: Uint8Array) => {
    let left = (wanted[0] ?? 0) * MIB;
    const fill = (): void => {
      while (left > 0) {
        left -= CHUNK.length;
        // Each chunk has its own memory, as if it came from a service.
        if (!link.write(Buffer.from(CHUNK))) return void link.once('drain', fill);
      }
      link.end();
    };
    fill();
  });
}

/** The other node, controlled by its parent. */
export interface LinkProcess {
  readonly child: ChildProcess;
  readonly location: AgentLocation;
}

/** Resident memory of the other process after a garbage collection, bytes. */
export async function residentBytes({ child }: LinkProcess): Promise<number> {
  child.send('memory');
  const [bytes]: unknown[] = await once(child, 'message');
  return Number(bytes);
}

/** Starts this file's node in another process. */
export async function forkNode(key: KeyPair, port = 0): Promise<LinkProcess> {
  const child = fork(import.meta.filename, [Buffer.from(key.seed).toString('hex'), String(port)]);
  const [listening]: unknown[] = await once(child, 'message');
  if (typeof listening !== 'number') throw new Error('the other process did not say its port');
  const aid = nativeAid(key.publicKey);
  const addresses = [{ host: LOOPBACK, port: listening }];
  return { child, location: { aid, nodeKey: key.publicKey, addresses, ...UNHELPED, delegationIssuedAt: 0 } };
}

if (process.argv[1] === import.meta.filename && process.send !== undefined) {
  const [, , seed = '', port = '0'] = process.argv;
  const node = new NativeNode(KeyPair.fromSeed(new Uint8Array(Buffer.from(seed, 'hex'))), Number(port));
  await node.start();
  process.send(node.endpoint.address.port);
  process.once('disconnect', () => process.exit(0));
  process.on('message', () => {
    detach(heapInUse().then(() => process.send?.(process.memoryUsage.rss())));
  });
}

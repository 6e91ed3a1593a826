/** Two in-memory nodes with an agent each, and the reach report of the first one. */
import { type ReachDependencies, ReachReport } from '../../src/capabilities/reach/reach-report.ts';
import type { PathKind } from '../../src/foundation/domain/tunnels.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { kindByScope } from '../../src/network/transport/path.ts';
import { testKeys } from './agents.ts';
import { type LinkNode, LinkWorld } from './link-world.ts';

export const HELPER = { nodeKey: testKeys(4).publicKey, address: { host: '198.51.100.7', port: 4122 } };
export const PEER = { host: '192.0.2.1', port: 4121 };
export const SEEN_AT = Date.UTC(2026, 1, 3);
const OUTSIDE = { host: '203.0.113.9', port: 4121 };

/** A node that punches, and helps no other node. */
export const REACH: ReachDependencies['reach'] = {
  mapping: () => 'cone',
  seenMapping: () => 'cone',
  reachedAt: () => null,
  relay: { helps: () => false },
};

export class ReachWorld implements AsyncDisposable {
  readonly world: LinkWorld;
  readonly near: LinkNode;
  readonly far: LinkNode;
  readonly local: Aid;
  readonly remote: Aid;
  readonly report: ReachReport;

  private constructor(world: LinkWorld, near: LinkNode, far: LinkNode, more: Partial<ReachDependencies>) {
    this.world = world;
    this.near = near;
    this.far = far;
    this.local = near.host().aid;
    this.remote = far.host().aid;
    far.echo();
    this.report = new ReachReport({
      clock: world.clock,
      nodeKey: near.key.publicKey,
      pool: near.pool,
      links: near.links,
      records: {
        neighbours: () => [
          {
            ...PEER,
            lastSeen: SEEN_AT,
            firstSeen: SEEN_AT - 1000,
            nodeKey: HELPER.nodeKey,
            rttMs: 12,
            isBootstrap: true,
          },
          {
            ...PEER,
            port: 4131,
            lastSeen: SEEN_AT + 1,
            firstSeen: SEEN_AT,
            nodeKey: null,
            rttMs: null,
            isBootstrap: false,
          },
        ],
        reachability: () => ({
          ready: true,
          peers: 2,
          clients: 0,
          natType: 3,
          observed: [OUTSIDE],
          inRoutingTables: false,
        }),
        clocks: () => ({ offsetMs: -1500, peers: 2 }),
      },
      ownAddresses: {
        isRefuted: false,
        current: () => ({ endpoints: [], mapped: [], natType: 3, helpers: [] }),
        known: () => [
          { address: { ...OUTSIDE, port: 4122 }, source: 'observed', verifiedBy: null },
          { address: { host: '10.0.0.2', port: 4122 }, source: 'lan', verifiedBy: null },
          { address: { host: '10.0.0.2', port: 4122 }, source: 'lan', verifiedBy: null },
        ],
      },
      portMapper: {
        view: () => ({
          state: 'mapped',
          ports: [{ protocol: 'pcp', internalPort: 4122, external: { ...OUTSIDE, port: 4122 }, expiresAt: SEEN_AT }],
        }),
      },
      helpers: {
        has: (key) => Buffer.compare(key, HELPER.nodeKey) === 0,
        addresses: [],
        current: [HELPER],
      },
      labels: () => ({ [this.remote]: 'bob' }),
      reach: REACH,
      relayDisabled: () => false,
      interfaces: () => ['127.0.0.1', '10.0.0.2', '::1'],
      kindOf: kindByScope,
      isHere: (aid) => near.agents.has(aid),
      resolver: { locate: async (aid, { fresh }) => world.locate(aid, fresh) },
      ...more,
    });
  }

  /** @param more replaces dependencies of the report */
  static async start(more: Partial<ReachDependencies> = {}): Promise<ReachWorld> {
    const world = new LinkWorld();
    return new ReachWorld(world, await world.node(), await world.node(), more);
  }

  /** Gives the first node a connection to the second over a path. */
  async reach(kind: PathKind): Promise<void> {
    const { near, far } = this;
    const way = { kind } as const;
    await near.pool.upgrade(await near.endpoint.dial(far.endpoint.address, far.key.publicKey, { way }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.world[Symbol.asyncDispose]();
  }
}

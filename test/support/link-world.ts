/** Nodes with links over the in-memory QUIC network, and a directory of locations. */
import type { Readable } from 'node:stream';
import type { Address } from '../../src/foundation/address.ts';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import { type ErrorCode, SvcError } from '../../src/foundation/errors.ts';
import { type Aid, nativeAid } from '../../src/foundation/identity/aid.ts';
import { selfDelegation } from '../../src/foundation/identity/delegation.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { AgentLinks } from '../../src/network/links/links.ts';
import { PooledNodeRequests } from '../../src/network/links/node-requests.ts';
import type {
  AccessRequest,
  AgentLocation,
  LinkStream,
  LocalIdentity,
  LocateOptions,
  Purpose,
} from '../../src/network/links/types.ts';
import { UNHELPED } from '../../src/network/peers/dial.ts';
import { PeerTable } from '../../src/network/peers/peer-table.ts';
import type { LanTcp } from '../../src/network/transport/lan-tcp/lan-tcp.ts';
import type { Endpoint } from '../../src/network/transport/types.ts';
import { newIdentity, type TestIdentity } from './identities.ts';
import { type MemoryEndpointOptions, MemoryNetwork } from './memory-network.ts';

interface NodeOptions extends Omit<MemoryEndpointOptions, 'publicKey'> {
  readonly key?: KeyPair;
  readonly network?: string;
  readonly relayDisabled?: () => boolean;
  /** Local TCP connections in addition to the in-memory ones. */
  readonly upgrade?: LanTcp;
  /** Its own clock instead of the world's. */
  readonly clock?: Clock;
}

export class LinkWorld {
  readonly clock: Clock;
  readonly network: MemoryNetwork;
  /** Results of `locate`. */
  readonly directory = new Map<Aid, AgentLocation>();
  /** Different results of a fresh lookup. */
  readonly fresh = new Map<Aid, AgentLocation>();
  /** Preliminary results, and the lookups that wait afterwards. */
  readonly likely = new Map<Aid, AgentLocation>();
  certain: Promise<void> = Promise.resolve();
  /** Calls of `locate`. */
  readonly asked: { readonly aid: Aid; readonly fresh: boolean }[] = [];
  readonly #nodes: LinkNode[] = [];

  constructor(clock: Clock = systemClock) {
    this.clock = clock;
    this.network = new MemoryNetwork({ clock });
  }

  async node({
    key = KeyPair.generate(),
    network = '',
    relayDisabled,
    upgrade,
    clock = this.clock,
    ...options
  }: NodeOptions = {}): Promise<LinkNode> {
    const endpoint = this.network.endpoint({ ...options, publicKey: key.publicKey });
    const node = new LinkNode(this, { key, endpoint, network, relayDisabled, upgrade, clock });
    this.#nodes.push(node);
    await endpoint.start();
    await node.pool.start();
    return node;
  }

  /** The lookup for links. */
  async find(aid: Aid, { fresh, onLikely }: LocateOptions): Promise<AgentLocation> {
    const likely = this.likely.get(aid);
    if (likely !== undefined) onLikely?.(likely);
    await this.certain;
    return this.locate(aid, fresh);
  }

  locate(aid: Aid, fresh: boolean): AgentLocation {
    this.asked.push({ aid, fresh });
    const location = (fresh ? this.fresh.get(aid) : undefined) ?? this.directory.get(aid);
    if (location === undefined) throw new SvcError('resolve_failed');
    return location;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const node of this.#nodes) await node.stop();
  }
}

/** Lets pending events of the in-memory network happen. No clock advances. */
export async function settle(turns = 20): Promise<void> {
  for (let i = 0; i < turns; i++)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
}

/** Matches an error by its code. */
export function withCode(expected: ErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof SvcError && error.code === expected;
}

interface LinkNodeParts {
  readonly key: KeyPair;
  readonly endpoint: Endpoint;
  readonly network: string;
  readonly relayDisabled: (() => boolean) | undefined;
  readonly upgrade: LanTcp | undefined;
  readonly clock: Clock;
}

export class LinkNode {
  readonly key: KeyPair;
  readonly upgrade: LanTcp | null;
  readonly endpoint: Endpoint;
  readonly pool: PeerTable;
  readonly links: AgentLinks;
  readonly requests: PooledNodeRequests;
  readonly agents = new Map<Aid, LocalIdentity>();
  /** Calls of `authorize`. */
  readonly authorized: AccessRequest[] = [];
  /** The delegations that the node has seen, and calls of `note`. */
  readonly newest = new Map<Aid, number>();
  readonly noted: [Aid, number][] = [];
  authorize: (request: AccessRequest) => void | Promise<void> = () => {};
  isAdmitted: () => boolean = () => true;
  readonly #world: LinkWorld;
  #stopped = false;

  constructor(world: LinkWorld, { key, endpoint, network, relayDisabled, upgrade, clock }: LinkNodeParts) {
    this.#world = world;
    this.key = key;
    this.endpoint = endpoint;
    this.upgrade = upgrade ?? null;
    const common = { clock, log: silentLog };
    this.pool = new PeerTable(
      { nodeKey: key.publicKey, network },
      {
        endpoint,
        relayDisabled: () => relayDisabled?.() === true,
        ...common,
        ...(upgrade === undefined ? {} : { upgrade }),
      },
    );
    this.links = new AgentLinks({
      pool: this.pool,
      ...common,
      identity: (aid) => this.agents.get(aid) ?? null,
      resolver: { locate: (aid, options) => world.find(aid, options) },
      authorize: (request) => {
        this.authorized.push(request);
        return this.authorize(request);
      },
      isAdmitted: () => this.isAdmitted(),
      seen: {
        newest: (aid) => this.newest.get(aid) ?? 0,
        note: (aid, issuedAt) => void this.noted.push([aid, issuedAt]),
      },
    });
    this.requests = new PooledNodeRequests({ pool: this.pool, clock });
  }

  /** Hosts an agent here and adds it to the directory. */
  host(agent: TestIdentity = newIdentity()): TestIdentity {
    const { aid, delegation, operational } = agent;
    this.agents.set(aid, { aid, delegation, sign: (message) => operational.sign(message) });
    this.#world.directory.set(aid, this.location(agent));
    return agent;
  }

  /** Hosts the identity of the node itself. */
  hostNode(): LocalIdentity {
    const delegation = selfDelegation(this.key);
    const node = {
      aid: nativeAid(this.key.publicKey),
      delegation,
      sign: (message: Uint8Array) => this.key.sign(message),
    };
    this.agents.set(node.aid, node);
    this.#world.directory.set(node.aid, this.location(node));
    return node;
  }

  location(
    { aid, delegation }: Pick<TestIdentity, 'aid' | 'delegation'>,
    addresses: readonly Address[] = [this.endpoint.address],
  ): AgentLocation {
    return { aid, nodeKey: this.key.publicKey, addresses, ...UNHELPED, delegationIssuedAt: delegation.issuedAt };
  }

  /** Collects the links of a purpose. */
  inbox(purpose: Purpose = 'tcp'): LinkStream[] {
    const links: LinkStream[] = [];
    this.links.accept(purpose, (link) => links.push(link));
    return links;
  }

  /** Echoes all data of a purpose. */
  echo(purpose: Purpose = 'tcp'): void {
    this.links.accept(purpose, (link) => link.pipe(link));
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await this.upgrade?.stop();
    await this.pool.stop();
    await this.endpoint.stop();
  }
}

/** Reads a stream to its end. Its other half stays open. */
export async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/**
 * How this node joins the network. It contacts its bootstrap nodes, then lets peers send to its server socket, from
 * which it has sent nothing. If strangers can reach it, it enters the routing tables; if not, it tries again later.
 */
import { type Address, formatAddress, type NodeContact } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import { detach } from '../../foundation/detached.ts';
import type { MeetingState, ProofState } from '../../foundation/domain/joining.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { RandomParts } from '../../foundation/node-parts.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { BootstrapNodes, Meeting } from './bootstrap-nodes.ts';
import type { DhtEngine } from './engine.ts';
import { COMMAND, encodeProbeRequest, type ProbeRequest } from './messages.ts';
import { apartFirst, nodeId, nodeScope, voterOf } from './node-address.ts';
import type { HostCheck, ObservedAddresses } from './own-hosts.ts';
import type { RpcAnswer, RpcMessage } from './rpc/rpc.ts';
import { SEARCH_WIDTH } from './searches.ts';
import type { Reachability } from './types.ts';

/** Peers that probe us. */
const PROBE_PEERS = 8;
/**
 * Minimum and maximum pause between attempts to reach a contact, in ms. In the first minutes after a start or network
 * change, pauses are shorter: a user may log in to a portal, or a block may end.
 */
const MIN_RETRY_MS = 500;
const MAX_EARLY_RETRY_MS = 5_000;
const MAX_RETRY_MS = 30_000;
/** Length of these first minutes, in ms. */
const EARLY_MS = 600_000;
/** Minimum and maximum pause between probes while strangers cannot reach us, in ms. */
const MIN_PROBE_PAUSE_MS = 15_000;
const MAX_PROBE_PAUSE_MS = 600_000;
/** Pauses until a new member searches for its neighbors again, in ms. */
const ANNOUNCEMENTS_MS = [50, 500, 5000];
/**
 * Pause between attempts to reach contacts that are missing in the table, in ms. One side of a partition finds the
 * other this way.
 */
const REUNION_MS = 60_000;
/** Delay of the probe after a new peer, so that several peers are probed together, in ms. */
const SETTLE_MS = 20;

interface MembershipOptions {
  /** Distinct peers that must report the same address, if there are that many. */
  readonly minObservedPeers: number;
  /** The configured public address of this node, which no interface has; empty without one. */
  readonly statedHost?: string;
}

export interface MembershipDependencies extends RandomParts, HostCheck {
  readonly engine: Pick<
    DhtEngine,
    | 'address'
    | 'ownAddress'
    | 'id'
    | 'peerCount'
    | 'clientCount'
    | 'nodes'
    | 'hasNode'
    | 'join'
    | 'leave'
    | 'request'
    | 'isOwn'
    | 'lacksNeighbor'
  >;
  readonly bootstrapNodes: BootstrapNodes;
  readonly observed: ObservedAddresses;
  readonly searches: Meeting & {
    /** As `Searches.neighborsFrom`. */
    neighborsFrom(contact: Address): Promise<readonly Address[] | null>;
    /** Searches for the nodes closest to an id, which get to know this node. */
    forWrite(id: Uint8Array): { readonly finished: Promise<void> };
  };
}

export class Membership {
  readonly #options: MembershipOptions;
  readonly #deps: MembershipDependencies;
  readonly #changes = new Listeners<[Reachability]>();
  readonly #entries: RepeatingTask;
  readonly #looks: RepeatingTask;
  readonly #probes: RepeatingTask;
  readonly #announcements: RepeatingTask;
  readonly #reunions: RepeatingTask;
  /** Peers whose answer to the current probe has arrived at the server socket. */
  readonly #reachedBy = new Set<string>();
  /** Consecutive failures to reach any contact, and failed probes. */
  #failedEntries = 0;
  #failedProbes = 0;
  /** Remaining pauses before announcements. */
  #pauses: number[] = [];
  #natType = 0;
  /** When this node started, or its network changed. */
  #begunAt = 0;
  #searched = false;
  #probing = false;
  #stopped = false;
  #last = '';

  constructor(options: MembershipOptions, dependencies: MembershipDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    const { clock, random } = dependencies;
    const waiting = { firstMs: UNTIL_REQUESTED, periodMs: MAX_RETRY_MS, onError: this.#onError };
    this.#entries = every(clock, waiting, () => this.#enter());
    this.#looks = every(clock, waiting, () => this.#lookAtTable());
    this.#probes = every(clock, waiting, () => this.#probe());
    this.#announcements = every(clock, waiting, () => this.#announce());
    // Nodes that start together do not search together.
    const firstMs = REUNION_MS * (1 - random() / 2);
    this.#reunions = every(clock, { firstMs, periodMs: REUNION_MS, onError: this.#onError }, () => this.#reunite());
  }

  readonly #onError = (error: unknown): void => {
    if (!this.#stopped) this.#deps.log.warn({ error }, 'joining the network failed');
  };

  /** Starts in the background, because the network may be available only later. */
  start(): void {
    this.#begunAt = this.#deps.clock.monotonic();
    this.#entries.soon();
  }

  stop(): void {
    this.#stopped = true;
    for (const repeating of [this.#entries, this.#looks, this.#probes, this.#announcements, this.#reunions])
      repeating.stop();
  }

  /** Contacts every bootstrap node, joins the tables if possible, and tries again later without an answer. */
  async #enter(): Promise<number> {
    const { bootstrapNodes, engine, searches } = this.#deps;
    const greeted = await anyOf(bootstrapNodes.meet(searches));
    if (this.#stopped) return UNTIL_REQUESTED;
    if (greeted || engine.peerCount > 0) {
      await searches.forWrite(engine.id).finished;
      this.#searched = true;
      // Lookups wait for this, and the probe takes a second if nothing reaches this node.
      this.#report();
      this.#probes.soon(await this.#probe());
    } else if (engine.ownAddress === null && nodeScope(engine.address.host) !== IP_SCOPE.none) {
      // The first node of a network adopts its listening address if it is a single address.
      await engine.join(engine.address);
    }
    this.#report();
    this.#failedEntries = engine.peerCount === 0 ? this.#failedEntries + 1 : 0;
    const isEarly = this.#deps.clock.monotonic() - this.#begunAt < EARLY_MS;
    const maxMs = isEarly ? MAX_EARLY_RETRY_MS : MAX_RETRY_MS;
    return backoff({ firstMs: MIN_RETRY_MS, maxMs }, this.#failedEntries) || UNTIL_REQUESTED;
  }

  /**
   * Contacts bootstrap nodes and nodes that left the table. If they name unknown neighbors, this node joins by them
   * again: after a partition the table has only nodes of one side, and nothing else leads to the other side.
   */
  async #reunite(): Promise<void> {
    const { bootstrapNodes, engine, searches } = this.#deps;
    if (!this.#searched || engine.peerCount === 0) return;
    const isInTable = (address: Address): boolean => engine.hasNode(address) || engine.isOwn(address);
    const named: Address[] = [];
    const greet = async (address: Address): Promise<boolean> => {
      const neighbors = await searches.neighborsFrom(address);
      if (neighbors !== null) named.push(address, ...neighbors);
      return neighbors !== null;
    };
    const prove = async (address: Address, nodeKey: Uint8Array): Promise<ProofState> => {
      const state = await searches.prove(address, nodeKey);
      if (state === 'met') await greet(address);
      return state;
    };
    await Promise.all(bootstrapNodes.meetAgain({ greet, prove }, isInTable));
    if (this.#stopped || !engine.lacksNeighbor(named, SEARCH_WIDTH)) return;
    await searches.forWrite(engine.id).finished;
    const own = engine.ownAddress;
    if (own !== null) await searches.forWrite(oppositeOf(nodeId(own))).finished;
  }

  /** Adds a node, for example one found on the LAN. */
  addContact(address: Address): void {
    if (!this.#deps.bootstrapNodes.add(address) || this.#stopped) return;
    this.#failedEntries = 0;
    this.#entries.soon();
  }

  /** Contacts a node and joins by it. If it answers, it stays a contact. */
  async join(contact: NodeContact): Promise<MeetingState> {
    const { bootstrapNodes, searches } = this.#deps;
    const state = await bootstrapNodes.join(contact, searches);
    if (state !== 'met' || this.#stopped) return state;
    this.#failedEntries = 0;
    this.#entries.soon();
    return state;
  }

  /** Call this if the routing table gains or loses a node. */
  onTableChange(): void {
    this.#looks.soon(SETTLE_MS);
  }

  #lookAtTable(): number {
    const { engine } = this.#deps;
    this.#report();
    if (engine.peerCount > 0 && this.#searched) {
      if (engine.ownAddress === null && this.#failedProbes === 0 && !this.#probing) this.#probes.soon();
      // After a failed attempt, the pause before the next one applies while the table is empty.
    } else if (!this.#entries.isRunning && (engine.peerCount > 0 || this.#failedEntries === 0)) this.#entries.soon();
    return UNTIL_REQUESTED;
  }

  /**
   * Call this if this machine's addresses change, or it wakes from sleep. This node leaves the tables first: a probe
   * proves something only while the server socket has sent nothing on the new network.
   */
  onNetworkChange(): void {
    const { engine, observed } = this.#deps;
    observed.clear();
    if (nodeScope(engine.address.host) === IP_SCOPE.none) engine.leave();
    this.#failedProbes = 0;
    this.#begunAt = this.#deps.clock.monotonic();
    this.#entries.plan(SETTLE_MS);
    this.#report();
  }

  /** Call this if the router starts to forward a port to the server socket, so that strangers may reach it. */
  onMapped(): void {
    if (this.#deps.engine.ownAddress !== null || !this.#searched) return;
    this.#failedProbes = 0;
    this.#probes.soon();
  }

  /** Call this with our address as a peer reports it. */
  onObserved(reporter: Address, { host, port }: Address): void {
    if (nodeScope(host) === IP_SCOPE.none) return;
    if (this.#deps.observed.add(reporter, { host, port })) this.#report();
    if (this.#deps.engine.ownAddress !== null) this.onUnasked({ host, port });
  }

  /**
   * Call this with the destination address of a request at the server socket. While we are in no table, that socket
   * sends nothing, so the sender reached us unsolicited at this address. It is adopted if its scope is wider
   * than that of the current one.
   */
  onUnasked({ host, port }: Address): void {
    const { engine, isOwnHost } = this.#deps;
    const own = engine.ownAddress;
    const scope = nodeScope(host);
    if (port !== engine.address.port || scope <= (own === null ? IP_SCOPE.none : nodeScope(own.host))) return;
    // Behind a provider that translates addresses, there may be no other node yet that could report the address.
    const isOurs = isOwnHost(host) || host === this.#options.statedHost;
    if (!this.#counts(host) || !isOurs) return;
    this.#join({ host, port }).catch(this.#onError);
  }

  /**
   * True if the scope of a host is narrower than that of our current address. Nodes that see us there may know the
   * wider address as well.
   */
  #narrows(host: string): boolean {
    const { engine, isOwnHost } = this.#deps;
    const own = engine.ownAddress;
    return own !== null && isOwnHost(own.host) && nodeScope(host) < nodeScope(own.host);
  }

  /** In a network on the Internet, a LAN address makes no node reachable. */
  #counts(host: string): boolean {
    const { engine, bootstrapNodes } = this.#deps;
    if (nodeScope(host) === IP_SCOPE.public) return true;
    const isPublic = (address: Address): boolean => nodeScope(address.host) === IP_SCOPE.public;
    return !bootstrapNodes.addresses().some(isPublic) && !engine.nodes().some(({ node }) => isPublic(node));
  }

  /** Call this for each answer that arrives at the server socket. */
  onServerAnswer(from: Address): void {
    if (this.#probing) this.#reachedBy.add(formatAddress(from));
  }

  async #join(address: Address): Promise<void> {
    // protocol-dht.md, step 1
    const { engine, log } = this.#deps;
    const own = engine.ownAddress;
    if (own !== null && formatAddress(own) === formatAddress(address)) return;
    await engine.join(address);
    this.#natType = 1;
    this.#failedProbes = 0;
    log.info({ address: formatAddress(address) }, 'reachable: this node joins the routing tables');
    this.#report();
    this.#pauses = [...ANNOUNCEMENTS_MS];
    this.#announcements.plan(await this.#announce());
    await this.#deps.searches.forWrite(oppositeOf(nodeId(address))).finished;
  }

  /** Announces this node to its neighbors, repeatedly for neighbors that join at the same time. */
  async #announce(): Promise<number> {
    const own = this.#deps.engine.ownAddress;
    if (own === null) return UNTIL_REQUESTED;
    await this.#deps.searches.forWrite(nodeId(own)).finished;
    return this.#pauses.shift() ?? UNTIL_REQUESTED;
  }

  /** Lets peers answer to our server socket, as strangers would. */
  async #probe(): Promise<number> {
    // protocol-dht.md, steps 2 to 4
    const { engine, bootstrapNodes } = this.#deps;
    if (this.#probing || this.#stopped) return UNTIL_REQUESTED;
    const peers = engine.nodes().map(({ node }): Address => node);
    const others = apartFirst(peers, this.#deps.isOwnHost);
    // A contact that is out of date is not asked, or it would count as a peer that does not reach this node.
    const contacts = bootstrapNodes.likely();
    // Other peers each time, because earlier ones may collude.
    const turn = (this.#failedProbes * PROBE_PEERS) % Math.max(1, others.length);
    const order = [...contacts.slice(0, PROBE_PEERS / 2), ...others.slice(turn), ...others.slice(0, turn)];
    const known = new Map(order.map((peer) => [formatAddress(peer), peer]));
    const asked = [...known.values()].slice(0, PROBE_PEERS);
    if (asked.length === 0) {
      this.#failedProbes = 0;
      return UNTIL_REQUESTED;
    }
    this.#probing = true;
    const host = await this.#askToReachUs(asked);
    this.#probing = false;
    this.#reachedBy.clear();
    if (this.#stopped) return UNTIL_REQUESTED;
    if (host !== null) {
      if (!this.#narrows(host)) await this.#join({ host, port: engine.address.port });
      return UNTIL_REQUESTED;
    }
    if (engine.ownAddress !== null) engine.leave();
    await this.#classifyNat(asked);
    this.#report();
    return backoff({ firstMs: MIN_PROBE_PAUSE_MS, maxMs: MAX_PROBE_PAUSE_MS }, ++this.#failedProbes);
  }

  /** The host at which enough peers reached our server socket; null without enough. */
  #askToReachUs(asked: readonly Address[]): Promise<string | null> {
    const { engine } = this.#deps;
    const message = probeOf({ port: engine.address.port, otherSocket: false });
    const votes = new Map<string, Set<string>>();
    const distinct = new Set(asked.map(voterOf)).size;
    const best = (): string | null => {
      const [first = null] = [...votes].sort(([, a], [, b]) => b.size - a.size);
      return first !== null && first[1].size >= this.#needed(first[0], distinct) ? first[0] : null;
    };
    return new Promise((resolve) => {
      let pending = asked.length;
      const count = (peer: Address, reply: RpcAnswer | null): void => {
        const host = reply?.to.host;
        if (host !== undefined && this.#counts(host) && this.#reachedBy.has(formatAddress(peer))) {
          const voters = votes.get(host) ?? new Set();
          votes.set(host, voters.add(voterOf(peer)));
          // A few fast peers that agree on another address must not be believed.
          const sure = voters.size > distinct / 2 || nodeScope(host) !== IP_SCOPE.public ? best() : null;
          if (sure !== null) resolve(sure);
        }
        if (--pending === 0) resolve(best());
      };
      for (const peer of asked)
        detach(engine.request(peer, message, { probing: true }).then((reply) => count(peer, reply)));
    });
  }

  /** Number of peers that must agree on an address. In a LAN, or on one machine, it is 1. */
  #needed(host: string, peers: number): number {
    if (nodeScope(host) !== IP_SCOPE.public) return 1;
    return Math.max(1, Math.min(this.#options.minObservedPeers, peers));
  }

  /** The kind of NAT: whether peers see the same port, and whether another port reaches it. */
  async #classifyNat(asked: readonly Address[]): Promise<void> {
    // protocol-dht.md, step 5
    const { engine, observed } = this.#deps;
    this.#natType = 0;
    if (observed.reporters < 2) return;
    const same = observed.address(observed.reporters);
    if (same === null) {
      this.#natType = observed.host(observed.reporters) === null ? 0 : 4;
      return;
    }
    const message = probeOf({ port: same.port, otherSocket: true });
    const replies = await Promise.all(asked.map((peer) => engine.request(peer, message, { probing: true })));
    this.#natType = replies.some((reply) => reply !== null) ? 2 : 3;
  }

  reachability(): Reachability {
    const { engine, observed } = this.#deps;
    const own = engine.ownAddress;
    const { peerCount: peers, clientCount: clients } = engine;
    const needed = Math.max(1, Math.min(this.#options.minObservedPeers, observed.reporters));
    const seen = own ?? observed.address(needed);
    return {
      ready: (peers > 0 && this.#searched) || clients > 0,
      peers,
      clients,
      natType: own === null ? this.#natType : 1,
      observed: seen === null ? [] : [seen],
      inRoutingTables: own !== null,
    };
  }

  /** Our host as other nodes see it, whatever the port; null if unknown. */
  get seenHost(): string | null {
    const { engine, observed } = this.#deps;
    const needed = Math.max(1, Math.min(this.#options.minObservedPeers, observed.reporters));
    return engine.ownAddress?.host ?? observed.host(needed);
  }

  onReachability(handler: (r: Reachability) => void): () => void {
    return this.#changes.add(handler);
  }

  #report(): void {
    if (this.#stopped) return;
    const r = this.reachability();
    const now = JSON.stringify([r.ready, r.natType, r.observed, r.inRoutingTables, r.peers > 0, r.clients > 0]);
    if (now === this.#last) return;
    this.#last = now;
    this.#changes.notify(r);
  }
}

function probeOf(probe: ProbeRequest): RpcMessage {
  return { command: COMMAND.probe, value: encodeProbeRequest(probe) };
}

/** An id in the opposite half of the network, which a search for our own id does not reach. */
function oppositeOf(id: Uint8Array): Uint8Array {
  return Uint8Array.from(id, (byte, i) => (i === 0 ? byte ^ 0x80 : byte));
}

/** True as soon as one answer is true, false if all are false. */
function anyOf(answers: readonly Promise<boolean>[]): Promise<boolean> {
  return new Promise((resolve) => {
    for (const answer of answers) detach(answer.then((yes) => (yes ? resolve(true) : undefined)));
    detach(Promise.all(answers).then(() => resolve(false)));
  });
}

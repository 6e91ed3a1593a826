/**
 * How this node comes into the network and stands in it. It asks its contacts, then peers to reach
 * it at its server socket, from which it has sent nothing: who can be reached by strangers joins the
 * routing tables at once, who cannot stays out and tries again.
 */
import { type Address, formatAddress, type NodeContact } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import type { MeetingState } from '../../foundation/domain/joining.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { BootstrapNodes, Meeting } from './bootstrap-nodes.ts';
import type { DhtEngine } from './engine.ts';
import { COMMAND, encodeProbeRequest, type ProbeRequest } from './messages.ts';
import { apartFirst, nodeId, nodeScope, voterOf } from './node-address.ts';
import type { ObservedAddresses } from './own-hosts.ts';
import type { RpcAnswer, RpcMessage } from './rpc/rpc.ts';
import type { Reachability } from './types.ts';

/** Peers that are asked to reach us. */
const PROBE_PEERS = 8;
/**
 * From the first to the longest pause between attempts to reach any contact, ms. In the first minutes after a start or a
 * change of the network somebody may be logging in to a portal, or lifting a block.
 */
const MIN_RETRY_MS = 500;
const MAX_EARLY_RETRY_MS = 5_000;
const MAX_RETRY_MS = 30_000;
/** How long those first minutes are, ms. */
const EARLY_MS = 600_000;
/** From the first to the longest pause between probes while strangers cannot reach us, ms. */
const MIN_PROBE_PAUSE_MS = 15_000;
const MAX_PROBE_PAUSE_MS = 600_000;
/** After which pauses a node that has joined looks for its neighbours again, ms. */
const ANNOUNCEMENTS_MS = [50, 500, 5000];
/** How often contacts that are not in the table are asked again: one side of a partition looks for the other. Milliseconds. */
const REUNION_MS = 60_000;
/** How long to wait after a new peer before probing, so that several come together, ms. */
const SETTLE_MS = 20;

interface MembershipOptions {
  /** Distinct peers that must report the same address, where there are so many. */
  readonly minObservedPeers: number;
  /** The address that the owner says leads here, though no interface has it; empty for none. */
  readonly statedHost?: string;
}

export interface MembershipDependencies {
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly log: Log;
  readonly engine: Pick<
    DhtEngine,
    'address' | 'ownAddress' | 'id' | 'peerCount' | 'clientCount' | 'nodes' | 'join' | 'leave' | 'request' | 'isOwn'
  >;
  readonly bootstrapNodes: BootstrapNodes;
  readonly observed: ObservedAddresses;
  /** True for the IPv4 addresses of this machine. */
  readonly isOwnHost: (host: string) => boolean;
  readonly searches: Meeting & {
    /** Searches for the nodes closest to an id, and so makes itself known to them. */
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
  /** Peers whose answer to the probe under way has come in at the server socket. */
  readonly #reachedBy = new Set<string>();
  /** Attempts in a row to reach any contact that failed, and probes. */
  #failedEntries = 0;
  #failedProbes = 0;
  /** Pauses before the announcements that are left. */
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
    if (!this.#stopped) this.#deps.log.warn({ error }, 'entering the network failed');
  };

  /** Begins in the background: a network that is not there now may be there in a minute. */
  start(): void {
    this.#begunAt = this.#deps.clock.now();
    this.#entries.soon();
  }

  stop(): void {
    this.#stopped = true;
    for (const repeating of [this.#entries, this.#looks, this.#probes, this.#announcements, this.#reunions])
      repeating.stop();
  }

  /** Asks every contact, joins the tables where it can, and comes back later where nobody answered. */
  async #enter(): Promise<number> {
    const { bootstrapNodes, engine, searches } = this.#deps;
    const greeted = await anyOf(bootstrapNodes.meet(searches));
    if (this.#stopped) return UNTIL_REQUESTED;
    if (greeted || engine.peerCount > 0) {
      await searches.forWrite(engine.id).finished;
      this.#searched = true;
      this.#probes.soon(await this.#probe());
    } else if (engine.ownAddress === null && nodeScope(engine.address.host) !== IP_SCOPE.none) {
      // The first node of a network takes the address that it listens on, if it listens on just one.
      await engine.join(engine.address);
    }
    this.#report();
    this.#failedEntries = engine.peerCount === 0 ? this.#failedEntries + 1 : 0;
    const isEarly = this.#deps.clock.now() - this.#begunAt < EARLY_MS;
    const maxMs = isEarly ? MAX_EARLY_RETRY_MS : MAX_RETRY_MS;
    return backoff({ firstMs: MIN_RETRY_MS, maxMs }, this.#failedEntries) || UNTIL_REQUESTED;
  }

  /**
   * Asks the contacts and the nodes that left the table, and enters by them again if one answers. The table may hold
   * only the nodes of one side of a partition: those of the other side left it, and nothing else leads to them.
   */
  async #reunite(): Promise<void> {
    const { bootstrapNodes, engine, searches } = this.#deps;
    if (!this.#searched || engine.peerCount === 0) return;
    const known = new Set(engine.nodes().map(({ node }) => formatAddress(node)));
    const isInTable = (address: Address): boolean => known.has(formatAddress(address)) || engine.isOwn(address);
    const met = await anyOf(bootstrapNodes.meetAgain(searches, isInTable));
    if (!met || this.#stopped) return;
    await searches.forWrite(engine.id).finished;
    const own = engine.ownAddress;
    if (own !== null) await searches.forWrite(oppositeOf(nodeId(own))).finished;
  }

  /** Makes a node known, found on the LAN for example. */
  addContact(address: Address): void {
    if (!this.#deps.bootstrapNodes.add(address) || this.#stopped) return;
    this.#failedEntries = 0;
    this.#entries.soon();
  }

  /** Turns to a contact, and comes in by it where it is met: then it stays one. */
  async join(contact: NodeContact): Promise<MeetingState> {
    const { bootstrapNodes, searches } = this.#deps;
    const state = await bootstrapNodes.join(contact, searches);
    if (state !== 'met' || this.#stopped) return state;
    this.#failedEntries = 0;
    this.#entries.soon();
    return state;
  }

  /** To be called when the routing table gains or loses a node. */
  onTableChange(): void {
    this.#looks.soon(SETTLE_MS);
  }

  #lookAtTable(): number {
    const { engine } = this.#deps;
    this.#report();
    if (engine.peerCount > 0 && this.#searched) {
      if (engine.ownAddress === null && this.#failedProbes === 0 && !this.#probing) this.#probes.soon();
      // After an attempt that failed, the pause before the next one holds while the table is empty.
    } else if (!this.#entries.isRunning && (engine.peerCount > 0 || this.#failedEntries === 0)) this.#entries.soon();
    return UNTIL_REQUESTED;
  }

  /**
   * To be called when this machine's addresses change, or it wakes from sleep. It leaves the tables
   * first: the probe proves something only while the server socket has not spoken on the new network.
   */
  onNetworkChange(): void {
    const { engine, observed } = this.#deps;
    observed.clear();
    if (nodeScope(engine.address.host) === IP_SCOPE.none) engine.leave();
    this.#failedProbes = 0;
    this.#begunAt = this.#deps.clock.now();
    this.#entries.plan(SETTLE_MS);
    this.#report();
  }

  /** To be called when the router begins to lead a port to the server socket: strangers may reach it from now on. */
  onMapped(): void {
    if (this.#deps.engine.ownAddress !== null || !this.#searched) return;
    this.#failedProbes = 0;
    this.#probes.soon();
  }

  /** To be called with what a peer says our address is. */
  onObserved(reporter: Address, { host, port }: Address): void {
    if (nodeScope(host) === IP_SCOPE.none) return;
    if (this.#deps.observed.add(reporter, { host, port })) this.#report();
    if (this.#deps.engine.ownAddress !== null) this.onUnasked({ host, port });
  }

  /**
   * To be called with the address that a request at the server socket was sent to. While we stand in no table we send
   * nothing from there, so whoever wrote to it reached us unasked, under an address of this machine: that one is
   * taken if it reaches further than the one we have.
   */
  onUnasked({ host, port }: Address): void {
    const { engine, isOwnHost } = this.#deps;
    const own = engine.ownAddress;
    const scope = nodeScope(host);
    if (port !== engine.address.port || scope <= (own === null ? IP_SCOPE.none : nodeScope(own.host))) return;
    // Before a machine whose provider translates addresses nobody else may be there yet who could tell.
    const isOurs = isOwnHost(host) || host === this.#options.statedHost;
    if (!this.#counts(host) || !isOurs) return;
    this.#join({ host, port }).catch(this.#onError);
  }

  /** True where a host reaches less far than the address of this machine that we have: who sees us there may, too. */
  #narrows(host: string): boolean {
    const { engine, isOwnHost } = this.#deps;
    const own = engine.ownAddress;
    return own !== null && isOwnHost(own.host) && nodeScope(host) < nodeScope(own.host);
  }

  /** Where the network spans the world, an address that only the LAN knows makes nobody reachable. */
  #counts(host: string): boolean {
    const { engine, bootstrapNodes } = this.#deps;
    if (nodeScope(host) === IP_SCOPE.public) return true;
    const isPublic = (address: Address): boolean => nodeScope(address.host) === IP_SCOPE.public;
    return !bootstrapNodes.addresses().some(isPublic) && !engine.nodes().some(({ node }) => isPublic(node));
  }

  /** To be called for each answer that comes in at the server socket. */
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

  /** Makes itself known to the nodes near it, and again to those that were coming in at the same time. */
  async #announce(): Promise<number> {
    const own = this.#deps.engine.ownAddress;
    if (own === null) return UNTIL_REQUESTED;
    await this.#deps.searches.forWrite(nodeId(own)).finished;
    return this.#pauses.shift() ?? UNTIL_REQUESTED;
  }

  /** Asks peers to answer to our server socket, where strangers would write. */
  async #probe(): Promise<number> {
    // protocol-dht.md, steps 2 to 4
    const { engine, bootstrapNodes } = this.#deps;
    if (this.#probing || this.#stopped) return UNTIL_REQUESTED;
    const peers = engine.nodes().map(({ node }): Address => node);
    const others = apartFirst(peers, this.#deps.isOwnHost);
    // Others each time: those that were asked may be in league.
    const turn = (this.#failedProbes * PROBE_PEERS) % Math.max(1, others.length);
    const order = [
      ...bootstrapNodes.addresses().slice(0, PROBE_PEERS / 2),
      ...others.slice(turn),
      ...others.slice(0, turn),
    ];
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

  /** The host under which enough of the asked peers reached our server socket; null where they did not. */
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
          // A few who agree on another address must not be believed because they were the first.
          const sure = voters.size > distinct / 2 || nodeScope(host) !== IP_SCOPE.public ? best() : null;
          if (sure !== null) resolve(sure);
        }
        if (--pending === 0) resolve(best());
      };
      for (const peer of asked)
        detach(engine.request(peer, message, { probing: true }).then((reply) => count(peer, reply)));
    });
  }

  /** How many peers must agree on an address. In one's own LAN, or on one machine, one is enough. */
  #needed(host: string, peers: number): number {
    if (nodeScope(host) !== IP_SCOPE.public) return 1;
    return Math.max(1, Math.min(this.#options.minObservedPeers, peers));
  }

  /** What kind of NAT we are behind: whether peers see one port of ours, and whether a strange port reaches it. */
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

  /** Our host as others see it, whatever port each of them sees; null while none has said. */
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

/** An id in the other half of the network, where a search for one's own leads to nobody. */
function oppositeOf(id: Uint8Array): Uint8Array {
  return Uint8Array.from(id, (byte, i) => (i === 0 ? byte ^ 0x80 : byte));
}

/** True as soon as one of them is, false when none was. */
function anyOf(answers: readonly Promise<boolean>[]): Promise<boolean> {
  return new Promise((resolve) => {
    for (const answer of answers) detach(answer.then((yes) => (yes ? resolve(true) : undefined)));
    detach(Promise.all(answers).then(() => resolve(false)));
  });
}

/**
 * Requests, the routing table and its admission rules, for the rest of this folder. Requests resolve to an answer or
 * null. When this node adopts an address, it enters the tables of other nodes.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SECOND_DAEMON_HINT, SvcError } from '../../foundation/errors.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { lentSource } from '../../foundation/quota.ts';
import type { UdpSocket } from '../transport/udp-socket.ts';
import { COMMAND } from './messages.ts';
import {
  blockOf,
  closestApart,
  closestTo,
  compareDistance,
  headOf,
  hostKeyOf,
  leavingFor,
  nodeId,
  nodeScope,
  ROUTING_ID_BYTES,
} from './node-address.ts';
import { OpenPort } from './open-port.ts';
import type { HostCheck } from './own-hosts.ts';
import { FAILURES_TO_DROP, type PeerHealth } from './peer-health.ts';
import { DhtClients, mayHoldMany, RequestBacklog, RoutingAdmission, requestLimit } from './routing-admission.ts';
import { ERROR, Rpc, type RpcAnswer, type RpcMessage, type RpcRequest } from './rpc/rpc.ts';
import { TableKeeper } from './rpc/table-keeper.ts';
import { machine, type RpcWorld } from './rpc/world.ts';

/** Cached routing ids of this machine's addresses. */
const MAX_OTHER_IDS = 64;
/** Nodes in an answer to FIND_NODE. With more, the answer would be over three times as long as the question. */
const MAX_NEAR_NODES = 17;

interface DhtEngineOptions {
  /** An IPv4 address to bind; `0.0.0.0` for every interface. */
  readonly host: string;
  readonly port: number;
  readonly tag: Uint8Array;
}

interface DhtEngineDependencies extends HostCheck {
  readonly clock: Clock;
  readonly health: PeerHealth;
  /** As `OwnHosts.sourceTo`. */
  readonly sourceTo: (host: string) => string | null;
  /** Default: this machine. */
  readonly world?: RpcWorld;
}

/** Events of the engine. */
class EngineEvents {
  readonly request = new Listeners<[RpcRequest]>();
  /** A request arrived at the server socket, at this address of this node. */
  readonly unasked = new Listeners<[to: Address]>();
  /** An answer arrived at the server socket. */
  readonly serverAnswer = new Listeners<[from: Address]>();
  /** A node has entered the table. */
  readonly node = new Listeners<[Address]>();
  /** A node has left the table. */
  readonly left = new Listeners<[Address]>();
  /** The table has changed, or a client has appeared. */
  readonly tableChange = new Listeners<[]>();
  /** It is time to search for nodes near an id. */
  readonly refresh = new Listeners<[id: Uint8Array]>();
  /** All nodes fell silent, and requests leave from a new local port. */
  readonly portChange = new Listeners<[]>();
}

/** A node with its routing id. */
interface Located extends Address {
  readonly id: Uint8Array;
}

interface SendOptions {
  /** Send again without an answer, up to three times. */
  readonly retry?: boolean;
  /**
   * Expect the answer at a port that may be closed. Sent from the other socket, and silence does not count against the
   * node.
   */
  readonly probing?: boolean;
}

/**
 * On this machine and in local networks, an answer may arrive from another address of the machine, because a machine in
 * several networks answers from the nearest address. On the Internet it may not: an attacker who guesses is more likely
 * there than such a machine.
 */
function mayBeOneMachine(asked: Address, from: Address, isOwnHost: (host: string) => boolean): boolean {
  const isNear = ({ host }: Address): boolean => nodeScope(host) !== IP_SCOPE.public || isOwnHost(host);
  return asked.port === from.port && isNear(asked) && isNear(from);
}

/** Whether a request changes what this node stores. */
function isChange({ command }: RpcRequest): boolean {
  return command === COMMAND.store || command === COMMAND.remove;
}

/** The local port changes after this number of consecutive unanswered requests to any node … */
export const SILENT_REQUESTS = 4;
/** … if nothing was answered for this time, in ms. */
export const SILENT_MS = 10_000;

export class DhtEngine {
  readonly events: EngineEvents = new EngineEvents();
  readonly #options: DhtEngineOptions;
  readonly #deps: DhtEngineDependencies;
  readonly #admission: RoutingAdmission;
  readonly #clients: DhtClients;
  readonly #keeper: TableKeeper;
  readonly #rpc: Rpc;
  readonly #world: RpcWorld;
  #isStarted = false;
  #own: Address | null = null;
  #lastAnswerAt = Number.NEGATIVE_INFINITY;
  #lastPublicAnswerAt = Number.NEGATIVE_INFINITY;
  /** Unanswered requests since the last answer, and the time of that answer; 0 without one. */
  #silentRequests = 0;
  #answeredAt = 0;
  /** Routing ids of this machine's addresses, at our port. */
  readonly #otherIds = new LruCache<string, Uint8Array>({ maxEntries: MAX_OTHER_IDS });

  constructor(options: DhtEngineOptions, dependencies: DhtEngineDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    const world = dependencies.world ?? machine();
    this.#world = world;
    // Without a place for it, each of these pings would make the other node ping this one.
    const greet = async (stranger: Address): Promise<void> => {
      if (this.#keeper.mayGetPlace(stranger, nodeId(stranger))) await this.#rpc.ping(stranger, { retry: false });
    };
    this.#clients = new DhtClients(dependencies);
    this.#admission = new RoutingAdmission(dependencies.clock, dependencies.isOwnHost, greet);
    this.#rpc = this.#makeRpc(world);
    this.#keeper = this.#makeKeeper(world);
  }

  #makeRpc(world: RpcWorld): Rpc {
    const { events } = this;
    const { clock, health, isOwnHost } = this.#deps;
    const backlog = new RequestBacklog(this.#deps);
    const admits = requestLimit(this.#deps);
    return new Rpc(this.#options, {
      world,
      admits: (from, isProven) => admits(this.sourceOf(from), isProven),
      queue: (from, work, isProven) => backlog.add(this.sourceOf(from), work, isProven),
      onDatagram: (from, kind, socket) => {
        health.heard(from);
        this.#clients.heard(from);
        if (kind === 'request') return;
        // Unsolicited datagrams arrive even if nothing that this node sends gets out.
        this.#lastAnswerAt = clock.now();
        if (nodeScope(from.host) === IP_SCOPE.public) this.#lastPublicAnswerAt = this.#lastAnswerAt;
        if (this.#isServerSocket(socket)) events.serverAnswer.notify(from);
      },
      knows: (from) => this.#admission.has(from),
      onStranger: (from, isProven) => this.#admission.onStranger(from, isProven),
      onNode: (address, id) => {
        if (this.#mayEnter(address)) this.#keeper.heard(address, id);
      },
      mayBeOneMachine: (asked, from) => mayBeOneMachine(asked, from, isOwnHost),
      ownIdFor: (host) => this.#ownIdFor(host),
      near: (target) => closestTo(target, this.#keeper.table.nodes(), MAX_NEAR_NODES),
      onRequest: (request) => this.#onRequest(request),
    });
  }

  #makeKeeper(world: RpcWorld): TableKeeper {
    const { events } = this;
    return new TableKeeper(world.randomBytes(ROUTING_ID_BYTES), {
      ...world,
      ping: async (node) => {
        const answer = await this.#rpc.ping(node, { retry: true });
        return this.#rpc.isStopped ? null : answer !== null;
      },
      isBusy: () => this.#rpc.requestsInFlight > 2,
      leavingFor: (newcomer, row) => leavingFor(newcomer, row, this.#deps.isOwnHost),
      onAdd: (node) => {
        this.#admission.add(node);
        events.node.notify(node);
        events.tableChange.notify();
      },
      onRemove: (node) => {
        this.#admission.remove(node);
        events.left.notify({ host: node.host, port: node.port });
        events.tableChange.notify();
      },
      onRefresh: (id) => events.refresh.notify(id),
    });
  }

  #mayEnter(node: Address): boolean {
    return this.canReach(node) && this.#admission.admits(node) && this.#deps.health.failures(node) < FAILURES_TO_DROP;
  }

  #onRequest(request: RpcRequest): void {
    const { events } = this;
    if (this.#isServerSocket(request.socket)) events.unasked.notify(request.to);
    const isClient = isChange(request) && request.token !== null && !this.#admission.has(request.from);
    if (isClient && this.#clients.proven(request.from)) events.tableChange.notify();
    events.request.notify(request);
  }

  /** @throws SvcError `address_in_use` */
  async start(): Promise<void> {
    const { host, port } = this.#options;
    try {
      this.#rpc.start();
      this.#keeper.start();
      this.#isStarted = true;
    } catch (error) {
      await this.stop();
      const where = formatAddress({ host, port });
      throw new SvcError('address_in_use', {
        message: `The UDP address ${where} of the DHT (listen_addr) cannot be used: another program has it, or this machine lacks it. To run a second svcd: ${SECOND_DAEMON_HINT}`,
        details: { address: where },
        cause: error,
      });
    }
  }

  async stop(): Promise<void> {
    this.#keeper.stop();
    await this.#rpc.stop();
  }

  /** The address of the server socket. */
  get address(): Address {
    const address = this.#rpc.serverSocket.address();
    if (address === null) throw new SvcError('internal', { message: 'The DHT is not bound.' });
    return { host: address.host, port: address.port };
  }

  /** Our address in the tables of other nodes; null if we are in none. */
  get ownAddress(): Address | null {
    return this.#own;
  }

  /** Our routing id; random while we are in no table. */
  get id(): Uint8Array {
    return this.#keeper.table.id;
  }

  get peerCount(): number {
    return this.#keeper.table.size;
  }

  /** When another node last answered, Unix milliseconds. */
  get lastAnswerAt(): number {
    return this.#lastAnswerAt;
  }

  /** The same for nodes with a public address. */
  get lastPublicAnswerAt(): number {
    return this.#lastPublicAnswerAt;
  }

  /** Nodes that use this node and are in no routing table. */
  get clientCount(): number {
    return this.#clients.count((host) => this.#admission.hasHost(host));
  }

  /** True for an address of this node. */
  isOwn(address: Address): boolean {
    const { ownAddress, address: bound } = this;
    if (address.port !== bound.port) return false;
    if (address.host === ownAddress?.host || address.host === bound.host) return true;
    return nodeScope(bound.host) === IP_SCOPE.none && this.#deps.isOwnHost(address.host);
  }

  /** Whether a public host is that of a storage node, which may lend its ports to others (UDP over TLS). */
  mayLend(host: string): boolean {
    return this.#admission.hasHost(host) && !mayHoldMany(host, this.#deps.isOwnHost);
  }

  /** The source that limits count for the sender of a datagram: as `hostKeyOf` or `lentSource`. */
  sourceOf(from: Address): string {
    const borrower = this.#world.lentPorts?.borrowerAt(from) ?? null;
    if (borrower !== null) return hostKeyOf({ host: borrower, port: from.port });
    return this.mayLend(from.host) && !this.#admission.has(from) ? lentSource(from.host) : hostKeyOf(from);
  }

  /** False for other machines if we listen only on loopback. */
  canReach({ host }: Address): boolean {
    if (nodeScope(this.#options.host) !== IP_SCOPE.loopback) return true;
    return nodeScope(host) === IP_SCOPE.loopback || this.#deps.isOwnHost(host);
  }

  /** Our routing id as a host verifies it. A host that sees us at another address expects the id of that address. */
  #ownIdFor(host: string): Uint8Array | null {
    const { ownAddress, address: bound, id } = this;
    if (ownAddress === null || nodeScope(bound.host) !== IP_SCOPE.none) return ownAddress === null ? null : id;
    const source = this.#deps.sourceTo(host);
    if (source === null || source === ownAddress.host) return id;
    const other = this.#otherIds.get(source) ?? nodeId({ host: source, port: bound.port });
    this.#otherIds.set(source, other);
    return other;
  }

  #isServerSocket(socket: UdpSocket): boolean {
    return socket === this.#rpc.serverSocket;
  }

  /** Answers a probe, from the socket that received it or from the other one. */
  answerProbe(request: RpcRequest, port: number, fromOtherSocket: boolean): void {
    const { serverSocket, clientSocket } = this.#rpc;
    const other = request.socket === serverSocket ? clientSocket : serverSocket;
    const to = { host: request.from.host, port };
    request.reply(null, { to, token: false, socket: fromOtherSocket ? other : request.socket });
  }

  /** The nodes of the routing table, and when each was last heard (Unix milliseconds). */
  nodes(): { readonly node: Located; readonly firstSeen: number; readonly lastSeen: number }[] {
    // The two clocks may show different times.
    const shift = this.#deps.clock.now() - this.#world.clock.monotonic();
    return this.#keeper.table.nodes().map((node) => {
      return { node, firstSeen: shift + node.addedAt, lastSeen: shift + node.heardAt };
    });
  }

  /** Whether the routing table has a node. */
  hasNode(address: Address): boolean {
    return this.#keeper.table.get(address) !== null;
  }

  /** The nodes of the routing table closest to a target, one of each block, closest first; then other nodes. */
  closest(target: Uint8Array, max: number): Located[] {
    return closestApart(target, this.#keeper.table.nodes(), this.#deps.isOwnHost, max);
  }

  /** Whether one of these nodes is closer to us than the `max` closest of the table, and may enter it. */
  lacksNeighbor(nodes: readonly Address[], max: number): boolean {
    const { table } = this.#keeper;
    const near = closestTo(this.id, table.nodes(), max);
    const last = near.at(-1);
    const isNear = (node: Address): boolean =>
      near.length < max || last === undefined || compareDistance(this.id, nodeId(node), last.id) < 0;
    return nodes.some((node) => table.get(node) === null && !this.isOwn(node) && this.#mayEnter(node) && isNear(node));
  }

  /** Number of blocks in the table with a node closer to a target than this node. */
  closerThanSelf(target: Uint8Array): number {
    return this.#closerBlocks(target, this.id, Number.POSITIVE_INFINITY);
  }

  /** Whether more than `max` blocks in the table have a node closer to a target than a node with this id. */
  isBehind(target: Uint8Array, id: Uint8Array, max: number): boolean {
    return this.#closerBlocks(target, id, max + 1) > max;
  }

  /** Number of blocks with a node closer to a target than an id. Stops counting at `enough`. */
  #closerBlocks(target: Uint8Array, id: Uint8Array, enough: number): number {
    const closer = new Set<string>();
    const head = headOf(target);
    const limit = (head ^ headOf(id)) >>> 0;
    for (const node of this.#keeper.table.nodes()) {
      if (closer.size >= enough) break;
      const distance = (head ^ node.head) >>> 0;
      if (distance > limit || (distance === limit && compareDistance(target, node.id, id) >= 0)) continue;
      closer.add(blockOf(node, this.#deps.isOwnHost) ?? formatAddress(node));
    }
    return closer.size;
  }

  /**
   * Sends a request, and repeats it once if the node wants a newer token. Null without an answer, or if the answer is
   * an error. A node that fails twice leaves the table.
   */
  async request(to: Address, message: RpcMessage, options: SendOptions = {}): Promise<RpcAnswer | null> {
    if (!this.#isStarted || this.#rpc.isStopped) return null;
    const { clock, health } = this.#deps;
    const { retry = false, probing = false } = options;
    const onSilence = (): void => {
      this.#noteSilence();
      if (health.failed(to) >= FAILURES_TO_DROP) this.drop(to);
    };
    const ask = async (token: Uint8Array | null): Promise<RpcAnswer | null> => {
      const started = clock.monotonic();
      const how = probing ? { retry, socket: this.#rpc.clientSocket } : { retry, onSilence };
      const answer = await this.#rpc.request(to, { ...message, token }, how);
      if (answer === null) return null;
      health.answered(to, clock.monotonic() - started);
      this.#silentRequests = 0;
      this.#answeredAt = clock.monotonic();
      return answer;
    };
    const first = await ask(message.token ?? null);
    const answer = first?.error === ERROR.badToken && first.token !== null ? await ask(first.token) : first;
    return answer?.error === 0 ? answer : null;
  }

  /**
   * Some middleboxes start to drop all packets of an address pair. If all nodes fall silent, requests leave from a new
   * local port.
   */
  #noteSilence(): void {
    const now = this.#deps.clock.monotonic();
    this.#silentRequests++;
    const isSilent = this.#silentRequests >= SILENT_REQUESTS && now - this.#answeredAt >= SILENT_MS;
    if (!isSilent || this.#answeredAt === 0) return;
    // The next change waits for the same number of failures and the same time.
    this.#silentRequests = 0;
    this.#answeredAt = now;
    if (this.#rpc.changeClientPort()) this.events.portChange.notify();
  }

  /** Removes a node from the table. */
  drop(address: Address): void {
    this.#keeper.remove(address);
  }

  /** Call this if this machine may be on another network: requests in flight may be lost. */
  onNetwork(): void {
    this.#rpc.resend();
  }

  /** Opens another UDP port on every interface. Requests to it get no answer. */
  openPort(family: 4 | 6): OpenPort {
    return new OpenPort(this.#rpc, this.plainSocket(), family);
  }

  /** As `openPort` over IPv4, but never over TLS. */
  openSystemPort(): OpenPort {
    const socket = this.plainSocket();
    return new OpenPort(this.#rpc, socket.system ?? socket, 4);
  }

  /** As `openPort` over IPv4, with another socket. */
  openPortAt(socket: UdpSocket): OpenPort {
    return new OpenPort(this.#rpc, socket, 4);
  }

  /** An unbound UDP socket that is independent of the record network. */
  plainSocket(): UdpSocket {
    return this.#world.createSocket();
  }

  /** The socket at which strangers reach this node. */
  get openSocket(): UdpSocket {
    return this.#rpc.serverSocket;
  }

  /** Adopts `address`: all later answers contain our routing id, so other nodes add us to their tables. */
  async join(address: Address): Promise<void> {
    if (this.#own !== null && formatAddress(this.#own) === formatAddress(address)) return;
    this.#own = address;
    const { table } = this.#keeper;
    table.moveTo(nodeId(address));
    this.#admission.reset(table.nodes());
  }

  /** Stops stating our routing id. We only send requests then. */
  leave(): void {
    this.#own = null;
  }
}

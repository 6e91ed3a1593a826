/**
 * dht-rpc as the rest of this folder sees it: requests that resolve to an answer or to nothing,
 * the routing table in true order of distance, and the one moment at which this node takes an
 * address for its own and enters the tables of others.
 */
import DHT from 'dht-rpc';
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { SECOND_DAEMON_COMMAND, SvcError } from '../../foundation/errors.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { SilenceWatch } from '../../foundation/stall.ts';
import { DhtClients } from './dht-clients.ts';
import { ageMs, joinTables, leaveTables, removeNode, silenceMs, tendTable } from './internals.ts';
import { apartFirst, blockOf, leavingFor } from './network-blocks.ts';
import { closestTo, compareDistance, hostKeyOf, nodeScope } from './node-address.ts';
import { OpenPort } from './open-port.ts';
import { FAILURES_TO_DROP, type PeerHealth } from './peer-health.ts';
import { RequestBacklog } from './request-backlog.ts';
import { requestLimit } from './request-limit.ts';
import { RoutingAdmission } from './routing-admission.ts';
import { nodeId } from './routing-id.ts';
import { type SocketPair, TaggedSocket, tagSockets } from './wire.ts';

/** How late a stranger may ask to be answered, which we have no use for: milliseconds. */
const MAX_PING_DELAY_MS = 1;
/**
 * dht-rpc takes a request for unanswered, or sends it again, after a second. A peer is to blame for that
 * which was silent for so much of it while we could hear it: milliseconds.
 */
const SILENCE_MS = 750;
/** How often dht-rpc sends a request at most that may be repeated. */
const MAX_ATTEMPTS = 4;
/** Addresses of this machine whose routing ids are at hand. */
const MAX_OTHER_IDS = 64;
/** Requests in flight at once, so that one busy publisher never waits for its own window. */
const MAX_WINDOW = 400;

interface DhtEngineOptions {
  /** An IPv4 address to bind; `0.0.0.0` for every interface. */
  readonly host: string;
  readonly port: number;
  readonly tag: Uint8Array;
}

interface DhtEngineDependencies {
  readonly clock: Clock;
  readonly health: PeerHealth;
  readonly isOwnHost: (host: string) => boolean;
  /** As `OwnHosts.sourceTo`. */
  readonly sourceTo: (host: string) => string | null;
}

/** What the engine tells those who are made after it. */
class EngineEvents {
  readonly request = new Listeners<[DHT.Request]>();
  /** A request came in at the server socket: which address of ours it was sent to. */
  readonly unasked = new Listeners<[to: Address]>();
  /** An answer came in at the server socket. */
  readonly serverAnswer = new Listeners<[from: Address]>();
  /** A node has come into the table. */
  readonly node = new Listeners<[Address]>();
  /** A node has left the table. */
  readonly left = new Listeners<[Address]>();
  /** A node has come into the table or left it, or a client has appeared. */
  readonly tableChange = new Listeners<[]>();
  /** All nodes fell silent, and requests leave from a fresh local port. */
  readonly portChange = new Listeners<[]>();
}

/** A node with its routing id. */
interface Located extends Address {
  readonly id: Uint8Array;
}

interface SendOptions {
  /** Send again where no answer comes, up to three times. */
  readonly retry?: boolean;
  /** Ask for an answer at a port that may be closed: from the other socket, and silence is nobody's fault. */
  readonly probing?: boolean;
}

/**
 * An answer may come from another address of the machine that was asked: surely on this machine, and in one's own
 * networks, where a machine in several of them answers from the nearest. On the Internet it may not: there a guess
 * from afar is cheaper than a machine that answers so is common.
 */
function mayBeOneMachine(asked: Address, from: Address, isOwnHost: (host: string) => boolean): boolean {
  const isNear = ({ host }: Address): boolean => nodeScope(host) !== IP_SCOPE.public || isOwnHost(host);
  return asked.port === from.port && isNear(asked) && isNear(from);
}

/** Requests in a row without an answer, from any node, after which the local port changes … */
export const SILENT_REQUESTS = 4;
/** … if nothing was answered for so long, milliseconds. */
export const SILENT_MS = 10_000;

export class DhtEngine {
  readonly events: EngineEvents = new EngineEvents();
  readonly #options: DhtEngineOptions;
  readonly #deps: DhtEngineDependencies;
  readonly #admission: RoutingAdmission;
  readonly #clients: DhtClients;
  #dht: DHT | null = null;
  #createSockets: (() => SocketPair) | null = null;
  #own: Address | null = null;
  #lastAnswerAt = Number.NEGATIVE_INFINITY;
  /** Requests without an answer since the last one that was answered, and when that was; 0 if none was. */
  #silentRequests = 0;
  #answeredAt = 0;
  /** Routing ids of this machine's addresses, at our port. */
  readonly #otherIds = new LruCache<string, Uint8Array>({ maxEntries: MAX_OTHER_IDS });

  constructor(options: DhtEngineOptions, dependencies: DhtEngineDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    const greet = async (stranger: Address) => await this.#running.ping(stranger, { retry: false });
    this.#clients = new DhtClients(dependencies);
    this.#admission = new RoutingAdmission({ ...dependencies, greet });
  }

  /** @throws SvcError `address_in_use` */
  async start(): Promise<void> {
    const { host, port, tag } = this.#options;
    const { clock, health } = this.#deps;
    const { events } = this;
    const dht = new DHT({
      host,
      port,
      anyPort: false,
      bootstrap: [],
      adaptive: false,
      firewalled: true,
      maxWindow: MAX_WINDOW,
      maxPingDelay: MAX_PING_DELAY_MS,
      filterNode: (node) =>
        this.canReach(node) && this.#admission.admits(node) && health.failures(node) < FAILURES_TO_DROP,
    });
    this.#tendTable(dht);
    const backlog = new RequestBacklog(this.#deps);
    this.#createSockets = tagSockets(dht.udx, tag, {
      admits: requestLimit(this.#deps),
      queue: (from, answer) => backlog.add(hostKeyOf(from), answer),
      onDatagram: (from, isRequest, socket) => {
        health.heard(from);
        // What others send on their own reaches this node even if nothing that it sends gets out.
        if (!isRequest) this.#lastAnswerAt = clock.now();
        this.#clients.heard(from);
        if (!isRequest && this.#isServerSocket(socket)) events.serverAnswer.notify(from);
      },
      knows: (from) => this.#admission.has(from),
      onStranger: (from) => this.#admission.onStranger(from),
      mayBeOneMachine: (asked, from) => mayBeOneMachine(asked, from, this.#deps.isOwnHost),
      idSeenBy: (host) => this.#idSeenBy(host),
    });
    dht.on('request', (request) => {
      if (this.#isServerSocket(request.socket)) events.unasked.notify(request.to);
      if (request.token !== null && !this.#admission.has(request.from) && this.#clients.proven(request.from))
        events.tableChange.notify();
      events.request.notify(request);
    });
    dht.on('add-node', (node) => {
      this.#admission.add(node);
      events.node.notify(node);
      events.tableChange.notify();
    });
    dht.on('remove-node', (node) => {
      this.#admission.remove(node);
      events.left.notify({ host: node.host, port: node.port });
      events.tableChange.notify();
    });
    try {
      await dht.bind();
    } catch (error) {
      await Promise.allSettled([dht.destroy()]);
      dht.io.networkInterfaces.destroy();
      const where = formatAddress({ host, port });
      throw new SvcError('address_in_use', {
        message: `The UDP address ${where} of the DHT (listen_addr) cannot be used: another program has it, or this machine lacks it. To run a second svcd: ${SECOND_DAEMON_COMMAND}`,
        details: { address: where },
        cause: error,
      });
    }
    this.#dht = dht;
  }

  async stop(): Promise<void> {
    await this.#dht?.destroy();
  }

  get #running(): DHT {
    if (this.#dht === null) throw new SvcError('internal', { message: 'The DHT is not started.' });
    return this.#dht;
  }

  /** Where the server socket is bound. */
  get address(): Address {
    const address = this.#running.io.serverSocket?.address() ?? null;
    if (address === null) throw new SvcError('internal', { message: 'The DHT is not bound.' });
    return { host: address.host, port: address.port };
  }

  /** The address that this node stands under in the tables of others; null while it stands in none. */
  get ownAddress(): Address | null {
    return this.#own;
  }

  /** Its routing id, or a random one while it stands in no table. */
  get id(): Uint8Array {
    return this.#running.table.id;
  }

  get peerCount(): number {
    return this.#dht?.nodes.length ?? 0;
  }

  /** When another node last answered, Unix milliseconds. */
  get lastAnswerAt(): number {
    return this.#lastAnswerAt;
  }

  /** Nodes that use this one and stand in no routing table. */
  get clientCount(): number {
    return this.#clients.count(new Set(this.#dht?.nodes.toArray().map(({ host }) => host)));
  }

  /** True for an address that leads to this very node. */
  isOwn(address: Address): boolean {
    const { ownAddress, address: bound } = this;
    if (address.port !== bound.port) return false;
    if (address.host === ownAddress?.host || address.host === bound.host) return true;
    return nodeScope(bound.host) === IP_SCOPE.none && this.#deps.isOwnHost(address.host);
  }

  /** False for other machines where we listen on loopback only. */
  canReach({ host }: Address): boolean {
    if (nodeScope(this.#options.host) !== IP_SCOPE.loopback) return true;
    return nodeScope(host) === IP_SCOPE.loopback || this.#deps.isOwnHost(host);
  }

  /** Who sees us under another address than our own checks the routing id against that one. */
  #idSeenBy(host: string): Uint8Array | null {
    const { ownAddress, address: bound } = this;
    if (ownAddress === null || nodeScope(bound.host) !== IP_SCOPE.none) return null;
    const source = this.#deps.sourceTo(host);
    if (source === null || source === ownAddress.host) return null;
    const id = this.#otherIds.get(source) ?? nodeId({ host: source, port: bound.port });
    this.#otherIds.set(source, id);
    return id;
  }

  #tendTable(dht: DHT): void {
    tendTable(dht, (row, newcomer) => leavingFor(newcomer, row, this.#deps.isOwnHost));
  }

  #isServerSocket(socket: DHT.Socket): boolean {
    return socket === this.#dht?.io.serverSocket;
  }

  /** Answers a probe, from the socket that it came to or from the other one. */
  answerProbe(request: DHT.Request, port: number, fromOtherSocket: boolean): void {
    const { serverSocket, clientSocket } = this.#running.io;
    const other = request.socket === serverSocket ? clientSocket : serverSocket;
    const to = { host: request.from.host, port };
    request.reply(null, { to, token: false, closerNodes: false, socket: fromOtherSocket ? other : request.socket });
  }

  /** The nodes of the routing table, with when each was last heard (Unix milliseconds). */
  nodes(): { readonly node: Located; readonly firstSeen: number; readonly lastSeen: number }[] {
    const dht = this.#dht;
    if (dht === null) return [];
    const now = this.#deps.clock.now();
    return dht.nodes.toArray().map((node) => {
      return { node, firstSeen: now - ageMs(dht, node), lastSeen: now - silenceMs(dht, node) };
    });
  }

  /** The nodes of the routing table that are closest to a target, one of each block, closest first; then the others. */
  closest(target: Uint8Array, max: number): Located[] {
    const nodes = this.#running.nodes.toArray();
    return apartFirst(closestTo(target, nodes, nodes.length), this.#deps.isOwnHost, max);
  }

  /** How many nodes of the table are closer to a target than this one; those of one block count once. */
  closerThanSelf(target: Uint8Array): number {
    const { id } = this;
    const closer = this.#running.nodes.toArray().filter((node) => compareDistance(target, node.id, id) < 0);
    return new Set(closer.map((node) => blockOf(node, this.#deps.isOwnHost) ?? formatAddress(node))).size;
  }

  /**
   * Sends a request. Null where no answer comes, or the answer is a refusal of the engine. Who does
   * not answer twice in a row leaves the table.
   */
  async request(to: Address, message: DHT.Outgoing, options: SendOptions = {}): Promise<DHT.Reply | null> {
    const dht = this.#dht;
    if (dht === null || dht.destroyed) return null;
    const { clock, health } = this.#deps;
    const { retry = false, probing = false } = options;
    const started = clock.now();
    let silent = false;
    const silence = new SilenceWatch(clock, (retry ? MAX_ATTEMPTS : 1) * SILENCE_MS, () => {
      silent = true;
    });
    try {
      const reply = await dht.request(message, to, { retry, ...(probing ? { socket: dht.io.clientSocket } : {}) });
      health.answered(to, clock.now() - started);
      this.#silentRequests = 0;
      this.#answeredAt = clock.now();
      return reply.error === 0 ? reply : null;
    } catch {
      const isTheirFault = silent && !probing && !dht.destroyed;
      if (isTheirFault) this.#noteSilence(dht);
      const node = isTheirFault && health.failed(to) >= FAILURES_TO_DROP ? dht.table.get(nodeId(to)) : null;
      if (node !== null) removeNode(dht, node);
      return null;
    } finally {
      silence.stop();
    }
  }

  /**
   * Some middleboxes drop a pair of addresses and ports for good after a while. When every node that answered before has
   * fallen silent, requests leave from a fresh local port.
   */
  #noteSilence(dht: DHT): void {
    const now = this.#deps.clock.now();
    this.#silentRequests++;
    const isSilent = this.#silentRequests >= SILENT_REQUESTS && now - this.#answeredAt >= SILENT_MS;
    if (!isSilent || this.#answeredAt === 0) return;
    // The next change waits for as many failures from the new port, and as long.
    this.#silentRequests = 0;
    this.#answeredAt = now;
    const { tagged } = this.#sockets();
    tagged.bind(0, this.#options.host);
    tagged.on('message', (datagram: Uint8Array, from: DHT.Address) => dht.onmessage(tagged, datagram, from));
    const old = dht.io.clientSocket;
    dht.io.clientSocket = tagged;
    detach(old?.close() ?? Promise.resolve());
    this.events.portChange.notify();
  }

  /** Takes a node out of the table. */
  drop(address: Address): void {
    const node = this.#dht?.table.get(nodeId(address)) ?? null;
    if (this.#dht !== null && node !== null) removeNode(this.#dht, node);
  }

  /** Opens one more UDP port, on every interface, at which nothing is answered. */
  openPort(family: 4 | 6): OpenPort {
    return new OpenPort(this.#running, this.#sockets(), family);
  }

  /** A UDP socket without the network's tag, for what has nothing to do with the DHT; not yet bound. */
  plainSocket(): DHT.Socket {
    return this.#sockets().plain;
  }

  /** The socket of the DHT at which strangers reach this node, without the network's tag. */
  get openSocket(): DHT.Socket {
    const { serverSocket } = this.#running.io;
    if (!(serverSocket instanceof TaggedSocket)) throw new SvcError('internal', { message: 'The DHT is not bound.' });
    return serverSocket.plain;
  }

  #sockets(): SocketPair {
    if (this.#createSockets === null) throw new SvcError('internal', { message: 'The DHT is not started.' });
    return this.#createSockets();
  }

  /** Takes `address` as our own: from now on we answer with a routing id, and others put us in their tables. */
  async join(address: Address): Promise<void> {
    const dht = this.#running;
    if (this.#own !== null && formatAddress(this.#own) === formatAddress(address)) return;
    this.#own = address;
    await joinTables(dht, address);
    this.#tendTable(dht);
    this.#admission.reset(dht.nodes.toArray());
  }

  /** Leaves the tables of others: we ask, and no longer say that we can be asked. */
  leave(): void {
    this.#own = null;
    leaveTables(this.#running);
  }
}

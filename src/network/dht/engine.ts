/**
 * dht-rpc as the rest of this folder sees it: requests that resolve to an answer or to nothing,
 * the routing table in true order of distance, and the one moment at which this node takes an
 * address for its own and enters the tables of others.
 */
import DHT from 'dht-rpc';
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { joinTables, leaveTables, removeNode, silenceMs } from './internals.ts';
import { Neighbours } from './neighbours.ts';
import { closestTo, compareDistance, nodeId } from './node-address.ts';
import { FAILURES_TO_DROP, type PeerHealth } from './peer-health.ts';
import { tagSockets, type WireHooks } from './wire.ts';

/** How late a stranger may ask to be answered, which we have no use for: milliseconds. */
const MAX_PING_DELAY_MS = 1;
/** After how many milliseconds dht-rpc takes a request for unanswered, or sends it again. */
const TIMEOUT_MS = 1000;
/** A timer that is so late was held up by this process, and the answer with it: nobody else is to blame. */
const STALL_MS = 500;
/** Requests in flight at once, so that one busy publisher never waits for its own window. */
const MAX_WINDOW = 400;

export interface EngineOptions {
  /** An IPv4 address to bind; `0.0.0.0` for every interface. */
  readonly host: string;
  readonly port: number;
  readonly tag: Uint8Array;
}

export interface EngineDependencies {
  readonly clock: Clock;
  readonly health: PeerHealth;
  readonly wire: Pick<WireHooks, 'admits' | 'onDatagram'>;
  readonly isOwnHost: (host: string) => boolean;
  readonly onRequest: (request: DHT.Request) => void;
  /** Told of a node that has come into the table. */
  readonly onNode: (node: Address) => void;
  readonly onTableChange: () => void;
  readonly onNetworkChange: () => void;
}

/** A node with its routing id. */
export interface Located extends Address {
  readonly id: Uint8Array;
}

export interface SendOptions {
  /** Send again where no answer comes, up to three times. */
  readonly retry?: boolean;
  /** Ask for an answer at a port that may be closed: from the other socket, and silence is nobody's fault. */
  readonly probing?: boolean;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #deps: EngineDependencies;
  readonly #neighbours: Neighbours;
  #dht: DHT | null = null;
  #own: Address | null = null;

  constructor(options: EngineOptions, dependencies: EngineDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    const { clock, isOwnHost } = dependencies;
    this.#neighbours = new Neighbours({ clock, isOwnHost, greet: (stranger) => this.#greet(stranger) });
  }

  async #greet(stranger: Address): Promise<void> {
    try {
      await this.#running.ping(stranger, { retry: false });
    } catch {
      // Nobody is there, or not at this address.
    }
  }

  /** @throws SvcError `address_in_use` */
  async start(): Promise<void> {
    const { host, port, tag } = this.#options;
    const { health, wire, onRequest, onNode, onTableChange, onNetworkChange } = this.#deps;
    const dht = new DHT({
      host,
      port,
      anyPort: false,
      bootstrap: [],
      adaptive: false,
      firewalled: true,
      maxWindow: MAX_WINDOW,
      maxPingDelay: MAX_PING_DELAY_MS,
      filterNode: (node) => this.#neighbours.admits(node) && health.failures(node) < FAILURES_TO_DROP,
    });
    tagSockets(dht.udx, tag, {
      admits: (from) => wire.admits(from),
      onDatagram: (from, isRequest, socket) => wire.onDatagram(from, isRequest, socket),
      knows: (from) => this.#neighbours.has(from),
      onStranger: (from) => this.#neighbours.onStranger(from),
    });
    dht.on('request', onRequest);
    dht.on('add-node', (node) => {
      this.#neighbours.add(node);
      onNode(node);
      onTableChange();
    });
    dht.on('remove-node', (node) => {
      this.#neighbours.remove(node);
      onTableChange();
    });
    dht.on('network-change', onNetworkChange);
    dht.on('wakeup', onNetworkChange);
    try {
      await dht.bind();
    } catch (error) {
      await Promise.allSettled([dht.destroy()]);
      dht.io.networkInterfaces.destroy();
      const where = formatAddress({ host, port });
      throw new SvcError('address_in_use', {
        message: `The UDP address ${where} of the DHT (listen_addr) cannot be used: another program has it, or this machine lacks it.`,
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

  isServerSocket(socket: DHT.Socket): boolean {
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
  nodes(): { readonly node: Located; readonly lastSeen: number }[] {
    const dht = this.#dht;
    if (dht === null) return [];
    const now = this.#deps.clock.now();
    return dht.nodes.toArray().map((node) => ({ node, lastSeen: now - silenceMs(dht, node) }));
  }

  /** The nodes of the routing table that are closest to a target, closest first. */
  closest(target: Uint8Array, max: number): Located[] {
    return closestTo(target, this.#running.nodes.toArray(), max);
  }

  /** How many nodes of the table are closer to a target than this one. */
  closerThanSelf(target: Uint8Array): number {
    const { id } = this;
    return this.#running.nodes.toArray().filter((node) => compareDistance(target, node.id, id) < 0).length;
  }

  /**
   * Sends a request. Null where no answer comes, or the answer is a refusal of the engine. Who does
   * not answer twice in a row leaves the table.
   */
  async request(to: Address, message: DHT.Outgoing, options: SendOptions = {}): Promise<DHT.Reply | null> {
    const dht = this.#dht;
    if (dht === null || dht.destroyed) return null;
    const { clock, health } = this.#deps;
    const started = clock.now();
    const probing = options.probing === true;
    const retry = options.retry ?? false;
    try {
      const reply = await dht.request(message, to, {
        retry,
        ...(probing ? { socket: dht.io.clientSocket } : {}),
      });
      health.answered(to, clock.now() - started);
      return reply.error === 0 ? reply : null;
    } catch {
      const lateMs = clock.now() - started - (retry ? 4 : 1) * TIMEOUT_MS;
      const isOwnFault = probing || dht.destroyed || lateMs > STALL_MS;
      if (!isOwnFault && health.failed(to) >= FAILURES_TO_DROP) this.#drop(to);
      return null;
    }
  }

  #drop(peer: Address): void {
    const dht = this.#running;
    const node = dht.table.get(nodeId(peer));
    if (node !== null) removeNode(dht, node);
  }

  /** Takes `address` as our own: from now on we answer with a routing id, and others put us in their tables. */
  async join(address: Address): Promise<void> {
    const dht = this.#running;
    if (this.#own !== null && formatAddress(this.#own) === formatAddress(address)) return;
    this.#own = address;
    await joinTables(dht, address);
    this.#neighbours.reset(dht.nodes.toArray());
  }

  /** Leaves the tables of others: we ask, and no longer say that we can be asked. */
  leave(): void {
    const dht = this.#running;
    this.#own = null;
    leaveTables(dht);
  }
}

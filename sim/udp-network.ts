/**
 * Datagrams between simulated machines. Each pair of machines has a delay; datagrams are lost, duplicated and reordered
 * with given probabilities. Machines behind a NAT share its public address.
 */
import { EventEmitter } from 'node:events';
import { type Address, formatAddress } from '../src/foundation/address.ts';
import type { SocketFactory, UdpSocket } from '../src/network/transport/udp-socket.ts';
import type { Random } from '../test/support/random.ts';
import type { Lie } from './liars.ts';
import type { Nat } from './nat.ts';
import { Process } from './process.ts';
import type { Schedule } from './schedule.ts';
import { systemError } from './system-error.ts';

/** Ports that the system chooses from (RFC 6335). */
const FIRST_DYNAMIC_PORT = 49_152;
const DYNAMIC_PORTS = 16_384;
const ANY_HOST = '0.0.0.0';

export interface PathQuality {
  /** Probability that a datagram is lost, and that it arrives twice. From 0 to 1. */
  readonly loss: number;
  readonly duplication: number;
  /** Maximum random addition to the delay of a datagram, in milliseconds. It reorders datagrams. */
  readonly jitterMs: number;
  /** Milliseconds from any machine to its access network and on; and across the whole map. */
  readonly minDelayMs: number;
  readonly mapMs: number;
}

export const GOOD_PATHS: PathQuality = { loss: 0, duplication: 0, jitterMs: 2, minDelayMs: 2, mapMs: 60 };

/** A machine with one address. It loses all datagrams while it is not online. */
export class Machine {
  host: string;
  readonly nat: Nat | null;
  /** Position on a square map with sides of length 1. */
  readonly position: readonly [number, number];
  readonly sockets = new Map<number, SimulatedSocket>();
  isOnline = true;
  /**
   * False after it lost its address, for example with a cable. No socket can then be bound: nodes act as with the address
   * in `listen_addr`.
   */
  hasAddress = true;
  /** Changes what this machine sends. */
  lie: Lie | null = null;
  readonly createSocket: SocketFactory;

  constructor(host: string, nat: Nat | null, network: UdpNetwork) {
    this.host = host;
    this.nat = nat;
    this.position = nat?.position ?? network.newPosition();
    this.createSocket = () => new SimulatedSocket(this, network);
  }

  /** The address that others see. */
  get publicHost(): string {
    return this.nat?.host ?? this.host;
  }

  /** Closes all sockets, as the system does at the end of a program. */
  closeSockets(): void {
    this.sockets.clear();
  }
}

class SimulatedSocket extends EventEmitter implements UdpSocket {
  readonly #machine: Machine;
  readonly #network: UdpNetwork;
  #address: Address | null = null;
  #owner: Process | undefined;

  constructor(machine: Machine, network: UdpNetwork) {
    super();
    this.#machine = machine;
    this.#network = network;
  }

  bind(port: number, host: string): void {
    const { sockets, host: own, hasAddress } = this.#machine;
    Process.takeDescriptor('bind');
    if (!hasAddress || (host !== ANY_HOST && host !== own)) throw systemError('EADDRNOTAVAIL', 'bind');
    const chosen = port === 0 ? this.#network.freePort(this.#machine) : port;
    if (sockets.has(chosen)) throw systemError('EADDRINUSE', 'bind');
    sockets.set(chosen, this);
    this.#address = { host, port: chosen };
    this.#owner = Process.current;
  }

  address(): Address | null {
    return this.#address;
  }

  receive(datagram: Uint8Array, from: Address): void {
    const emit = (): void => void this.emit('message', datagram, from);
    if (this.#owner === undefined) emit();
    else this.#owner.deliver(emit);
  }

  async close(): Promise<void> {
    const { sockets } = this.#machine;
    const port = this.#address?.port ?? 0;
    if (sockets.get(port) === this) sockets.delete(port);
    this.#address = null;
  }

  trySend(datagram: Uint8Array, port: number, host: string): void {
    if (this.#address === null) throw new Error('The socket is not bound.');
    const own = this.#address.port;
    const send = (bytes: Uint8Array): void => this.#network.send(this.#machine, own, { host, port }, bytes);
    const { lie } = this.#machine;
    if (lie === null) send(Uint8Array.from(datagram));
    else lie(Uint8Array.from(datagram), send);
  }

  async send(datagram: Uint8Array, port: number, host: string): Promise<boolean> {
    this.trySend(datagram, port, host);
    return true;
  }
}

export class UdpNetwork {
  readonly #schedule: Schedule;
  readonly #random: Random;
  readonly #machines = new Map<string, Machine>();
  readonly #nats = new Map<string, Nat>();
  quality: PathQuality;
  /** Whether datagrams from one machine to another are lost. Can be replaced at any time. */
  isCut: (from: Machine, to: Machine) => boolean = () => false;
  readonly #cuts = new Set<readonly [ReadonlySet<Machine>, ReadonlySet<Machine>]>();
  #lastHost = 0;
  /** Datagrams and bytes that were sent. */
  sent = 0;
  sentBytes = 0;

  constructor(schedule: Schedule, random: Random, quality: PathQuality = GOOD_PATHS) {
    this.#schedule = schedule;
    this.#random = random;
    this.quality = quality;
  }

  /** A machine with a public address, or with a private one behind a NAT. */
  machine(host: string, nat: Nat | null = null): Machine {
    const machine = new Machine(host, nat, this);
    if (nat === null) this.#machines.set(host, machine);
    else {
      nat.inside.set(host, machine);
      this.#nats.set(nat.host, nat);
    }
    return machine;
  }

  /** A public address. Consecutive addresses are in different /16 networks. */
  newHost(): string {
    const nth = this.#lastHost++;
    return `${20 + Math.floor(nth / 256 ** 2)}.${nth % 256}.${Math.floor(nth / 256) % 256}.7`;
  }

  /** Gives a machine another public address. Its NAT, if it has one, forgets all mappings. */
  move(machine: Machine): void {
    const { nat } = machine;
    if (nat === null) {
      this.#machines.delete(machine.host);
      machine.host = this.newHost();
      this.#machines.set(machine.host, machine);
    } else {
      this.#nats.delete(nat.host);
      nat.restart();
      nat.host = this.newHost();
      this.#nats.set(nat.host, nat);
    }
  }

  /** Loses all datagrams between two groups of machines. Returns how to end it. */
  cut(left: readonly Machine[], right: readonly Machine[]): () => void {
    const cut = [new Set(left), new Set(right)] as const;
    this.#cuts.add(cut);
    return () => void this.#cuts.delete(cut);
  }

  #isLost(from: Machine, to: Machine): boolean {
    if (this.isCut(from, to)) return true;
    for (const [left, right] of this.#cuts)
      if ((left.has(from) && right.has(to)) || (right.has(from) && left.has(to))) return true;
    return false;
  }

  newPosition(): readonly [number, number] {
    return [this.#random.next(), this.#random.next()];
  }

  freePort({ sockets }: Machine): number {
    let port: number;
    do port = FIRST_DYNAMIC_PORT + this.#random.below(DYNAMIC_PORTS);
    while (sockets.has(port));
    return port;
  }

  send(from: Machine, fromPort: number, to: Address, datagram: Uint8Array): void {
    const { loss, duplication } = this.quality;
    this.sent++;
    this.sentBytes += datagram.length;
    if (!from.isOnline || !from.hasAddress) return;
    const inner: Address = { host: from.host, port: fromPort };
    const neighbor = from.nat?.inside.get(to.host);
    if (neighbor !== undefined) return this.#carry(from, neighbor, inner, to.port, datagram);
    const source = from.nat === null ? inner : from.nat.outbound(inner, to, this.#schedule.now());
    if (this.#random.chance(loss)) return;
    const copies = this.#random.chance(duplication) ? 2 : 1;
    for (let i = 0; i < copies; i++) this.#route(from, source, to, datagram);
  }

  #route(from: Machine, source: Address, to: Address, datagram: Uint8Array): void {
    const machine = this.#machines.get(to.host);
    if (machine !== undefined) return this.#carry(from, machine, source, to.port, datagram);
    const nat = this.#nats.get(to.host);
    if (nat === undefined) return;
    this.#schedule.after(this.#delayMs(from.position, nat.position), () => {
      const inner = nat.inbound(to.port, source, this.#schedule.now());
      const machine = inner === null ? undefined : nat.inside.get(inner.host);
      if (inner !== null && machine !== undefined && !this.#isLost(from, machine))
        this.#deliver(machine, source, inner.port, datagram);
    });
  }

  #carry(from: Machine, to: Machine, source: Address, port: number, datagram: Uint8Array): void {
    this.#schedule.after(this.#delayMs(from.position, to.position), () => {
      if (!this.#isLost(from, to)) this.#deliver(to, source, port, datagram);
    });
  }

  #delayMs([x1, y1]: readonly [number, number], [x2, y2]: readonly [number, number]): number {
    const { minDelayMs, mapMs, jitterMs } = this.quality;
    return minDelayMs + mapMs * Math.hypot(x1 - x2, y1 - y2) + jitterMs * this.#random.next();
  }

  #deliver(to: Machine, source: Address, port: number, datagram: Uint8Array): void {
    const socket = to.isOnline && to.hasAddress ? to.sockets.get(port) : undefined;
    if (socket === undefined) return;
    this.#schedule.record(`${this.#schedule.elapsedMs} ${formatAddress(source)} ${to.host}:${port}`, datagram);
    socket.receive(datagram, source);
  }
}

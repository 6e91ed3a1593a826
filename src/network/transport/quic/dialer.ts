/** Dials through one client socket of the engine per address family, opened when it is first needed. */

import { isIP } from 'node:net';
import { type Address, formatAddress } from '../../../foundation/address.ts';
import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { abortable } from '../../../foundation/deadline.ts';
import { detach } from '../../../foundation/detached.ts';
import { MAX_PORT } from '../../../foundation/domain/tunnels.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { awakeTimeout } from '../../../foundation/stall.ts';
import { DIAL_TIMEOUT_MS } from '../connection-limits.ts';
import type { EngineConnection } from '../engine-connection.ts';
import type { DialOptions } from '../types.ts';
import type { BorrowedPorts } from '../udp-socket.ts';
import { type EngineClient, type EngineServer, type Peer, parsePeer, type QuicEngine } from './engine.ts';
import { Gates, WrappedConnection } from './gates.ts';

/* The engine does not report the port of a client socket. A local server that the client dials sees it. */

/** Timeout of this handshake, milliseconds. */
const OWN_HANDSHAKE_MS = 3_000;
const LOOPBACK_V6 = '::1';

/**
 * The local port of a client for IPv6.
 * @throws SvcError `connect_failed` if this machine has no IPv6, `timeout`
 */
export async function clientPort(
  client: EngineClient,
  { engine, config }: { readonly engine: QuicEngine; readonly config: object },
  clock: Clock,
): Promise<number> {
  let server: EngineServer;
  try {
    server = new engine.Server(config, LOOPBACK_V6, 0);
  } catch (cause) {
    throw new SvcError('connect_failed', { message: 'This machine has no IPv6.', cause });
  }
  const ends: EngineConnection[] = [];
  const keep = (connection: EngineConnection): EngineConnection => {
    ends.push(connection);
    return connection;
  };
  try {
    using limit = awakeTimeout(clock, OWN_HANDSHAKE_MS);
    const dialled = client.outboundConnection(LOOPBACK_V6, server.port()).then(keep);
    const [out, back] = await abortable(Promise.all([dialled, server.inboundConnection().then(keep)]), limit.signal);
    const [there, here] = [parsePeer(out.remoteMultiaddr()), parsePeer(back.remoteMultiaddr())];
    // Another local program may have connected to the port first. It does not have our key.
    if (there === null || here === null || !equalBytes(there.key, here.key)) throw new SvcError('connect_failed');
    return here.address.port;
  } catch (cause) {
    throw cause instanceof SvcError ? cause : new SvcError('connect_failed', { cause });
  } finally {
    for (const end of ends) end.abort();
    detach(server.abort());
  }
}

/** Minimum time between two changes of a family's local port, milliseconds. */
export const FRESH_PORT_PAUSE_MS = 5_000;
/** Addresses recorded as reached from a socket. */
const MAX_REACHED = 1024;

/** A client socket of the engine. */
interface Port {
  readonly client: EngineClient;
  /** Addresses that were reached from it. */
  readonly reached: Set<string>;
  /** Connections and dials that use it. */
  uses: number;
  readonly openedAt: number;
  /** For dials over borrowed ports. Null before the first. */
  gates: Gates | null;
  /** A newer socket has replaced it. It closes after its last use. */
  isOld: boolean;
}

interface Dialled {
  readonly native: EngineConnection;
  readonly peer: Peer;
}

export class Dialer {
  readonly #engine: QuicEngine;
  readonly #config: object;
  readonly #clock: Clock;
  readonly #borrowed: BorrowedPorts | undefined;
  readonly #ports = new Map<0 | 1, Port>();
  readonly #old = new Set<Port>();
  /** The port of the client for IPv6, if known. */
  #ipv6Port: number | null = null;
  /** Cancels all pending dials. */
  readonly #stop = new AbortController();

  constructor(
    options: { readonly engine: QuicEngine; readonly config: object },
    dependencies: { readonly clock: Clock; readonly borrowed?: BorrowedPorts | undefined },
  ) {
    this.#engine = options.engine;
    this.#config = options.config;
    this.#clock = dependencies.clock;
    this.#borrowed = dependencies.borrowed;
  }

  /** @throws SvcError `connect_failed`, `timeout`, `cancelled` */
  async dial(address: Address, expectedKey: Uint8Array, options: DialOptions): Promise<Dialled> {
    const native = await this.#connect(address, options);
    const peer = parsePeer(native.remoteMultiaddr());
    if (peer !== null && equalBytes(peer.key, expectedKey)) return { native, peer };
    native.abort();
    throw new SvcError('connect_failed', { message: 'A node with another key answers at this address.' });
  }

  async #connect({ host, port }: Address, options: DialOptions): Promise<EngineConnection> {
    const { timeoutMs, signal } = options;
    const family = isIP(host);
    if (family === 0 || !Number.isInteger(port) || port < 1 || port > MAX_PORT)
      throw new SvcError('connect_failed', { message: 'This is not an IP address and port.' });
    if (signal?.aborted === true || this.#stop.signal.aborted) throw new SvcError('cancelled');
    using limit = awakeTimeout(this.#clock, timeoutMs ?? DIAL_TIMEOUT_MS, signal);
    const isBorrowed = options.isFromOwnPort !== true && this.#borrowed?.carries(host) === true;
    // The gates are at an IPv4 address.
    const isIpv4 = family === 4 || isBorrowed;
    const from = this.#portOf(isIpv4 ? 0 : 1);
    const to = formatAddress({ host, port });
    from.uses++;
    const done = (): void => this.#unuse(from);
    const dialled = isBorrowed ? this.#dialBorrowed(from, { host, port }) : from.client.outboundConnection(host, port);
    detach(dialled.then((connection) => connection.closed()).then(done, done));
    try {
      const connection = await abortable(abortable(dialled, limit.signal), this.#stop.signal);
      if (from.reached.size < MAX_REACHED) from.reached.add(to);
      return connection;
    } catch (cause) {
      // Some middleboxes permanently drop traffic between two pairs of address and port. A new local port avoids that.
      const isSilent = !(cause instanceof SvcError) || cause.code === 'timeout';
      if (isSilent && from.reached.has(to) && !this.#stop.signal.aborted) this.#replace(isIpv4 ? 0 : 1, from);
      // A late connection is not needed.
      dialled.then(
        (connection) => connection.abort(),
        () => {},
      );
      throw cause instanceof SvcError ? cause : new SvcError('connect_failed', { cause });
    }
  }

  async #dialBorrowed(from: Port, to: Address): Promise<EngineConnection> {
    if (from.gates?.isOpen !== true) {
      from.gates?.close();
      const borrowed = this.#borrowed?.borrow() ?? null;
      from.gates = borrowed === null ? null : new Gates(borrowed, null, this.#clock);
    }
    if (from.gates === null)
      throw new SvcError('connect_failed', { message: 'The helper cannot lend another UDP port. Retry.' });
    const gate = await from.gates.gateTo(to);
    return new WrappedConnection(await from.client.outboundConnection(gate.host, gate.port), { remote: to });
  }

  /**
   * The local port of dials over IPv6.
   * @throws SvcError as `clientPort`; `cancelled`
   */
  async ipv6Port(): Promise<number> {
    if (this.#stop.signal.aborted) throw new SvcError('cancelled');
    const parts = { engine: this.#engine, config: this.#config };
    this.#ipv6Port ??= await clientPort(this.#portOf(1).client, parts, this.#clock);
    return this.#ipv6Port;
  }

  /** Later dials use new local ports. Connections keep theirs. */
  renew(): void {
    for (const [family, port] of this.#ports) this.#replace(family, port);
  }

  #portOf(family: 0 | 1): Port {
    const known = this.#ports.get(family);
    if (known !== undefined) return known;
    const client = this.#newClient(family);
    const port = {
      client,
      reached: new Set<string>(),
      uses: 0,
      openedAt: this.#clock.monotonic(),
      isOld: false,
      gates: null,
    };
    this.#ports.set(family, port);
    return port;
  }

  /** @throws SvcError `connect_failed` if the system has no port */
  #newClient(family: 0 | 1): EngineClient {
    try {
      return new this.#engine.Client(this.#config, family);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : 'unknown error';
      throw new SvcError('connect_failed', { message: `This machine cannot open a UDP port: ${reason}.`, cause });
    }
  }

  #replace(family: 0 | 1, port: Port): void {
    if (this.#ports.get(family) !== port || this.#clock.monotonic() - port.openedAt < FRESH_PORT_PAUSE_MS) return;
    this.#ports.delete(family);
    if (family === 1) this.#ipv6Port = null;
    port.isOld = true;
    this.#old.add(port);
    this.#closeUnused(port);
  }

  #unuse(port: Port): void {
    port.uses--;
    this.#closeUnused(port);
  }

  #closeUnused(port: Port): void {
    if (!port.isOld || port.uses > 0 || !this.#old.delete(port)) return;
    port.client.abort();
    port.gates?.close();
  }

  stop(): void {
    this.#stop.abort();
    for (const { client, gates } of [...this.#ports.values(), ...this.#old]) {
      client.abort();
      gates?.close();
    }
    this.#ports.clear();
    this.#old.clear();
  }
}

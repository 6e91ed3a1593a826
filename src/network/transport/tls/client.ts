/**
 * UDP over TLS, for a node whose own UDP does not work: it borrows UDP ports of a helper. A second helper in another
 * network is the spare. If the connection is lost, it is opened again with the resume token, so the ports stay.
 */

import { isIPv4 } from 'node:net';
import type { WebSocket } from 'ws';
import { type Address, formatAddress } from '../../../foundation/address.ts';
import { detach } from '../../../foundation/detached.ts';
import { canonicalIp, IP_SCOPE, type IpScope, ipScope } from '../../../foundation/ip.ts';
import { Listeners } from '../../../foundation/listeners.ts';
import type { NodeParts } from '../../../foundation/node-parts.ts';
import { type Borrowing, HelperFailure, type HelperFailureCode, type HelperTarget } from '../borrowing.ts';
import type { BorrowedPort, BorrowedPorts, UdpSocket } from '../udp-socket.ts';
import type { TlsRoute } from './connect.ts';
import { tlsFailure } from './failure.ts';
import type { Proxies } from './proxy.ts';
import { openLaneEnd, type TlsIdentity, TlsSession } from './session.ts';
import { TrialSocket } from './trial-socket.ts';
import { type CarriedDatagram, closingEntry, MAX_CARRIED_BYTES, MAX_LENT_NUMBER } from './wire.ts';

/** A helper keeps the ports of a lost connection for this time, milliseconds (step 7). */
const RESUMABLE_MS = 30_000;
/** Timeout for opening a lost connection again, before the spare is used, milliseconds. */
const RECONNECT_MS = 2_500;

/** Failures of connections without a proxy. */
const UNREACHED: ReadonlySet<HelperFailureCode> = new Set(['name_unresolved', 'tcp_refused', 'tcp_silent']);

/** One borrowed port. Its number is used again last, because late datagrams may still arrive. */
class Port implements BorrowedPort {
  readonly number: number;
  readonly #client: UdpOverTls;
  #handler: (datagram: Uint8Array, from: Address) => void = () => {};
  #isOpen = true;

  constructor(number: number, client: UdpOverTls) {
    this.number = number;
    this.#client = client;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  send(datagram: Uint8Array, to: Address): boolean {
    const host = canonicalIp(to.host);
    if (!this.#isOpen || host === null || to.port === 0 || datagram.length > MAX_CARRIED_BYTES) return false;
    return this.#client.send({ number: this.number, remote: { host, port: to.port }, datagram });
  }

  receive(handler: (datagram: Uint8Array, from: Address) => void): void {
    this.#handler = handler;
  }

  deliver(datagram: Uint8Array, from: Address): void {
    if (this.#isOpen) this.#handler(datagram, from);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#client.released(this);
  }
}

function isAt(session: TlsSession, target: Address): boolean {
  return formatAddress(session.target) === formatAddress(target);
}

interface UdpOverTlsParts extends NodeParts {
  readonly identity: TlsIdentity;
  readonly proxies: Proxies;
  /** PEM text of `tls_ca`; empty for none. */
  readonly ca: () => string;
  /** The addresses at which this machine may reach a helper. Default: its own. */
  readonly reachableForms?: (target: Address) => Promise<readonly Address[]>;
}

export class UdpOverTls implements Borrowing, BorrowedPorts {
  readonly moved: Listeners<[]> = new Listeners();
  readonly silent: Listeners<[]> = new Listeners();
  readonly lost: Listeners<[HelperFailure]> = new Listeners();
  readonly #parts: UdpOverTlsParts;
  readonly #ports = new Map<number, Port>();
  readonly #free: number[] = Array.from({ length: MAX_LENT_NUMBER - 1 }, (_, i) => i + 1);
  #main: TlsSession | null = null;
  #spare: TlsSession | null = null;
  /** The last lost connection, and when it was lost. */
  #last: { readonly session: TlsSession; readonly at: number } | null = null;
  /** Aborted when another connection is used meanwhile; null unless a connection is opened again. */
  #reconnecting: AbortController | null = null;
  #isActive = false;
  carriesIpv6 = true;
  /** The narrowest addresses that are carried. */
  #scope: IpScope = IP_SCOPE.public;

  constructor(parts: UdpOverTlsParts) {
    this.#parts = parts;
  }

  get session(): TlsSession | null {
    return this.#main;
  }

  get spare(): TlsSession | null {
    return this.#spare;
  }

  get hasProxy(): boolean {
    return this.#parts.proxies.isSet;
  }

  /** True if only a proxy for http:// is set, which svcd does not use. */
  get hasPlainProxyOnly(): boolean {
    return this.#parts.proxies.isPlainOnly;
  }

  get isActive(): boolean {
    return this.#isActive;
  }

  carries(host: string): boolean {
    // Addresses that reach at least as far as the helper's.
    return this.#isActive && ipScope(host) >= this.#scope && (this.carriesIpv6 || !host.includes(':'));
  }

  /** The IPv4 address of a helper, by the host that was connected; null if it is not used or has none. */
  ipv4Of(host: string): string | null {
    const session = this.#main;
    return session?.target.host === host && session.host !== null && isIPv4(session.host) ? session.host : null;
  }

  async open(target: HelperTarget, signal: AbortSignal): Promise<TlsSession> {
    const { identity, clock } = this.#parts;
    const route = await this.#routeTo(target);
    // Another node that states the key of a helper in use must not get a hello for it.
    const others = [this.#main, this.#spare].filter((one) => one !== null).filter((one) => !isAt(one, target));
    const inUse = others.map(({ hello }) => hello.nodeKey);
    try {
      return await TlsSession.open({ target, route, identity, token: this.#tokenFor(target), inUse, signal }, clock);
    } catch (error) {
      const isUnreached = error instanceof HelperFailure && UNREACHED.has(error.failure);
      if (!isUnreached || !this.#parts.proxies.isPlainOnly) throw error;
      throw tlsFailure('direct TCP fails, and only HTTP_PROXY is set', { to: formatAddress(target) }, error);
    }
  }

  /**
   * Opens one end of a lane at a helper, which may be any node. As `openLaneEnd`.
   * @throws as `open`
   */
  async openLaneEnd<T>(
    target: HelperTarget,
    token: Uint8Array,
    signal: AbortSignal,
    make: (socket: WebSocket) => T,
  ): Promise<T> {
    const { identity, clock } = this.#parts;
    const route = await this.#routeTo(target);
    return await openLaneEnd({ target, route, identity, token, signal }, clock, make);
  }

  async #routeTo(target: HelperTarget): Promise<TlsRoute> {
    const { proxies, ca, reachableForms } = this.#parts;
    const proxy = proxies.for(target);
    // The certificates of tls_ca sign that of an https:// proxy, or of one that inspects TLS.
    return { proxy, ca: proxy?.isSecure === true ? '' : ca(), addresses: (await reachableForms?.(target)) ?? [target] };
  }

  #tokenFor(target: HelperTarget): Uint8Array | null {
    const isRecent = this.#last !== null && this.#parts.clock.monotonic() - this.#last.at < RESUMABLE_MS;
    const session = this.#main ?? (isRecent ? (this.#last?.session ?? null) : null);
    return session !== null && isAt(session, target) ? session.hello.resume : null;
  }

  reopen(): void {
    if (this.#main !== null && this.#reconnecting === null) detach(this.#reconnect(this.#main));
  }

  use(session: TlsSession): void {
    this.#isActive = true;
    this.#adopt(session);
  }

  /** Carries the datagrams of borrowed ports, also of those that live on after a return to UDP. */
  #adopt(session: TlsSession): void {
    this.#reconnecting?.abort();
    this.#reconnecting = null;
    if (this.#spare === session) this.#spare = null;
    const before = this.#main;
    this.#main = session;
    before?.close();
    this.#scope = session.host === null ? IP_SCOPE.public : ipScope(session.host);
    session.onEntries = (entries) => {
      for (const { number, remote, datagram } of entries)
        if (remote !== null) this.#ports.get(number)?.deliver(datagram, remote);
    };
    session.onSilence = () => (this.#main === session ? this.silent.notify() : undefined);
    detach(session.ended.then(() => this.#onEnded(session)));
  }

  trialSocket(session: TlsSession): UdpSocket {
    return new TrialSocket(session.openTrial());
  }

  moveToSpare(): void {
    if (this.#spare === null) return;
    this.#adopt(this.#spare);
    this.moved.notify();
  }

  dropSpare(): void {
    this.#spare?.close();
    this.#spare = null;
  }

  keepSpare(session: TlsSession): void {
    this.#spare?.close();
    this.#spare = session;
    detach(
      session.ended.then(() => {
        if (this.#spare === session) this.#spare = null;
      }),
    );
  }

  leave(): void {
    this.#isActive = false;
  }

  disconnect(): void {
    this.#isActive = false;
    this.#last = null;
    this.#reconnecting?.abort();
    this.#reconnecting = null;
    for (const port of [...this.#ports.values()]) port.close();
    const [main, spare] = [this.#main, this.#spare];
    this.#main = null;
    this.#spare = null;
    main?.close();
    spare?.close();
  }

  borrow(): BorrowedPort | null {
    const limit = (this.#main ?? this.#last?.session)?.hello.ports ?? 0;
    const number = this.#ports.size < limit ? this.#free.shift() : undefined;
    if (number === undefined) return null;
    const port = new Port(number, this);
    this.#ports.set(number, port);
    return port;
  }

  /** For `BorrowedPort.send`. */
  send(entry: CarriedDatagram): boolean {
    return this.#main?.send(entry) ?? false;
  }

  /** For `BorrowedPort.close`. */
  released(port: Port): void {
    this.#ports.delete(port.number);
    this.#free.push(port.number);
    this.#main?.send(closingEntry(port.number));
  }

  #onEnded(session: TlsSession): void {
    if (this.#main !== session) return;
    this.#main = null;
    this.#last = { session, at: this.#parts.clock.monotonic() };
    if (this.#reconnecting === null) detach(this.#reconnect(session));
  }

  /** Opens a connection again. If it is lost, moves to the spare. */
  async #reconnect(before: TlsSession): Promise<void> {
    const { log, clock } = this.#parts;
    const controller = new AbortController();
    this.#reconnecting = controller;
    const { target, hello } = before;
    const timer = clock.after(RECONNECT_MS, () => controller.abort());
    let failure: HelperFailure;
    try {
      const session = await this.open({ ...target, nodeKey: hello.nodeKey }, controller.signal);
      if (this.#reconnecting !== controller) return session.close();
      this.#adopt(session);
      log.info({ helper: formatAddress(target), isResumed: session.hello.isResumed }, 'UDP over TLS: connected again');
      if (!session.hello.isResumed) this.moved.notify();
      return;
    } catch (error) {
      failure =
        error instanceof HelperFailure
          ? error
          : new HelperFailure('lost', `The connection to ${formatAddress(target)} was lost.`, error);
    } finally {
      timer.cancel();
    }
    if (this.#reconnecting !== controller) return;
    if (this.#main !== null) {
      this.#reconnecting = null;
      return;
    }
    log.info({ helper: formatAddress(target), cause: failure.failure }, 'UDP over TLS: a helper is lost');
    const spare = this.#spare;
    if (spare !== null) {
      this.#adopt(spare);
      this.moved.notify();
    } else {
      this.#reconnecting = null;
      this.lost.notify(failure);
    }
  }
}

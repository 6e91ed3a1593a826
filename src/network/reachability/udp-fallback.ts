/**
 * Decides whether this node uses UDP, or borrows UDP ports of a helper over TLS. UDP comes first: after the start, after
 * each change of network, and when all nodes fall silent. While it is on TLS, it tries UDP regularly, and goes back.
 */
import { isIP } from 'node:net';
import { type Address, formatAddress, HTTPS_PORT, type NodeContact } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import type { Timer } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import type { ExitState, UdpTrouble } from '../../foundation/domain/exit.ts';
import { SvcError } from '../../foundation/errors.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NodeAt } from '../node-requests.ts';
import { race } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import { apartFirst } from '../records/node-address.ts';
import type { HostCheck } from '../records/own-hosts.ts';
import type { RecordDht } from '../records/record-dht.ts';
import {
  type Borrowing,
  HelperFailure,
  type HelperFailureCode,
  type HelperSession,
  type HelperTarget,
} from '../transport/borrowing.ts';
import type { Endpoint } from '../transport/types.ts';
import type { StoredHelper } from './helper-store.ts';

/** UDP flows expire if, within this time, nodes answer from new ports after two silences, milliseconds. */
const EXPIRY_WINDOW_MS = 5 * 60_000;
/** TLS is used for this time if UDP flows expire, milliseconds. A single attempt cannot show whether they still do. */
export const EXPIRY_PAUSE_MS: number = 10 * 60_000;
/** Time for an answer over UDP before TLS is used, milliseconds. */
export const UDP_WAIT_MS = 1_500;
/** First and longest pause between attempts to go back to UDP, milliseconds: a network may need a moment. */
export const MIN_UDP_RETRY_MS = 5_000;
export const UDP_RETRY_MS = 60_000;
/** Growth of that pause. */
const UDP_RETRY_FACTOR = 3;
/** Head start of each address over the next one, milliseconds. */
const STAGGER_MS = 300;
/** First and longest pause between attempts to find a helper over TLS, milliseconds. */
const MIN_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** First and longest pause before a missing spare is searched again, milliseconds. */
const MIN_SPARE_PAUSE_MS = 60_000;
const MAX_SPARE_PAUSE_MS: number = 15 * 60_000;
/** TCP addresses that are tried in one round. */
const MAX_TARGETS = 16;
/** Timeout of a trial of a helper's ports, milliseconds. */
export const HELPER_TRIAL_MS = 3_000;
/** Minimum pause between two trials that a silence causes, milliseconds. */
export const HELPER_TRIAL_PAUSE_MS = 5_000;
/** Other nodes that must be silent before a helper is blamed. */
const MIN_SILENT_NODES = 2;
/** The spare is used instead if nodes answer through it this much faster: a factor, and milliseconds. */
const FASTER = 2;
const FASTER_MS = 200;
/** A helper that forwards nothing is not used for this time if there is another one, milliseconds. */
export const SHUNNED_MS: number = 10 * 60_000;
/** Nodes to probe over UDP, for records and for QUIC. */
const MAX_PROBED = 3;
const MAX_HANDSHAKES = 2;
/** Open streams may use the borrowed ports for this time after the return to UDP, milliseconds. */
const DRAIN_MS = 30_000;
/** How often that is checked, milliseconds. */
const DRAIN_LOOK_MS = 500;
/** Longest wait for the network of a lookup that found nothing, milliseconds. */
const READY_WAIT_MS = 5_000;
const NO_KEY = new Uint8Array();

export interface UdpFallbackStatus {
  readonly state: ExitState;
  /** Unix milliseconds. */
  readonly since: number;
  readonly trouble: UdpTrouble | null;
  readonly helper: { readonly nodeKey: Uint8Array; readonly address: Address } | null;
  readonly hasSpare: boolean;
  /** `host:port` of the HTTP proxy; null without one. */
  readonly proxy: string | null;
  /** True if a machine between this node and the helper decrypts TLS. Connections inside stay encrypted end to end. */
  readonly isInspected: boolean;
  readonly error: { readonly code: HelperFailureCode; readonly message: string } | null;
}

/** Finds out the key and QUIC address of nodes: over UDP or TLS, or over UDP only. */
type Identifier = Pick<RecordDht, 'identify'>;

/** A node that may lend ports. */
interface Candidate extends Address {
  /** TCP ports, the most likely first. */
  readonly ports: readonly number[];
  readonly nodeKey?: Uint8Array | undefined;
}

interface UdpFallbackParts extends NodeParts, HostCheck {
  readonly borrowing: Borrowing;
  readonly records: Pick<
    RecordDht,
    | 'lastAnswerAt'
    | 'lastPublicAnswerAt'
    | 'contacts'
    | 'places'
    | 'peers'
    | 'identify'
    | 'addNode'
    | 'openSystemPort'
    | 'openPort'
    | 'openPortAt'
    | 'carriesQuic'
    | 'reachability'
    | 'onReachability'
  >;
  readonly endpoint: Pick<Endpoint, 'dial'>;
  readonly pool: Pick<PeerTable, 'connections' | 'onPathsWithdrawn' | 'usesWithdrawable'>;
  readonly storedHelpers: () => readonly StoredHelper[];
  /** False if `disable_relay` excludes UDP over TLS. */
  readonly isAllowed: () => boolean;
  /** True if this machine has IPv6 only. */
  readonly isIpv6Only: () => boolean;
  /** True if this machine has lost the address that it listens on. */
  readonly lacksListenAddress: () => boolean;
  /** The external addresses of this node have changed. */
  readonly onSwitch: () => void;
}

export class UdpFallback implements Component {
  readonly #parts: UdpFallbackParts;
  readonly #end = new AbortController();
  #rounds: RepeatingTask | null = null;
  #leave: () => void = () => {};
  #stopListening: () => void = () => {};
  #state: UdpFallbackStatus['state'] = 'udp';
  #since: number;
  #trouble: UdpTrouble | null = null;
  #failure: HelperFailure | null = null;
  /** Earlier answers over UDP do not count. Unix milliseconds. */
  #checkedFrom: number;
  #failures = 0;
  /** Contacts that are being joined. */
  #joining: readonly NodeContact[] = [];
  /** True while borrowed ports are open. */
  #hasPorts = false;
  #spareSearchAt = 0;
  #spareFailures = 0;
  /** When UDP is tried next, and failed attempts. */
  #udpTryAt = 0;
  #udpFailures = 0;
  /** False until UDP has been checked once since the start or a change of network. */
  #isChecked = false;
  /** True after a silence, until nodes answer from new ports. */
  #wasSilent = false;
  /** When nodes answered again after silences, Unix milliseconds. */
  #expiries: readonly number[] = [];
  readonly #changes = new Listeners<[]>();
  /** The running trial of the helpers, and when the last one began, Unix milliseconds. */
  #trial: Promise<void> | null = null;
  #triedAt = Number.NEGATIVE_INFINITY;
  /** The trial that follows the pause after the last one. */
  #nextTrial: Timer | null = null;
  /** True if the last search for a spare found no node to try. */
  #lacksTargets = false;
  /** Nodes that a helper named while no other one was known. On a slow path, they cannot answer in time. */
  #named: readonly Address[] = [];
  /** Helpers that forward nothing, by key and by host. */
  readonly #shunned: LruCache<string, true>;
  /** Keys of helpers by host. A helper may have several hosts, and lends to this node over one connection. */
  readonly #keys = new LruCache<string, Uint8Array>({ maxEntries: MAX_TARGETS });

  constructor(parts: UdpFallbackParts) {
    this.#parts = parts;
    this.#since = parts.clock.now();
    this.#checkedFrom = this.#since;
    this.#shunned = new LruCache({ maxEntries: 2 * MAX_TARGETS, ttlMs: SHUNNED_MS }, parts);
  }

  async start(): Promise<void> {
    const { clock, log, borrowing, records } = this.#parts;
    const onError = (error: unknown): void => log.warn({ error }, 'UDP over TLS: a check failed');
    this.#rounds = every(clock, { firstMs: this.#waitMs, periodMs: UDP_RETRY_MS, onError }, () => this.#round());
    borrowing.moved.add(() => this.#onMoved());
    borrowing.lost.add((failure) => this.#onLost(failure));
    borrowing.silent.add(() => this.#onSilent());
    // After the login of a portal, nodes answer before the next round.
    this.#stopListening = records.onReachability(() => {
      if ((this.#state === 'failed' || this.#state === 'off') && this.#trouble === 'udp_silent' && this.#isAnswered)
        this.#rounds?.soon();
    });
    this.#leave = records.onReachability(() => {
      if (!this.#lacksTargets || !borrowing.isActive) return;
      this.#spareSearchAt = 0;
      this.#rounds?.soon();
    });
  }

  async stop(): Promise<void> {
    this.#end.abort(new SvcError('cancelled'));
    this.#changes.notify();
    this.#stopListening();
    this.#rounds?.stop();
    this.#nextTrial?.cancel();
    this.#leave();
    this.#parts.borrowing.disconnect();
  }

  status(): UdpFallbackStatus {
    const { session, spare } = this.#parts.borrowing;
    const isUsed = session !== null && this.#state === 'tls';
    // A helper that forwards nothing remains connected until another one is found.
    return {
      state: this.#state,
      since: this.#since,
      trouble: this.#state === 'udp' ? null : this.#trouble,
      helper: isUsed
        ? {
            nodeKey: session.hello.nodeKey,
            address: { host: session.host ?? session.target.host, port: session.target.port },
          }
        : null,
      hasSpare: isUsed && spare !== null,
      proxy: isUsed ? session.proxy : null,
      isInspected: isUsed && session.isInspected,
      error:
        this.#failure === null || this.#state === 'udp' || isUsed
          ? null
          : { code: this.#failure.failure, message: this.#failure.message },
    };
  }

  /** To be called after a change of network. */
  onNetwork(): void {
    this.#parts.borrowing.reopen();
    this.#expiries = [];
    this.check();
  }

  /** To be called when all nodes have fallen silent, and requests leave from a new port. */
  onSilence(): void {
    const tryAt = this.#parts.borrowing.isActive && this.#trouble === 'flows_expire' ? this.#udpTryAt : 0;
    this.#wasSilent = !this.#parts.borrowing.isActive;
    this.check();
    this.#udpTryAt = tryAt;
  }

  /** To be called after a change of the configuration. */
  check(): void {
    this.#checkedFrom = this.#parts.clock.now();
    this.#failures = 0;
    this.#isChecked = false;
    this.#udpTryAt = 0;
    this.#udpFailures = 0;
    this.#rounds?.plan(this.#waitMs);
  }

  /**
   * With a proxy, UDP probably does not work, so TLS starts immediately. It takes five round trips, and UDP one: if a
   * node answers over UDP meanwhile, TLS is not used.
   */
  get #waitMs(): number {
    return this.#parts.borrowing.hasProxy || this.#parts.isIpv6Only() ? 0 : UDP_WAIT_MS;
  }

  /**
   * Uses contacts as helpers while this node joins through them.
   * @returns a function that ends this
   */
  joinThrough(contacts: readonly NodeContact[]): () => void {
    this.#joining = [...contacts, ...this.#joining];
    if (this.#state !== 'tls') this.check();
    return () => {
      this.#joining = this.#joining.filter((contact) => !contacts.includes(contact));
    };
  }

  /** Settles when the state is not `connecting`, or this node stops. */
  async settled(): Promise<void> {
    const isSettled = (): boolean => this.#state !== 'connecting' || this.#end.signal.aborted;
    if (isSettled()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = this.#changes.add(() => (isSettled() ? resolve() : undefined));
    await promise.finally(end);
  }

  /**
   * Waits for the network if this node has just started, or is connecting over TLS. A lookup that found nothing can
   * then be repeated: with the first peer if it had none, otherwise when the network is ready.
   * @returns true if that happened, or a peer is known after the wait; it never rejects
   */
  async becomesReady(): Promise<boolean> {
    const { clock, records } = this.#parts;
    const { ready, peers: hadPeers } = records.reachability();
    const isReady = (): boolean => (hadPeers === 0 ? records.reachability().peers > 0 : records.reachability().ready);
    const isHopeless = (): boolean =>
      this.#end.signal.aborted ||
      this.#state === 'failed' ||
      this.#state === 'off' ||
      (this.#state === 'udp' && this.#isChecked) ||
      this.#candidates().length === 0;
    if (ready || isHopeless()) return false;
    const outcome = Promise.withResolvers<boolean>();
    const look = (): void => {
      if (isReady()) outcome.resolve(true);
      else if (isHopeless()) outcome.resolve(false);
    };
    const ends = [records.onReachability(look), this.#changes.add(look)];
    const timer = clock.after(READY_WAIT_MS, () => outcome.resolve(records.reachability().peers > 0));
    try {
      return await outcome.promise;
    } finally {
      timer.cancel();
      for (const end of ends) end();
    }
  }

  #set(state: UdpFallbackStatus['state']): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#since = this.#parts.clock.now();
    this.#changes.notify();
  }

  /** @returns milliseconds until the next round */
  async #round(): Promise<number> {
    this.#parts.borrowing.carriesIpv6 = !this.#parts.isIpv6Only();
    const { borrowing, isAllowed } = this.#parts;
    if (borrowing.isActive && isAllowed()) return await this.#whileOnTls();
    if (borrowing.isActive) this.#goBack();
    const trouble = (await this.#troubleOfUdp()) ?? this.#troubleOfFlows();
    this.#trouble = trouble;
    this.#isChecked = true;
    if (trouble === 'flows_expire' && (await this.#connect())) {
      this.#udpTryAt = this.#parts.clock.monotonic() + EXPIRY_PAUSE_MS;
      return EXPIRY_PAUSE_MS;
    }
    if (trouble === 'quic_dropped') detach(this.#measurePath());
    if (trouble === null || trouble === 'flows_expire') {
      this.#trouble = null;
      this.#expiries = trouble === null ? this.#expiries : [];
      if (this.#hasPorts) this.#replacePorts();
      this.#set('udp');
      this.#changes.notify();
      this.#failure = null;
      this.#failures = 0;
      return UNTIL_REQUESTED;
    }
    if (!isAllowed()) {
      this.#set('off');
      return UDP_RETRY_MS;
    }
    return (await this.#connect())
      ? Math.max(0, this.#udpTryAt - this.#parts.clock.monotonic())
      : backoff({ firstMs: MIN_PAUSE_MS, maxMs: MAX_PAUSE_MS }, ++this.#failures);
  }

  async #whileOnTls(): Promise<number> {
    const { borrowing, clock } = this.#parts;
    const now = clock.monotonic();
    if (borrowing.spare === null && now >= this.#spareSearchAt) detach(this.#findSpare());
    if (now >= this.#udpTryAt) {
      if (await this.#udpWorks()) {
        this.#goBack();
        return UDP_RETRY_MS;
      }
      this.#planUdp();
      this.#tryHelpers();
    }
    const nextAt = borrowing.spare === null ? Math.min(this.#udpTryAt, this.#spareSearchAt) : this.#udpTryAt;
    return Math.max(0, nextAt - clock.monotonic());
  }

  // Trials of the helpers. Only an answer of another node shows that a helper forwards datagrams.

  /** A silence is reported once, so a trial right after the last one is postponed and not dropped. */
  #onSilent(): void {
    const { clock } = this.#parts;
    const waitMs = this.#triedAt + HELPER_TRIAL_PAUSE_MS - clock.monotonic();
    if (waitMs <= 0) return this.#tryHelpers();
    this.#nextTrial ??= clock.after(waitMs, () => {
      this.#nextTrial = null;
      this.#tryHelpers();
    });
  }

  /** Tries the ports of the helper in use and of the spare, unless it happens. */
  #tryHelpers(): void {
    const { borrowing, clock, log } = this.#parts;
    if (this.#trial !== null || !borrowing.isActive) return;
    this.#triedAt = clock.monotonic();
    this.#trial = this.#compareHelpers()
      .catch((error: unknown) => log.warn({ error }, 'UDP over TLS: a trial of the helpers failed'))
      .finally(() => {
        this.#trial = null;
      });
  }

  /** Moves to the spare if the helper in use forwards nothing, or is much slower. */
  async #compareHelpers(): Promise<void> {
    const { borrowing, log } = this.#parts;
    const { session: main } = borrowing;
    if (main === null) return;
    const using = this.#roundTrip(main);
    const mine = borrowing.spare === null ? await using : null;
    if (mine?.ms === null) await this.#findSpare();
    const { spare } = borrowing;
    const [own, others] = await Promise.all([using, spare === null ? null : this.#roundTrip(spare)]);
    if (borrowing.session !== main || !borrowing.isActive || this.#end.signal.aborted) return;
    if (own.ms !== null) this.#noteForwarding();
    if (spare !== null && others !== null && others.ms === null && others.asked >= MIN_SILENT_NODES) {
      this.#shun(spare);
      if (borrowing.spare === spare) borrowing.dropSpare();
      this.#spareSearchAt = 0;
      this.#rounds?.soon();
    }
    const isBetter =
      others !== null && others.ms !== null && (own.ms === null || own.ms > FASTER * others.ms + FASTER_MS);
    if (isBetter && borrowing.spare === spare) {
      const helper = formatAddress(main.target);
      if (own.ms === null) this.#shun(main);
      log.info({ helper, ms: own.ms, spareMs: others.ms }, 'UDP over TLS: the spare is used, because it is better');
      this.#noteForwarding();
      borrowing.moveToSpare();
    } else if (own.ms === null && own.asked >= MIN_SILENT_NODES) this.#noteDead(main);
  }

  /** The helper in use forwards datagrams. */
  #noteForwarding(): void {
    if (this.#failure?.failure !== 'forwards_nothing') return;
    this.#failure = null;
    this.#set('tls');
  }

  /** The helper in use forwards nothing, and there is no better one. */
  #noteDead({ target }: HelperSession): void {
    const { log } = this.#parts;
    const text = `The helper ${formatAddress(target)} forwards nothing: no node answers through its UDP ports. Allow outgoing UDP there, or join through another node.`;
    if (this.#failure?.failure !== 'forwards_nothing') log.warn({}, text);
    this.#failure = new HelperFailure('forwards_nothing', text);
    this.#set('failed');
    this.#udpTryAt = Math.min(this.#udpTryAt, this.#parts.clock.monotonic() + MIN_UDP_RETRY_MS);
    this.#rounds?.soon();
  }

  /** How fast the first of some nodes answers through the ports of a helper. The helper itself does not count. */
  async #roundTrip(session: HelperSession): Promise<{ readonly asked: number; readonly ms: number | null }> {
    const { borrowing, records, clock } = this.#parts;
    const nodes = this.#probed(({ host }) => host !== session.host && host !== session.target.host);
    if (nodes.length === 0) return { asked: 0, ms: null };
    const port = records.openPortAt(borrowing.trialSocket(session));
    const startedAt = clock.monotonic();
    const answers = nodes.map(async (node) => {
      if ((await port.identify(node)) === null) throw new SvcError('timeout');
      return clock.monotonic() - startedAt;
    });
    using limit = awakeTimeout(clock, HELPER_TRIAL_MS, this.#end.signal);
    try {
      return { asked: nodes.length, ms: await abortable(Promise.any(answers), limit.signal) };
    } catch {
      return { asked: nodes.length, ms: null };
    } finally {
      await port.close();
    }
  }

  #shun({ target, host, hello }: HelperSession): void {
    for (const name of [target.host, host, toHex(hello.nodeKey)]) if (name !== null) this.#shunned.set(name, true);
  }

  #isShunned({ host, nodeKey }: Pick<Candidate, 'host' | 'nodeKey'>): boolean {
    const key = nodeKey ?? this.#keys.peek(host);
    return this.#shunned.get(host) === true || (key !== undefined && this.#shunned.get(toHex(key)) === true);
  }

  // UDP.

  /** Whether nodes on the Internet are known, so that an answer from the LAN proves nothing. */
  get #isOnInternet(): boolean {
    const { records, storedHelpers } = this.#parts;
    const named = records.contacts().flatMap(({ addresses }) => addresses);
    return [...storedHelpers(), ...named, ...this.#joining, ...records.places()].some(
      ({ host }) => ipScope(host) === IP_SCOPE.public,
    );
  }

  get #isAnswered(): boolean {
    const { records } = this.#parts;
    return (this.#isOnInternet ? records.lastPublicAnswerAt : records.lastAnswerAt) >= this.#checkedFrom;
  }

  /** The reason not to use UDP; null if nothing does, or if there is no node that could tell. */
  async #troubleOfUdp(): Promise<UdpTrouble | null> {
    if (this.#candidates().length === 0) return null;
    if (this.#parts.lacksListenAddress()) return 'no_listen_address';
    if (this.#parts.isIpv6Only()) return 'no_ipv4';
    if (!this.#isAnswered) return 'udp_silent';
    return (await this.#quicWorks()) ? null : 'quic_dropped';
  }

  /** Some middleboxes permanently drop a flow some time after its first packet. New ports then only help for that time. */
  #troubleOfFlows(): UdpTrouble | null {
    const now = this.#parts.clock.monotonic();
    if (this.#wasSilent) this.#expiries = [...this.#expiries.filter((at) => now - at < EXPIRY_WINDOW_MS), now];
    this.#wasSilent = false;
    return this.#expiries.length > 1 && this.#parts.isAllowed() ? 'flows_expire' : null;
  }

  /** True if there is a new connection, or one of two handshakes succeeds, or there is no node to try. */
  async #quicWorks(): Promise<boolean> {
    const { pool, records } = this.#parts;
    const isOnInternet = this.#isOnInternet;
    // An older connection may be from before a change of network, and dead.
    const counts = ({ path, bytesReceived, openedAt }: ReturnType<PeerTable['connections']>[number]): boolean =>
      bytesReceived > 0 &&
      openedAt >= this.#checkedFrom &&
      path.mayBeWithdrawn !== true &&
      (isOnInternet ? path.kind !== 'lan' : true);
    return pool.connections().some(counts) || (await this.#dialsQuic(records)) !== false;
  }

  /**
   * Tries two QUIC handshakes over UDP.
   * @param by finds out the QUIC addresses of nodes
   * @returns null if no node states one
   */
  async #dialsQuic(by: Identifier): Promise<boolean | null> {
    const { endpoint } = this.#parts;
    const found = await Promise.all(this.#probed().map((node) => this.#identify(node, by)));
    const known = found.filter((node) => node !== null);
    const [first] = known;
    if (first === undefined) return null;
    const tried = [first, known[1] ?? first].slice(0, MAX_HANDSHAKES);
    const dials = tried.map(async ({ address, nodeKey }) => {
      const connection = await endpoint.dial(address, nodeKey, {
        isFromOwnPort: true,
        timeoutMs: UDP_WAIT_MS,
        signal: this.#end.signal,
      });
      connection.close();
    });
    return await Promise.any(dials).then(
      () => true,
      () => false,
    );
  }

  /** Finds out whether the path only carries short packets. TLS does not wait for that. */
  async #measurePath(): Promise<void> {
    if (await this.#parts.records.carriesQuic(this.#probed())) return;
    if (this.#trouble !== 'quic_dropped' || this.#end.signal.aborted) return;
    this.#trouble = 'path_mtu';
    this.#parts.log.warn(
      {},
      'UDP packets of 1,200 bytes, which QUIC needs, do not pass. Increase the MTU to 1,280 bytes.',
    );
  }

  async #identify(node: Address, by: Identifier): Promise<NodeAt | null> {
    using limit = awakeTimeout(this.#parts.clock, UDP_WAIT_MS, this.#end.signal);
    return await abortable(by.identify(node), limit.signal).catch(() => null);
  }

  /** Nodes to ask: of the routing table, or contacts. */
  #probed(mayAsk: (node: Address) => boolean = () => true): Address[] {
    const { records, isOwnHost } = this.#parts;
    const isOnInternet = this.#isOnInternet;
    const fits = (node: Address): boolean => mayAsk(node) && (!isOnInternet || ipScope(node.host) === IP_SCOPE.public);
    const nodes: readonly Address[] = [...records.peers(), ...records.places(), ...this.#named].filter(fits);
    return apartFirst(nodes, isOwnHost).slice(0, MAX_PROBED);
  }

  #planUdp(): void {
    const pause = { firstMs: MIN_UDP_RETRY_MS, maxMs: UDP_RETRY_MS, factor: UDP_RETRY_FACTOR };
    this.#udpTryAt = this.#parts.clock.monotonic() + backoff(pause, ++this.#udpFailures);
  }

  /** Tries records and QUIC over UDP while TLS is used. Nothing of it needs TLS, which may be dead. */
  async #udpWorks(): Promise<boolean> {
    const { records, lacksListenAddress } = this.#parts;
    if (lacksListenAddress()) return false;
    const port = records.openSystemPort();
    try {
      // TLS is not left without a proof.
      return (await this.#dialsQuic(port)) === true;
    } finally {
      await port.close();
    }
  }

  /**
   * Asks nodes over UDP while no TLS connection exists. An answer ends the search for a helper.
   * @throws SvcError as `OpenPort`
   */
  async #watchUdp(search: AbortController): Promise<void> {
    if (this.#parts.lacksListenAddress()) return;
    const port = this.#parts.records.openSystemPort();
    const answers = this.#probed().map(async (node) => {
      if ((await this.#identify(node, port)) === null) throw new SvcError('timeout');
    });
    const isAnswered = await Promise.any(answers).then(
      () => true,
      () => false,
    );
    await port.close();
    if (!isAnswered || this.#parts.borrowing.isActive || this.#end.signal.aborted) return;
    search.abort(new SvcError('cancelled'));
    this.#rounds?.soon();
  }

  /** Uses UDP again. TLS ends when open streams have moved. */
  #goBack(): void {
    const { borrowing, log, clock } = this.#parts;
    log.info({}, 'UDP works again, and is used instead of TLS');
    borrowing.leave();
    this.#set('udp');
    this.#failure = null;
    this.#checkedFrom = clock.now();
    // If flows still expire, the next silence shows it.
    this.#expiries = this.#trouble === 'flows_expire' ? [clock.monotonic()] : [];
    this.#replacePorts();
  }

  /** Moves the connections over borrowed ports to UDP, then closes the ports. */
  #replacePorts(): void {
    const { borrowing, pool, onSwitch, clock } = this.#parts;
    this.#hasPorts = false;
    onSwitch();
    const until = clock.monotonic() + DRAIN_MS;
    const look = (): void => {
      if (borrowing.isActive || this.#end.signal.aborted) return;
      if (pool.usesWithdrawable && clock.monotonic() < until) clock.after(DRAIN_LOOK_MS, look);
      // Streams that have not moved end in order.
      else detach(pool.onPathsWithdrawn(true).then(() => (borrowing.isActive ? undefined : borrowing.disconnect())));
    };
    detach(pool.onPathsWithdrawn(borrowing.session === null).then(look));
  }

  /** The last helper is lost. Until another one is found, datagrams use UDP, which may work again. */
  #onLost(failure: HelperFailure): void {
    const { borrowing, clock } = this.#parts;
    borrowing.leave();
    this.#failure = failure;
    if (this.#trouble !== 'flows_expire') this.#checkedFrom = clock.now();
    this.#rounds?.soon();
  }

  // TLS.

  /** Stored helpers, then contacts, then other known nodes. Names only if they are contacts. */
  #candidates(): Candidate[] {
    const { storedHelpers, records, isOwnHost } = this.#parts;
    const helpers = storedHelpers().map(({ at, ...rest }) => ({ ...rest, nodeKey: at.nodeKey }));
    const contacts = [...this.#joining, ...records.contacts().map(({ contact }) => contact)];
    const seen = new Set<string>();
    return [...helpers, ...contacts, ...records.places(), ...records.peers(), ...this.#named].flatMap(
      (one: NodeContact & Partial<StoredHelper>) => {
        const { host, port, nodeKey, tlsPorts = [] } = one;
        const key = formatAddress({ host, port });
        if (seen.has(key) || isOwnHost(host)) return [];
        seen.add(key);
        return [{ host, port, nodeKey, ports: tlsPorts.length > 0 ? tlsPorts : [...new Set([HTTPS_PORT, port])] }];
      },
    );
  }

  /** TCP addresses to try, in order: two networks first, and port 443 first. */
  #targets(except: HelperSession | null): HelperTarget[] {
    const { isOwnHost } = this.#parts;
    const all = this.#candidates();
    const trusted = all.filter((candidate) => !this.#isShunned(candidate));
    // One that forwards nothing may be better than none, but not as a spare.
    const others = (except === null && trusted.length === 0 ? all : trusted).filter(
      ({ host, nodeKey }) =>
        except === null ||
        (host !== except.target.host &&
          host !== except.host &&
          !equalBytes(nodeKey ?? this.#keys.peek(host) ?? NO_KEY, except.hello.nodeKey)),
    );
    const avoided = except?.host === null || except === null ? [] : [{ host: except.host, port: 0 }];
    const ordered = apartFirst([...avoided, ...others], isOwnHost).filter((one): one is Candidate => 'ports' in one);
    const [leading, later] = [ordered.slice(0, 2), ordered.slice(2)];
    const ofRound = (all: readonly Candidate[]): HelperTarget[] =>
      [0, 1, 2].flatMap((round) =>
        all.flatMap(({ host, ports, nodeKey }) => {
          const port = ports[round];
          return port === undefined ? [] : [{ host, port, ...(nodeKey === undefined ? {} : { nodeKey }) }];
        }),
      );
    return [...ofRound(leading), ...ofRound(later)].slice(0, MAX_TARGETS);
  }

  /** The first helper that answers. @throws HelperFailure of the most telling failure, or the reason of a signal */
  async #openAny(targets: readonly HelperTarget[], ended: AbortSignal | null): Promise<HelperSession> {
    const { borrowing, clock, log } = this.#parts;
    const failures: HelperFailure[] = [];
    const runners = targets.map((target, i) => ({
      afterMs: i * STAGGER_MS,
      run: async (signal: AbortSignal) => {
        try {
          const session = await borrowing.open(target, signal);
          this.#keys.set(target.host, session.hello.nodeKey);
          return session;
        } catch (error) {
          if (error instanceof HelperFailure) failures.push(error);
          log.debug({ helper: formatAddress(target), error }, 'UDP over TLS: a node does not lend ports');
          throw error;
        }
      },
    }));
    const signal = ended === null ? this.#end.signal : AbortSignal.any([this.#end.signal, ended]);
    try {
      return await race(runners, { hurry: 'when one has failed', drop: (late) => late.close() }, { clock, signal });
    } catch (error) {
      throw mostTelling(failures) ?? error;
    }
  }

  /** True if borrowed ports are used now. */
  async #connect(): Promise<boolean> {
    const { borrowing, log, records, onSwitch, pool } = this.#parts;
    const targets = this.#targets(null);
    if (targets.length === 0) return false;
    if (this.#state !== 'failed') this.#set('connecting');
    let session: HelperSession;
    const search = new AbortController();
    if (!borrowing.isActive && this.#trouble === 'udp_silent')
      this.#watchUdp(search).catch((error: unknown) => log.debug({ error }, 'UDP cannot be tried beside TLS'));
    try {
      session = await this.#openAny(targets, search.signal);
    } catch (error) {
      if (this.#end.signal.aborted || search.signal.aborted) return false;
      const isNews =
        !(error instanceof HelperFailure) || error.failure !== this.#failure?.failure || this.#state !== 'failed';
      this.#failure =
        error instanceof HelperFailure ? error : new HelperFailure('lost', 'No helper can be reached over TLS.', error);
      if (isNews)
        log.warn(
          { cause: this.#failure.failure, trouble: this.#trouble },
          `UDP does not work, and TLS neither: ${this.#failure.message}`,
        );
      // Without the Internet, the LAN works.
      this.#set(records.lastAnswerAt >= this.#checkedFrom && this.#trouble === 'udp_silent' ? 'udp' : 'failed');
      return false;
    }
    this.#failure = null;
    this.#failures = 0;
    if (!borrowing.isActive && this.#trouble === 'udp_silent' && this.#isAnswered) {
      session.close();
      this.#rounds?.soon();
      return false;
    }
    borrowing.use(session);
    this.#hasPorts = true;
    this.#set('tls');
    this.#planUdp();
    this.#spareSearchAt = 0;
    const { target, host, proxy, hello, isInspected } = session;
    const names = { helper: formatAddress(target), proxy, node: toHex(hello.nodeKey), isInspected };
    log.info({ ...names, trouble: this.#trouble }, 'UDP does not work: this node uses UDP over TLS');
    const contact = this.#candidates().find((one) => one.host === target.host);
    if (hello.isResumed) return true;
    // Its name may not resolve here.
    if (host !== null && contact !== undefined && isIP(contact.host) === 0)
      records.addNode({ host, port: contact.port });
    onSwitch();
    detach(pool.onPathsWithdrawn(true));
    detach(this.#findSpare());
    return true;
  }

  async #findSpare(): Promise<void> {
    const { borrowing, clock } = this.#parts;
    const main = borrowing.session;
    this.#lacksTargets = this.#targets(main).length === 0;
    const firstMs = this.#lacksTargets ? MIN_UDP_RETRY_MS : MIN_SPARE_PAUSE_MS;
    this.#spareSearchAt = clock.monotonic() + backoff({ firstMs, maxMs: MAX_SPARE_PAUSE_MS }, ++this.#spareFailures);
    if (main === null) return;
    try {
      if (this.#lacksTargets) this.#named = await this.#neighborsOf(main);
      const targets = this.#targets(main);
      if (targets.length === 0) return;
      const session = await this.#openAny(targets, null);
      const { asked, ms } = await this.#roundTrip(session);
      const isSame = equalBytes(session.hello.nodeKey, borrowing.session?.hello.nodeKey ?? new Uint8Array());
      if (!borrowing.isActive || isSame || this.#end.signal.aborted) return session.close();
      if (asked >= MIN_SILENT_NODES && ms === null) {
        this.#shun(session);
        session.close();
        this.#spareSearchAt = clock.monotonic();
        this.#rounds?.soon();
        return;
      }
      this.#spareFailures = 0;
      borrowing.keepSpare(session);
      this.#tryHelpers();
    } catch {
      // It is searched again later.
    }
  }

  /** Nodes that a helper knows. */
  async #neighborsOf({ target, host }: HelperSession): Promise<readonly Address[]> {
    const contact = this.#candidates().find((one) => one.host === target.host);
    if (contact === undefined || host === null) return [];
    const port = this.#parts.records.openPort(4);
    try {
      const found = await port.neighbors({ host, port: contact.port });
      return found.filter((node) => ipScope(node.host) >= ipScope(host)).slice(0, MAX_TARGETS);
    } finally {
      await port.close();
    }
  }

  #onMoved(): void {
    const { pool, onSwitch } = this.#parts;
    onSwitch();
    detach(pool.onPathsWithdrawn(true));
    this.#spareSearchAt = 0;
    this.#rounds?.soon();
  }
}

/** Failures from the most to the least specific. */
const TELLING: readonly HelperFailureCode[] = [
  'proxy_invalid',
  'proxy_not_used',
  'proxy_command_failed',
  'proxy_wants_password',
  'portal',
  'certificate',
  'certificate_refused',
  'other_network',
  'other_node',
  'helper_full',
  'rate_limited',
  'upgrade_stripped',
  'proxy_refuses',
  'proxy_unreachable',
  'proxy_silent',
  'not_a_helper',
  'tls_failed',
  'proxy_cannot_connect',
  'name_unresolved',
  'tcp_refused',
  'tcp_silent',
];

function mostTelling(failures: readonly HelperFailure[]): HelperFailure | undefined {
  return failures.toSorted((a, b) => TELLING.indexOf(a.failure) - TELLING.indexOf(b.failure))[0];
}

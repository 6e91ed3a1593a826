/** Explains why a request to the network failed: no other node is reachable, or the clock is wrong. */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { type Address, isLoopbackHost } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SingleFlight } from '../../foundation/concurrency.ts';
import { pluralize } from '../../foundation/display-text.ts';
import { cutOffText, type Exit, LISTEN_ADDRESS_REMEDY } from '../../foundation/domain/exit.ts';
import { CLOCK_SKEW_S } from '../../foundation/domain/time.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import type { RecordDht } from '../records/record-dht.ts';
import type { ListenHosts } from './listen-hosts.ts';

/** Timeout of the TCP connection that shows whether only UDP is blocked, milliseconds. */
const TCP_TIMEOUT_MS = 1_000;
/** How long a detected cause is cached, milliseconds. */
const CACHE_MS = 5_000;
/** A TCP port that most public hosts answer. */
const TCP_PORT = 443;

/** Why no other node answers. */
type OutageCause =
  | 'no_listen_address'
  | 'no_address'
  | 'no_route'
  | 'dns'
  | 'other_node'
  | 'proxy_not_used'
  | 'udp_blocked'
  | 'unknown';

/** Causes on this machine, which TLS does not help against. */
const LOCAL: ReadonlySet<OutageCause> = new Set(['no_listen_address', 'no_address', 'no_route', 'dns', 'other_node']);

const CAUSE: Readonly<Record<OutageCause, string>> = {
  no_listen_address: `This machine does not have its listen address. ${LISTEN_ADDRESS_REMEDY}`,
  no_address: 'This machine has no network address. Connect it to a network.',
  no_route: 'This machine has no route to other nodes. Check its network connection.',
  dns: 'The names of the configured nodes do not resolve. Check the DNS of this machine.',
  other_node:
    'Another node answers at the address of each contact, without the key of the contact. Ask the owner for a new invitation ("svc invite").',
  proxy_not_used:
    'HTTP_PROXY is for http:// only, and no other way leads out. Set HTTPS_PROXY, or "proxy", to the same value.',
  udp_blocked: 'TCP works, but UDP is blocked. Allow outgoing UDP in the firewall, or log in to the network.',
  unknown: 'The other nodes may be down, or a firewall may drop UDP. Run "svc doctor" for details.',
};

export interface ClockOffset {
  /** How far the median clock of other nodes is ahead of this clock, milliseconds. */
  readonly offsetMs: number;
  /** How many nodes reported their time. */
  readonly peers: number;
}

interface OutageDiagnosisDependencies {
  readonly clock: Clock;
  readonly records: Pick<RecordDht, 'clocks' | 'lastAnswerAt' | 'contacts' | 'peers' | 'places'>;
  readonly listenHosts: Pick<ListenHosts, 'missing'>;
  /** IP addresses of this machine. */
  readonly interfaces: () => readonly string[];
  /** How datagrams leave this network. */
  readonly exit: () => Exit;
  /** True if the user has set an HTTP proxy. Routes and DNS are not needed then. */
  readonly hasProxy: () => boolean;
  /** True if only a proxy for http:// is set, which svcd does not use. */
  readonly hasPlainProxyOnly: () => boolean;
}

export class OutageDiagnosis {
  readonly #deps: OutageDiagnosisDependencies;
  readonly #diagnoses = new SingleFlight<OutageCause>();
  #cached: { readonly cause: OutageCause; readonly at: number } | null = null;

  constructor(dependencies: OutageDiagnosisDependencies) {
    this.#deps = dependencies;
  }

  /** Compares this clock with the clocks of nodes that answered recently; null if none reported its time. */
  clockOffset(): ClockOffset | null {
    const { offsetMs, peers } = this.#deps.records.clocks();
    return offsetMs === null ? null : { offsetMs, peers };
  }

  /** @throws SvcError `clock_wrong` if this clock differs from the clocks of other nodes by more than the limit */
  checkClock(limitMs: number): void {
    const offset = this.clockOffset();
    if (offset !== null && Math.abs(offset.offsetMs) > limitMs) throw clockWrong(offset);
  }

  /**
   * Finds the cause of a request that no node answered. Answers from the LAN do not count while other networks cannot
   * be reached.
   * @param since when the request started, Unix milliseconds
   * @returns `network_unavailable` or `clock_wrong`; null if other nodes have answered, or if no other node is known
   */
  async explainFailure(since: number): Promise<SvcError | null> {
    const { records, exit } = this.#deps;
    const cutOff = exit().trouble === 'udp_silent' ? cutOffText(exit()) : null;
    const isAnswered = records.lastAnswerAt >= since;
    if (isAnswered && cutOff === null) return this.#clockTrouble();
    const known = records.peers().length + records.contacts().length + records.places().length;
    if (known === 0) return null;
    const where = isAnswered ? 'any node in other networks' : 'any other node';
    const cause = isAnswered ? 'unknown' : await this.#cause();
    return cutOff === null || LOCAL.has(cause)
      ? unavailable(`This node cannot reach ${where}. ${CAUSE[cause]}`, cause)
      : unavailable(`This node cannot reach ${where}. ${cutOff}`, causeOf(exit()));
  }

  /**
   * Finds the cause of a connection that failed, as `explainFailure`. The record network may work without QUIC.
   * @param since when the attempt started, Unix milliseconds
   */
  async explainDial(since: number): Promise<SvcError | null> {
    const exit = this.#deps.exit();
    const cutOff = exit.trouble === 'udp_silent' ? null : cutOffText(exit);
    if (cutOff !== null) return unavailable(`This node cannot connect to other nodes. ${cutOff}`, causeOf(exit));
    return await this.explainFailure(since);
  }

  /** Why nodes in other networks cannot reach this one; null if nothing is known that prevents it. */
  cutOff(): string | null {
    const cutOff = cutOffText(this.#deps.exit());
    return cutOff === null ? null : `Nodes in other networks cannot reach this one. ${cutOff}`;
  }

  #clockTrouble(): SvcError | null {
    const offset = this.clockOffset();
    return offset !== null && Math.abs(offset.offsetMs) > CLOCK_SKEW_S * 1000 ? clockWrong(offset) : null;
  }

  async #cause(): Promise<OutageCause> {
    const now = this.#deps.clock.monotonic();
    if (this.#cached !== null && now - this.#cached.at < CACHE_MS) return this.#cached.cause;
    const cause = await this.#diagnoses.run('', () => this.#diagnose());
    this.#cached = { cause, at: now };
    return cause;
  }

  async #diagnose(): Promise<OutageCause> {
    const { records, interfaces, hasProxy, hasPlainProxyOnly, listenHosts } = this.#deps;
    if (listenHosts.missing().length > 0) return 'no_listen_address';
    const contacts = records.contacts();
    const places = [...records.peers(), ...contacts.flatMap(({ addresses }) => addresses), ...records.places()];
    const far = places.filter(({ host }) => !isLoopbackHost(host));
    const needsDns = !hasProxy() && places.length === 0;
    const states = contacts.map(({ state }) => state);
    if (states.includes('other_key') && !states.includes('met')) return 'other_node';
    if (needsDns && states.includes('unresolved')) return hasPlainProxyOnly() ? 'proxy_not_used' : 'dns';
    const [place] = far;
    if (place === undefined) return 'unknown';
    if (interfaces().every((host) => isLoopbackHost(host))) return 'no_address';
    if (!hasProxy() && !(await hasRoute(place))) return hasPlainProxyOnly() ? 'proxy_not_used' : 'no_route';
    const answers = await Promise.all([place.port, TCP_PORT].map((port) => answersTcp({ host: place.host, port })));
    if (answers.includes(true)) return 'udp_blocked';
    return hasPlainProxyOnly() ? 'proxy_not_used' : 'unknown';
  }
}

function unavailable(message: string, cause: string): SvcError {
  return new SvcError('network_unavailable', { message, details: { cause } });
}

function causeOf({ error, trouble }: Exit): string {
  return error?.code ?? trouble ?? 'unknown';
}

export function clockWrong({ offsetMs, peers }: ClockOffset): SvcError {
  const seconds = Math.round(Math.abs(offsetMs) / 1000);
  return new SvcError('clock_wrong', {
    message: `The clock of this machine is ${seconds} s ${offsetMs > 0 ? 'behind' : 'ahead of'} ${pluralize(peers, 'other node')}, so they reject its signatures. Set the clock and enable NTP.`,
    details: { offset_s: offsetMs / 1000, peers },
  });
}

/** Whether the routing table has a route to an address. Sends nothing. */
async function hasRoute({ host, port }: Address): Promise<boolean> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  try {
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject);
      socket.once('connect', resolve);
      socket.connect(port, host);
    });
    return true;
  } catch {
    return false;
  } finally {
    socket.close();
  }
}

/** Whether a host answers TCP at a port; a refused connection counts too. */
function answersTcp({ host, port }: Address): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: TCP_TIMEOUT_MS });
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.on('error', (error) => end(codeOf(error) === 'ECONNREFUSED'));
    socket.once('connect', () => end(true));
    socket.once('timeout', () => end(false));
  });
}

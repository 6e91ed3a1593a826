/** Why a request to the network found nothing: this node reaches no other node, or its clock is wrong. */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { type Address, isLoopbackHost } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SingleFlight } from '../../foundation/concurrency.ts';
import { pluralize } from '../../foundation/display-text.ts';
import { CLOCK_SKEW_S } from '../../foundation/domain/time.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import type { RecordDht } from '../records/record-dht.ts';

/** Time for the TCP connection that shows whether only UDP is blocked, milliseconds. */
const TCP_TIMEOUT_MS = 1_000;
/** For how long a cause that was found is told again without another look, milliseconds. */
const REMEMBER_MS = 5_000;
/** Ports of which one mostly answers TCP on a public host. */
const TCP_PORT = 443;
const PROXY_VARIABLES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'] as const;

/** Why no other node answers. */
type OutageCause = 'no_address' | 'no_route' | 'dns' | 'udp_blocked' | 'proxy' | 'unknown';

const CAUSE: Readonly<Record<OutageCause, string>> = {
  no_address: 'This machine has no network address. Connect it to a network.',
  no_route: 'This machine has no route to them. Check its network connection.',
  dns: 'Their names have no address. Check the DNS of this machine.',
  udp_blocked:
    'They can be reached by TCP and not by UDP. Allow outgoing UDP in the firewall, or log in to the network.',
  proxy: 'A proxy is set, and svcd needs UDP, which proxies do not carry. Allow outgoing UDP.',
  unknown: 'They may be down, or a firewall drops UDP. "svc doctor" says more.',
};

export interface ClockOffset {
  /** By how many milliseconds the median of the clocks of other nodes is ahead of ours. */
  readonly offsetMs: number;
  /** How many nodes have said the time. */
  readonly peers: number;
}

interface NetworkTroubleDependencies {
  readonly clock: Clock;
  readonly records: Pick<RecordDht, 'clocks' | 'lastAnswerAt' | 'contacts' | 'peers' | 'places'>;
  /** IP addresses of this machine. */
  readonly interfaces: () => readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

export class NetworkTrouble {
  readonly #deps: NetworkTroubleDependencies;
  readonly #looks = new SingleFlight<OutageCause>();
  #found: { readonly cause: OutageCause; readonly at: number } | null = null;

  constructor(dependencies: NetworkTroubleDependencies) {
    this.#deps = dependencies;
  }

  /** How the clock compares with those of the nodes that answered lately; null if none has said the time. */
  clockOffset(): ClockOffset | null {
    const { offsetMs, peers } = this.#deps.records.clocks();
    return offsetMs === null ? null : { offsetMs, peers };
  }

  /** @throws SvcError `clock_wrong` if the clock is further off than that from the clocks of other nodes */
  checkClock(limitMs: number): void {
    const offset = this.clockOffset();
    if (offset !== null && Math.abs(offset.offsetMs) > limitMs) throw clockWrong(offset);
  }

  /**
   * The cause of a request that found nothing, or that no node took.
   * @param since when it began, Unix milliseconds
   * @returns `network_unavailable` or `clock_wrong`; null if other nodes have answered, or if no other node is known
   */
  async why(since: number): Promise<SvcError | null> {
    const { records } = this.#deps;
    if (records.lastAnswerAt >= since) {
      const offset = this.clockOffset();
      return offset !== null && Math.abs(offset.offsetMs) > CLOCK_SKEW_S * 1000 ? clockWrong(offset) : null;
    }
    const known = records.peers().length + records.contacts().length + records.places().length;
    if (known === 0) return null;
    const cause = await this.#cause();
    return new SvcError('network_unavailable', {
      message: `This node reaches no other node. ${CAUSE[cause]}`,
      details: { cause },
    });
  }

  async #cause(): Promise<OutageCause> {
    const now = this.#deps.clock.now();
    if (this.#found !== null && now >= this.#found.at && now - this.#found.at < REMEMBER_MS) return this.#found.cause;
    const cause = await this.#looks.run('', () => this.#look());
    this.#found = { cause, at: now };
    return cause;
  }

  async #look(): Promise<OutageCause> {
    const { records, interfaces, env } = this.#deps;
    const contacts = records.contacts();
    const places = [...records.peers(), ...contacts.flatMap(({ addresses }) => addresses), ...records.places()];
    const far = places.filter(({ host }) => !isLoopbackHost(host));
    if (places.length === 0 && contacts.some(({ state }) => state === 'unresolved')) return 'dns';
    const [place] = far;
    if (place === undefined) return 'unknown';
    if (interfaces().every((host) => isLoopbackHost(host))) return 'no_address';
    if (!(await hasRoute(place))) return 'no_route';
    const answers = await Promise.all([place.port, TCP_PORT].map((port) => answersTcp({ host: place.host, port })));
    if (answers.includes(true)) return 'udp_blocked';
    return PROXY_VARIABLES.some((name) => (env[name] ?? '') !== '') ? 'proxy' : 'unknown';
  }
}

export function clockWrong({ offsetMs, peers }: ClockOffset): SvcError {
  const seconds = Math.round(Math.abs(offsetMs) / 1000);
  return new SvcError('clock_wrong', {
    message: `The clock of this machine is ${seconds} s ${offsetMs > 0 ? 'behind' : 'ahead of'} ${pluralize(peers, 'other node')}: they refuse what it signs. Set the clock, and let NTP keep it.`,
    details: { offset_s: offsetMs / 1000, peers },
  });
}

/** Whether the system knows a way to an address; nothing is sent. */
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

/** Whether a host answers TCP at a port, be it with a refusal. */
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

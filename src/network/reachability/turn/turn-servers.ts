/** The TURN servers of the configuration: the first that has room carries. */
import type { Clock } from '../../../foundation/clock.ts';
import type { TurnServer } from '../../../foundation/config/schema.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { Log } from '../../../foundation/log.ts';
import { type CarrierOptions, placeOf, TurnCarrier } from './carrier.ts';

/** Ways by TURN servers that stand at a time. */
const MAX_CARRIERS = 64;

interface TurnServersDependencies {
  readonly clock: Clock;
  readonly log: Log;
}

/** Whether one of the servers of a configuration can be used. */
export function isUsable(servers: readonly TurnServer[]): boolean {
  return servers.some((server) => placeOf(server) !== null);
}

/** What those do with them who bring two nodes together. */
export type TurnUse = Pick<TurnServers, 'some' | 'open' | 'close'>;

export class TurnServers {
  readonly #servers: readonly TurnServer[];
  readonly #deps: TurnServersDependencies;
  readonly #carriers = new Set<TurnCarrier>();
  /** Ways that are being opened. */
  #opening = 0;
  #isStopped = false;

  constructor(servers: readonly TurnServer[], dependencies: TurnServersDependencies) {
    this.#servers = servers;
    this.#deps = dependencies;
  }

  /** Whether there are any that are spoken with as this client does. */
  get some(): boolean {
    return isUsable(this.#servers);
  }

  /**
   * Has the first server that does so carry.
   * @throws SvcError `connect_failed`, `timeout` as the last of them; `rate_limited`
   */
  async open(options: CarrierOptions): Promise<TurnCarrier> {
    if (this.#carriers.size + this.#opening >= MAX_CARRIERS) throw new SvcError('rate_limited');
    this.#opening++;
    try {
      const carrier = await this.#first(options);
      this.#carriers.add(carrier);
      if (this.#isStopped) this.close(carrier);
      return carrier;
    } finally {
      this.#opening--;
    }
  }

  close(carrier: TurnCarrier): void {
    this.#carriers.delete(carrier);
    carrier.close();
  }

  stop(): void {
    this.#isStopped = true;
    for (const carrier of this.#carriers) this.close(carrier);
  }

  async #first(options: CarrierOptions): Promise<TurnCarrier> {
    let last: unknown = new SvcError('connect_failed');
    for (const server of this.#servers) {
      try {
        return await TurnCarrier.open(server, options, this.#deps);
      } catch (error) {
        this.#deps.log.info({ error, url: server.url }, 'a TURN server does not carry');
        last = error;
      }
    }
    throw last;
  }
}

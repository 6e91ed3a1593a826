/**
 * Knows whether the bound services answer, without anyone waiting for it: one round after another
 * over the distinct addresses, a few connections at a time.
 */
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { addressesOf, parseServiceAddress } from '../../foundation/service-address.ts';
import { SingleFlight } from '../../foundation/single-flight.ts';
import type { TcpCheck } from './types.ts';

/** Milliseconds between the end of a round and the next one. */
const ROUND_PAUSE_MS = 30_000;
/** Connections at once. */
const CONCURRENCY = 8;
/** Milliseconds that a service has to accept a connection. */
export const TCP_CHECK_TIMEOUT_MS = 2000;
/** Milliseconds for which an answer is as good as a new one. */
const FRESH_MS = 5000;

interface MonitorDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** The services to look at in the next round. */
  services(): readonly string[];
  /** Connects to a bound service and hangs up; never rejects. */
  checkTcp(address: Address, timeoutMs: number): Promise<TcpCheck>;
}

/** Whether a service answers is another thing than it was. */
export interface ServiceState {
  readonly service: string;
  readonly ok: boolean;
  /** Why not; empty where it does. */
  readonly error: string;
}

export class ServiceMonitor {
  /** Told of each change; of a service that was never looked at, where it does not answer. */
  readonly changed: Listeners<[ServiceState]> = new Listeners();
  readonly #deps: MonitorDependencies;
  readonly #known = new Map<string, { readonly check: TcpCheck; readonly at: number }>();
  readonly #checks = new SingleFlight<TcpCheck>();
  #rounds: RepeatingTask | null = null;

  constructor(dependencies: MonitorDependencies) {
    this.#deps = dependencies;
  }

  start(): void {
    const { clock, log } = this.#deps;
    const onError = (error: unknown): void => log.warn({ error }, 'bound services could not be looked at');
    this.#rounds = every(clock, { firstMs: 0, periodMs: ROUND_PAUSE_MS, onError }, () => this.#round());
  }

  /** Returns at once; a check that is under way ends within its time-out and changes nothing. */
  stop(): void {
    this.#rounds?.stop();
    this.#rounds = null;
  }

  /** What was seen last; null where nothing was yet. */
  last(service: string): boolean | null {
    return this.#known.get(service)?.check.ok ?? null;
  }

  /** The state of a service, looked up unless it is known from a moment ago. */
  async state(service: string): Promise<boolean> {
    const known = this.#known.get(service);
    if (known !== undefined && this.#deps.clock.now() - known.at < FRESH_MS) return known.check.ok;
    return (await this.check(service)).ok;
  }

  /** Looks now. Those who ask for the same service at once share one connection. */
  async check(service: string): Promise<TcpCheck> {
    return this.#checks.run(service, async () => {
      const check = await this.#look(service);
      const before = this.#known.get(service)?.check.ok ?? true;
      this.#known.set(service, { check, at: this.#deps.clock.now() });
      if (check.ok !== before) this.changed.notify({ service, ok: check.ok, error: check.error ?? '' });
      return check;
    });
  }

  /** Connects to each of its addresses: the first that does not answer is what is said of it. */
  async #look(service: string): Promise<TcpCheck> {
    const [first, second] = addressesOf(parseServiceAddress(service)).map((place) =>
      this.#deps.checkTcp(place, TCP_CHECK_TIMEOUT_MS),
    );
    const check = await first;
    if (check === undefined) throw new Error('a service has an address');
    return check.ok && second !== undefined ? second : check;
  }

  async #round(): Promise<void> {
    const services = this.#deps.services();
    const wanted = new Set(services);
    for (const service of this.#known.keys()) if (!wanted.has(service)) this.#known.delete(service);
    const queue = services.values();
    const worker = async (): Promise<void> => {
      for (const service of queue) {
        if (this.#rounds === null) return;
        await this.check(service);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  }
}

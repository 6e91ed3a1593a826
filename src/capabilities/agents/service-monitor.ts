/**
 * Checks in the background whether the bound services answer: repeated rounds over the distinct addresses, a few
 * connections at a time.
 */
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SingleFlight } from '../../foundation/concurrency.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { addressesOf, parseServiceAddress } from '../../foundation/service-address.ts';
import type { TcpCheck } from './types.ts';

/** Milliseconds from the end of a round to the next one. */
const ROUND_INTERVAL_MS = 30_000;
/** Concurrent checks. */
const CONCURRENCY = 8;
/** Timeout of a check, in milliseconds. */
export const TCP_CHECK_TIMEOUT_MS = 2000;
/** Milliseconds for which a result is reused. */
const FRESH_MS = 5000;

/** A service started or stopped answering. */
export interface ServiceState {
  readonly service: string;
  readonly ok: boolean;
  /** The reason of the failure. Empty if the service answers. */
  readonly error: string;
}

export class ServiceMonitor {
  /** Notified of each change, and of a first check that fails. */
  readonly changed: Listeners<[ServiceState]> = new Listeners();
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #services: () => readonly string[];
  readonly #checkTcp: (address: Address, timeoutMs: number) => Promise<TcpCheck>;
  readonly #known = new Map<string, { readonly check: TcpCheck; readonly at: number }>();
  readonly #checks = new SingleFlight<TcpCheck>();
  #rounds: RepeatingTask | null = null;

  /**
   * @param services the services to check in the next round
   * @param checkTcp connects to a bound service and closes the connection. Never rejects
   */
  constructor(
    clock: Clock,
    log: Log,
    services: () => readonly string[],
    checkTcp: (address: Address, timeoutMs: number) => Promise<TcpCheck>,
  ) {
    this.#clock = clock;
    this.#log = log;
    this.#services = services;
    this.#checkTcp = checkTcp;
  }

  start(): void {
    const onError = (error: unknown): void => this.#log.warn({ error }, 'failed to check the bound services');
    this.#rounds = every(this.#clock, { firstMs: 0, periodMs: ROUND_INTERVAL_MS, onError }, () => this.#round());
  }

  /** Returns immediately. A running check ends within its timeout and changes nothing. */
  stop(): void {
    this.#rounds?.stop();
    this.#rounds = null;
  }

  /** The latest result. Null if the service was not checked yet. */
  last(service: string): boolean | null {
    return this.#known.get(service)?.check.ok ?? null;
  }

  /** Why the latest check failed. Undefined if it did not, or if there was none. */
  lastError(service: string): string | undefined {
    return this.#known.get(service)?.check.error;
  }

  /** Whether a service answers: a recent result, or a new check. */
  async state(service: string): Promise<boolean> {
    const known = this.#known.get(service);
    if (known !== undefined && this.#clock.monotonic() - known.at < FRESH_MS) return known.check.ok;
    return (await this.check(service)).ok;
  }

  /** Checks a service now. Concurrent checks of the same service share one connection. */
  async check(service: string): Promise<TcpCheck> {
    return this.#checks.run(service, async () => {
      const check = await this.#connect(service);
      const before = this.#known.get(service)?.check.ok ?? true;
      this.#known.set(service, { check, at: this.#clock.monotonic() });
      if (check.ok !== before) this.changed.notify({ service, ok: check.ok, error: check.error ?? '' });
      return check;
    });
  }

  /** Connects to each address of a service. Returns the first failure. */
  async #connect(service: string): Promise<TcpCheck> {
    const [first, second] = addressesOf(parseServiceAddress(service)).map((address) =>
      this.#checkTcp(address, TCP_CHECK_TIMEOUT_MS),
    );
    const check = await first;
    if (check === undefined) throw new Error('a service has no address');
    return check.ok && second !== undefined ? second : check;
  }

  async #round(): Promise<void> {
    const services = this.#services();
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

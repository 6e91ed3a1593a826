/**
 * Certificates of public addresses: from files of the owner, or ordered from an ACME server. A new one is ordered after two
 * thirds of the lifetime; the old one serves until then. See docs/decisions/0121-acme.md.
 */
import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { TlsCertificate } from '../../foundation/certificate.ts';
import { DueQueue, type NetworkState } from '../../foundation/due-queue.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { RandomParts } from '../../foundation/node-parts.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { type CertificateRow, type CertificateStore } from '../../foundation/store/certificates.ts';

/** Waits after failed orders. ACME servers allow few failures for a name. */
const RETRY = { firstMs: 60_000, maxMs: 12 * 3_600_000, jitter: 0.5 } as const;
/** Longest time to the next order, milliseconds. */
const MAX_WAIT_MS: number = 400 * 86_400_000;
/** Longest wait of `Retry-After`, milliseconds. Usual limits count a week. */
const MAX_LIMITED_MS: number = 8 * 86_400_000;
const ORDERS_AT_ONCE = 2;
/** A certificate is replaced after this share of its lifetime. Orders are spread over the second share. */
const RENEW_AFTER: number = 2 / 3;
const SPREAD: number = 1 / 30;
/** Interval in which changed files of the owner, and hosts without a plan, are noticed, milliseconds. */
const CHECK_MS: number = 3_600_000;

interface CertificatesDependencies extends RandomParts {
  readonly store: CertificateStore;
  readonly network: NetworkState;
  /** The certificate of the owner; null if there is none. @throws SvcError `config_invalid` */
  readonly files: () => Promise<TlsCertificate | null>;
  /** See `AcmeServer.order`. */
  readonly order: (
    host: string,
    prove: (challenge: TlsCertificate, verified: () => Promise<void>) => Promise<void>,
    signal: AbortSignal,
  ) => Promise<TlsCertificate>;
  /** The hosts at which agents are exposed. */
  readonly hosts: () => readonly string[];
}

/** The state of a certificate. */
export interface CertificateState {
  /** Unix milliseconds; null without a certificate. */
  readonly notAfter: number | null;
  /** The last order failed. */
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
}

export class Certificates implements Component {
  readonly #deps: CertificatesDependencies;
  readonly #queue: DueQueue<CertificateRow>;
  readonly #contexts = new Map<string, SecureContext>();
  /** Certificates that prove control of a host while it is verified. */
  readonly #challenges = new Map<string, SecureContext>();
  #own: { readonly context: SecureContext; readonly parsed: X509Certificate } | null = null;
  #checks: RepeatingTask | null = null;

  constructor(dependencies: CertificatesDependencies) {
    this.#deps = dependencies;
    const { store, network } = dependencies;
    this.#queue = new DueQueue(
      {
        name: 'certificates of public addresses',
        retry: RETRY,
        maxWaitMs: MAX_WAIT_MS,
        atOnce: { perKey: 1, total: ORDERS_AT_ONCE },
      },
      { ...dependencies, table: store.due, network, work: (row, signal) => this.#work(row, signal) },
    );
  }

  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    const onError = (error: unknown): void =>
      log.error({ error }, 'public_cert cannot be used; public addresses keep their last certificate');
    await this.#check().catch(onError);
    this.#checks = every(clock, { firstMs: CHECK_MS, periodMs: CHECK_MS, onError }, () => this.#check());
    this.#queue.start();
  }

  async stop(): Promise<void> {
    this.#checks?.stop();
    await this.#queue.stop();
  }

  /** The certificate with which a host is served; null if there is none yet. */
  context(host: string): SecureContext | null {
    if (this.#isOfOwner(host)) return this.#own?.context ?? null;
    const known = this.#contexts.get(host);
    if (known !== undefined) return known;
    const row = this.#deps.store.find(host);
    if (row === null || row.chain === null || row.key === null) return null;
    const context = createSecureContext({ cert: row.chain, key: row.key });
    this.#contexts.set(host, context);
    return context;
  }

  /** The certificate for the verification of a host; null if none is under way. */
  challenge(host: string): SecureContext | null {
    return this.#challenges.get(host) ?? null;
  }

  state(host: string): CertificateState {
    if (this.#isOfOwner(host)) return { notAfter: this.#own?.parsed.validToDate.getTime() ?? null, error: null };
    const { notAfter = null, errorCode = null, errorText = null } = this.#deps.store.find(host) ?? {};
    return { notAfter, error: errorCode === null ? null : { code: errorCode, message: errorText ?? '' } };
  }

  /** A host was exposed, or is no longer: orders a certificate if there is none that can be used. */
  exposed(host: string): void {
    const { store, clock, hosts } = this.#deps;
    if (!hosts().includes(host) || this.#isOfOwner(host)) {
      if (store.find(host) !== null) store.plan(host, null);
      return;
    }
    const row = store.find(host);
    store.plan(host, row === null || row.chain === null ? clock.now() : this.#renewal(row, 0));
    this.#queue.soon();
  }

  #isOfOwner(host: string): boolean {
    return this.#own?.parsed.checkHost(host) !== undefined;
  }

  /** The time of the next order. @param spread from 0 to 1 */
  #renewal({ notBefore, notAfter }: Pick<CertificateRow, 'notBefore' | 'notAfter'>, spread: number): number {
    const now = this.#deps.clock.now();
    if (notBefore === null || notAfter === null) return now;
    const at = notBefore + (notAfter - notBefore) * (RENEW_AFTER + SPREAD * spread);
    return Math.min(Math.round(at), now + MAX_WAIT_MS);
  }

  /** Reads the files of the owner. Hosts that they no longer cover, and others without a plan, get one. */
  async #check(): Promise<void> {
    const { files, hosts, store } = this.#deps;
    const own = await files();
    this.#own = own === null ? null : { context: createSecureContext(own), parsed: new X509Certificate(own.cert) };
    for (const host of hosts()) if ((store.find(host)?.dueAt ?? null) === null) this.exposed(host);
  }

  async #work({ host }: CertificateRow, signal: AbortSignal): Promise<void> {
    const { store, clock, random, log, hosts, order } = this.#deps;
    if (!hosts().includes(host) || this.#isOfOwner(host)) return store.plan(host, null);
    try {
      const { cert, key } = await order(host, (challenge, verified) => this.#prove(host, challenge, verified), signal);
      const { validFromDate, validToDate } = new X509Certificate(cert);
      const [notBefore, notAfter] = [validFromDate.getTime(), validToDate.getTime()];
      const row = { host, chain: cert, key, notBefore, notAfter, dueAt: null, errorCode: null, errorText: null };
      // Usable, or it is not stored.
      const context = createSecureContext({ cert, key });
      store.put({ ...row, dueAt: this.#renewal(row, random()) });
      this.#contexts.set(host, context);
      log.info({ host, not_after: validToDate.toISOString() }, 'a public address has a new certificate');
    } catch (error) {
      if (signal.aborted) throw error;
      const known = error instanceof SvcError ? error : new SvcError('internal', { cause: error });
      store.failed(host, known.code, known.message);
      log.warn(
        { host, code: known.code, reason: known.message },
        'a public address got no certificate, svcd will retry',
      );
      const wait = known.details?.['retry_after_s'];
      store.notBefore(host, typeof wait === 'number' ? clock.now() + Math.min(wait * 1000, MAX_LIMITED_MS) : 0);
      throw error;
    }
  }

  async #prove(host: string, challenge: TlsCertificate, verified: () => Promise<void>): Promise<void> {
    this.#challenges.set(host, createSecureContext(challenge));
    try {
      await verified();
    } finally {
      this.#challenges.delete(host);
    }
  }
}

/**
 * Public addresses of local agents, for callers without svcd: their rules, and the tokens of their clients. The access list
 * of the agent does not apply to them.
 */
import { hash, randomBytes } from 'node:crypto';
import type { Clock } from '../../foundation/clock.ts';
import {
  type ExposureMode,
  MAX_EXPOSURE_TOKENS,
  MAX_EXPOSURES,
  MAX_PUBLIC_CLIENTS,
  PUBLIC_TOKEN_PREFIX,
  ruleAllows,
} from '../../foundation/domain/exposures.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { ExposureRow, ExposureStore, ExposureTokenRow } from '../../foundation/store/exposures.ts';

/** Bytes of a token. */
const PUBLIC_TOKEN_BYTES = 30;

/** Slows down clients that guess tokens; see `GuessLimits`. */
interface GuessCounts {
  wait(subject: string, guesser: Guesser): number;
  charge(subject: string, guesser: Guesser): void;
}

interface Guesser {
  readonly caller: string;
  readonly node: null;
  readonly source: string;
}

interface ExposuresDependencies {
  readonly store: ExposureStore;
  readonly clock: Clock;
  readonly guesses: GuessCounts;
  /** The address that wrong tokens are counted for: IPv4, or the IPv6 network of one household. */
  readonly household: (address: string) => string;
  /** False while the database may lack its latest changes, such as removed tokens. */
  readonly isTrusted: () => boolean;
}

/** The choice of the owner. */
export interface ExposureChoice {
  readonly mode: ExposureMode;
  /** For mode `only`. */
  readonly rules: readonly string[];
}

/** The request of a client, before its body. */
export interface PublicRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** A service could take another method or path from the request. */
  readonly isSteered: boolean;
  /** `Authorization`. */
  readonly authorization: string | undefined;
  /** The IP address of the client. */
  readonly address: string;
}

/** Requests of a client at one address. */
export interface PublicClient {
  /** Of its token; empty without one. */
  readonly label: string;
  readonly address: string;
  readonly requests: number;
  readonly refused: number;
  /** Unix milliseconds. */
  readonly lastAt: number;
}

/** A request that may pass. */
export interface PublicAdmission {
  readonly exposure: ExposureRow;
  /** Null for a request without a token. */
  readonly token: ExposureTokenRow | null;
}

export class Exposures {
  readonly #deps: ExposuresDependencies;
  /** By host. */
  readonly #exposures = new Map<string, ExposureRow>();
  /** By exposure. */
  readonly #tokens = new Map<string, readonly ExposureTokenRow[]>();
  /** By exposure, then by label and address. The newest is last. */
  readonly #clients = new Map<string, LruCache<string, PublicClient>>();
  readonly #changes = new Listeners<[host: string]>();

  constructor(dependencies: ExposuresDependencies) {
    this.#deps = dependencies;
    for (const row of dependencies.store.list()) this.#load(row);
  }

  /** All public addresses, the oldest first. */
  list(): readonly ExposureRow[] {
    return [...this.#exposures.values()];
  }

  /** @throws SvcError `not_found` */
  get(id: string): ExposureRow {
    const found = this.#exposures.values().find((one) => one.id === id);
    if (found === undefined) throw new SvcError('not_found', { message: 'There is no public address with this ID.' });
    return found;
  }

  /** The tokens of an address, the oldest first, expired ones included. */
  tokens(id: string): readonly ExposureTokenRow[] {
    return this.#tokens.get(id) ?? [];
  }

  /** Clients since the start, the newest first. */
  clients(id: string): readonly PublicClient[] {
    return [...(this.#clients.get(id)?.values() ?? [])].reverse();
  }

  /** The same for all addresses of an agent. */
  readonly clientsOf = (aid: Aid): readonly PublicClient[] =>
    this.list()
      .filter((one) => one.aid === aid)
      .flatMap(({ id }) => this.clients(id));

  /** Receives the host of each address that admits other requests than before: not after a new token. Returns a function that ends this. */
  onChange(listener: (host: string) => void): () => void {
    return this.#changes.add(listener);
  }

  /**
   * Exposes an agent at a host, or changes who may call there.
   * @throws SvcError `quota_exceeded`, `wrong_state` if another agent of this node has the host
   */
  open(aid: Aid, host: string, { mode, rules }: ExposureChoice): ExposureRow {
    const known = this.#exposures.get(host);
    if (known !== undefined && known.aid !== aid) throw new SvcError('wrong_state');
    if (known === undefined && this.#exposures.size >= MAX_EXPOSURES)
      throw new SvcError('quota_exceeded', {
        message: `A node can have ${MAX_EXPOSURES} public addresses. Remove one with "svc expose off".`,
        details: { limit: MAX_EXPOSURES },
      });
    const { id, openedAt } = known ?? { id: newId(), openedAt: this.#deps.clock.now() };
    const row: ExposureRow = { id, aid, host, mode, rules: mode === 'only' ? rules : [], isOn: true, openedAt };
    this.#deps.store.save(row);
    this.#load(row);
    this.#changes.notify(host);
    return row;
  }

  /** Removes an address with its tokens. Its connections close immediately. */
  off(id: string): void {
    const { host } = this.get(id);
    this.#deps.store.delete(id);
    this.#exposures.delete(host);
    this.#tokens.delete(id);
    this.#clients.delete(id);
    this.#changes.notify(host);
  }

  /** To be called when an agent was deleted. Its rows are deleted with it. */
  forget(aid: Aid): void {
    for (const { id, host } of this.list().filter((one) => one.aid === aid)) {
      this.#exposures.delete(host);
      this.#tokens.delete(id);
      this.#clients.delete(id);
      this.#changes.notify(host);
    }
  }

  /**
   * Makes a token for one client. It is only returned here.
   * @param expiresAt Unix milliseconds; null: no end
   * @throws SvcError `not_found`, `quota_exceeded`, `wrong_state` if the label is in use
   */
  addToken(id: string, label: string, rules: readonly string[], expiresAt: number | null) {
    this.get(id);
    const tokens = this.tokens(id);
    if (tokens.some((one) => one.label === label))
      throw new SvcError('wrong_state', {
        message: `A token with the label ${label} exists. Choose another label, or remove that token.`,
      });
    if (tokens.length >= MAX_EXPOSURE_TOKENS)
      throw new SvcError('quota_exceeded', {
        message: `A public address can have ${MAX_EXPOSURE_TOKENS} tokens. Remove one with "svc expose token rm".`,
        details: { limit: MAX_EXPOSURE_TOKENS },
      });
    const token = PUBLIC_TOKEN_PREFIX + randomBytes(PUBLIC_TOKEN_BYTES).toString('base64url');
    const createdAt = this.#deps.clock.now();
    const row: ExposureTokenRow = {
      id: newId(),
      exposure: id,
      label,
      hash: hashOf(token),
      rules,
      expiresAt,
      createdAt,
    };
    this.#deps.store.addToken(row);
    this.#tokens.set(id, [...tokens, row]);
    return { row, token };
  }

  /** Removes a token by its ID or label. Its open requests end immediately. @throws SvcError `not_found` */
  removeToken(id: string, named: string): void {
    const { host } = this.get(id);
    const tokens = this.tokens(id);
    const found = tokens.find((one) => one.id === named || one.label === named);
    if (found === undefined)
      throw new SvcError('not_found', { message: 'This public address has no such token. See "svc expose list".' });
    this.#deps.store.deleteToken(found.id);
    this.#tokens.set(
      id,
      tokens.filter((one) => one !== found),
    );
    this.#changes.notify(host);
  }

  /** The address that is served at a host; null if there is none, or it is off. */
  served(host: string): ExposureRow | null {
    const found = this.#exposures.get(host);
    return found?.isOn === true && this.#deps.isTrusted() ? found : null;
  }

  /**
   * Decides about a request.
   * @throws SvcError `unauthorized`, `access_denied`, `rate_limited`, and `not_found` for a host without an address
   */
  admit(host: string, request: PublicRequest): PublicAdmission {
    const exposure = this.served(host);
    if (exposure === null) throw new SvcError('not_found', { message: 'Nothing is exposed at this address.' });
    try {
      const admission = this.#decide(exposure, request);
      this.#count(exposure.id, admission.token?.label ?? '', request.address, true);
      return admission;
    } catch (error) {
      this.#count(exposure.id, '', request.address, false);
      throw error;
    }
  }

  #count(id: string, label: string, address: string, passes: boolean): void {
    const clients = this.#clients.get(id) ?? new LruCache<string, PublicClient>({ maxEntries: MAX_PUBLIC_CLIENTS });
    this.#clients.set(id, clients);
    const key = `${label} ${address}`;
    const { requests, refused } = clients.get(key) ?? { requests: 0, refused: 0 };
    const lastAt = this.#deps.clock.now();
    const counts = passes ? { requests: requests + 1, refused } : { requests, refused: refused + 1 };
    clients.set(key, { label, address, ...counts, lastAt });
  }

  #decide(exposure: ExposureRow, request: PublicRequest): PublicAdmission {
    const presented = bearerOf(request.authorization);
    // A token is a random text of 256 bits: comparing hashes leaks nothing useful.
    const token = presented === null ? null : this.#find(exposure.id, presented);
    if (token !== null && this.#allows(token, request)) return { exposure, token };
    const { mode, rules } = exposure;
    if (mode === 'public') return { exposure, token };
    if (mode === 'only' && allows(rules, request)) return { exposure, token };
    if (token !== null)
      throw new SvcError('access_denied', { message: 'This token does not allow this method and path.' });
    if (presented === null) throw new SvcError('unauthorized', { message: NO_TOKEN });
    this.#countWrong(exposure.id, request.address);
    throw new SvcError('unauthorized', {
      message: 'This token is wrong or has expired. Ask the owner for another one.',
    });
  }

  /** True if a request that was admitted may continue. */
  stillAdmits({ exposure, token }: PublicAdmission): boolean {
    const now = this.served(exposure.host);
    if (now?.id !== exposure.id || now.aid !== exposure.aid) return false;
    if (token !== null) return this.tokens(exposure.id).some((one) => one.id === token.id && !this.#hasEnded(one));
    return (
      now.mode === 'public' || (now.mode === 'only' && exposure.mode === 'only' && isSame(now.rules, exposure.rules))
    );
  }

  #load(row: ExposureRow): void {
    this.#exposures.set(row.host, row);
    this.#tokens.set(row.id, this.#deps.store.tokens(row.id));
  }

  #find(id: string, presented: string): ExposureTokenRow | null {
    const wanted = hashOf(presented);
    return this.tokens(id).find((one) => !this.#hasEnded(one) && wanted.equals(one.hash)) ?? null;
  }

  #hasEnded({ expiresAt }: ExposureTokenRow): boolean {
    return expiresAt !== null && expiresAt <= this.#deps.clock.now();
  }

  #allows({ rules }: ExposureTokenRow, request: PublicRequest): boolean {
    return rules.length === 0 || allows(rules, request);
  }

  /** @throws SvcError `rate_limited` */
  #countWrong(id: string, address: string): void {
    const { guesses, household } = this.#deps;
    const guesser: Guesser = { caller: household(address), node: null, source: address };
    const waitMs = guesses.wait(id, guesser);
    if (waitMs > 0)
      throw new SvcError('rate_limited', {
        message: 'Too many wrong tokens came from this address.',
        details: { retry_after_s: Math.ceil(waitMs / 1000) },
      });
    guesses.charge(id, guesser);
  }
}

const NO_TOKEN =
  'This address needs a token: send "Authorization: Bearer svcp_…". Its owner makes one with "svc expose token add".';

function allows(rules: readonly string[], { method, target, isSteered }: PublicRequest): boolean {
  return !isSteered && ruleAllows(rules, method, target);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((rule, i) => rule === other[i]);
}

function hashOf(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/** The token of a request; null without one. */
export function bearerOf(authorization: string | undefined): string | null {
  const [, token = null] = /^bearer +(svcp_[A-Za-z0-9_-]{1,128}) *$/i.exec(authorization ?? '') ?? [];
  return token;
}

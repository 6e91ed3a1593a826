/**
 * The gate in front of every route: who may ask at all. It looks at nothing but the head of the
 * request, so a route cannot forget it. See docs/threat-model.md, "The API".
 */
import type { IncomingMessage } from 'node:http';
import { hostname } from 'node:os';
import { isLoopbackHost } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { canonicalIp, subscriberOf } from '../../foundation/ip.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import { type Rate, RateQuota } from '../../foundation/rate-quota.ts';
import type { CallContext } from '../../operations/operation.ts';
import { hostOf, isLoopbackPeer, isSameSite } from './host.ts';
import { isPanelPage } from './panel-path.ts';
import { isPeerPath } from './peer-path.ts';
import { NO_SESSIONS, type PanelSessions, TokenCheck, type TokenHolder } from './token.ts';

/** Wrong tokens that one address may send at once. */
const WRONG_TOKEN_BURST = 10;
/** Wrong tokens per second and address in the long run: one in ten seconds. */
const WRONG_TOKENS_PER_S = 0.1;
/** Requests without the right token that one address may send at once, from elsewhere. */
const STRANGER_BURST = 200;
/** Requests per second without the right token and address in the long run, from elsewhere. */
const STRANGER_REQUESTS_PER_S = 50;
/** Shares of one address that its network (an IPv4 /24 or IPv6 /48) has of both rates: IPv6 /64s are cheap in bulk. */
const ADDRESSES_PER_NETWORK = 4;

export interface GateOptions {
  /** The host of `api_addr`; empty for every interface. */
  readonly host: string;
  readonly requireLocalToken: boolean;
}

export interface GateDependencies {
  /** The API token of this moment; empty for none. */
  readonly token: () => string;
  /** Sessions of the panel, whose tokens are as good as the API token; left out for none. */
  readonly sessions?: Pick<PanelSessions, 'holder'>;
  readonly clock: Clock;
}

/** How a request was let in. */
export interface AdmittedRequest {
  readonly origin: CallContext['origin'];
  /** False: it lacks the token that it needs. */
  readonly authorised: boolean;
  /** A page asks, and be it ours: browsers say so of themselves. */
  readonly fromPage: boolean;
  /**
   * For what needs the API token from everybody, where there is one.
   * @throws SvcError `unauthorized`, `rate_limited` where the request does not carry it
   */
  readonly requireToken: () => void;
  /** The session of the panel that asks; null for everybody else. */
  readonly session: string | null;
  /**
   * Tries a secret of the body: a wrong one counts as a wrong token does. Absent where no secret lets anybody in.
   * @throws SvcError `unauthorized`, `rate_limited`
   */
  readonly trySecret?: (isRight: () => boolean) => void;
}

interface Called {
  readonly header: string | undefined;
  /** Null where the header is malformed; empty where there is none, as HTTP/1.0 allows. */
  readonly host: string | null;
  readonly loopback: boolean;
}

export class RequestGate {
  readonly #requireLocalToken: boolean;
  /** The host of `api_addr` where it is a name or an address. */
  readonly #host: string;
  /** Names of this machine by which other machines may call it. */
  readonly #names: ReadonlySet<string>;
  readonly #token: TokenCheck;
  readonly #wrongTokens: RateQuota;
  readonly #strangers: RateQuota;
  #called: Called = { header: undefined, host: '', loopback: true };

  constructor(options: GateOptions, { token, sessions = NO_SESSIONS, clock }: GateDependencies) {
    this.#requireLocalToken = options.requireLocalToken;
    const machine = hostname().toLowerCase();
    this.#host = options.host.toLowerCase();
    this.#names = new Set([this.#host, machine, `${machine}.local`]);
    this.#token = new TokenCheck(token, sessions);
    const quota = (perSecond: number, burst: number): RateQuota => {
      const share = (count: number): Rate => ({ perSecond: count * perSecond, burst: count * burst });
      return new RateQuota({ perKey: share(1), perNetwork: share(ADDRESSES_PER_NETWORK) }, { clock });
    };
    this.#wrongTokens = quota(WRONG_TOKENS_PER_S, WRONG_TOKEN_BURST);
    this.#strangers = quota(STRANGER_REQUESTS_PER_S, STRANGER_BURST);
  }

  /**
   * Lets a request of the listener in, or refuses it.
   * @throws SvcError `forbidden_host`, `forbidden_origin`, `unauthorized`, `rate_limited`
   */
  admit(request: IncomingMessage): AdmittedRequest {
    const address = request.socket.remoteAddress ?? '';
    const onLoopback = isLoopbackPeer(address);
    const { host, loopback: loopbackHost } = this.#calledBy(request.headers.host);
    // Before the token is looked at: a rebound web page must not be able to use up the tries of its user.
    if (onLoopback && !loopbackHost && (host === null || host !== this.#host)) throw new SvcError('forbidden_host');
    refuseOtherSites(request);

    const local = onLoopback && loopbackHost;
    const needed = this.#token.set && (!local || this.#requireLocalToken);
    const holder = this.#holder(request, address, needed);
    const right = holder !== null;
    if (!local && !right && !this.#strangers.take(holderAt(address))) throw limited(this.#strangers, holderAt(address));
    // A web page can point a name of its own at us, but not an address; and it does not know the token.
    if (!onLoopback && !right && (host === null || !(canonicalIp(host) !== null || this.#names.has(host))))
      throw new SvcError('forbidden_host', {
        message: 'The Host header names another machine. Call this one by its address, or send the API token.',
      });
    // A token that nobody needs is not looked at again until something asks for it.
    const requireToken = needed && right ? () => {} : () => this.#requireToken(request, address);
    return {
      origin: local ? 'local' : 'remote',
      authorised: right || !needed,
      requireToken,
      fromPage: isFromPage(request),
      session: holder?.session ?? null,
      trySecret: (isRight) => this.#trySecret(isRight, address, 'This code or token is wrong, or has been used.'),
    };
  }

  /** Whom a `Host` header calls: most requests have the same one as the request before. */
  #calledBy(header: string | undefined): Called {
    if (header !== this.#called.header) {
      const host = header === undefined ? '' : hostOf(header);
      this.#called = { header, host, loopback: host === '' || (host !== null && isLoopbackHost(host)) };
    }
    return this.#called;
  }

  /** @throws SvcError `unauthorized`, `rate_limited` where the header is wrong and a token is needed */
  #holder(request: IncomingMessage, address: string, needed: boolean): TokenHolder | null {
    const { authorization } = request.headers;
    if (!needed || authorization === undefined) return this.#token.holderOf(authorization);
    return this.#checkToken(authorization, address);
  }

  /** @throws SvcError `unauthorized`, `rate_limited` */
  #requireToken(request: IncomingMessage, address: string): void {
    if (!this.#token.set) return;
    const { authorization } = request.headers;
    if (authorization === undefined)
      throw new SvcError('unauthorized', { message: 'Storing and deleting objects needs the API token, here too.' });
    this.#checkToken(authorization, address);
  }

  /** @throws SvcError `unauthorized`, `rate_limited` */
  #checkToken(authorization: string, address: string): TokenHolder {
    // A page that is still open sends the token of a session that has ended: that is no try.
    if (this.#token.isOfSession(authorization)) {
      const holder = this.#token.holderOf(authorization);
      if (holder !== null) return holder;
      throw new SvcError('unauthorized', { message: 'This session of the panel has ended. Log in again.' });
    }
    this.#trySecret(() => this.#token.holderOf(authorization) !== null, address, 'The API token is wrong.');
    return { session: null };
  }

  /** @throws SvcError `unauthorized`, `rate_limited` */
  #trySecret(isRight: () => boolean, address: string, message: string): void {
    const holder = holderAt(address);
    // Every program of this machine has the same address: wrong tokens of one must not lock out the right token of
    // another. Only a token that guessing could find has to wait as well.
    if (!this.#token.isUnguessable && this.#wrongTokens.retryAfterMs(holder) > 0)
      throw limited(this.#wrongTokens, holder);
    if (isRight()) return;
    if (!this.#wrongTokens.take(holder)) throw limited(this.#wrongTokens, holder);
    throw new SvcError('unauthorized', { message });
  }
}

function holderAt(address: string): QuotaHolder {
  return { node: subscriberOf(address), source: address, named: false };
}

function limited(quota: RateQuota, holder: QuotaHolder): SvcError {
  return new SvcError('rate_limited', { details: { retry_after_s: Math.ceil(quota.retryAfterMs(holder) / 1000) } });
}

/**
 * A browser says where a request comes from; only pages of this very origin, and requests that no
 * page made, pass. Programs that are no browser send neither header. A page of a remote agent is in
 * a sandbox and so of no origin: it is refused like any other site.
 */
function refuseOtherSites(request: IncomingMessage): void {
  const { origin, host } = request.headers;
  const site = request.headers['sec-fetch-site'];
  if (origin !== undefined && !isSameSite(origin, host)) throw new SvcError('forbidden_origin');
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  if (!isNavigation(request)) throw new SvcError('forbidden_origin');
  // A file that leads to the panel is of another site, and no person followed it; the page holds no data.
  if (isPanelPage(request.url)) return;
  if (!(isPeerPath(request.url) && isFollowedLink(request))) throw new SvcError('forbidden_origin');
}

/** Programs that are no browser send neither header. */
function isFromPage({ headers }: IncomingMessage): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] !== undefined;
}

/** What is asked for becomes a page of a window of its own: who caused it cannot read it. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    headers.origin === undefined &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document'
  );
}

/** A person followed a link, which no page can do by itself. */
function isFollowedLink({ headers }: IncomingMessage): boolean {
  return headers['sec-fetch-user'] === '?1';
}

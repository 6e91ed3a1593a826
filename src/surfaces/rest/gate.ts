/**
 * Access check in front of every route. It uses only the head of the request, so no route can forget it. See
 * docs/threat-model.md, "The API".
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { isLoopbackHost } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { canonicalIp, subscriberOf } from '../../foundation/ip.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import { type Rate, RateQuota } from '../../foundation/rate-limit.ts';
import type { CallContext, Permission } from '../../operations/operation.ts';
import { hostOf, isLoopbackPeer, isSameSite } from './host.ts';
import { isPanelPage, isPeerPath } from './panel-path.ts';
import { hasUnreadBody } from './response.ts';
import { NO_SESSIONS, type PanelSessions, TokenCheck, type TokenHolder } from './token.ts';

// Checks of a route before it reads the body.

/** Timeout for a JSON body after its head, in milliseconds. */
const BODY_TIMEOUT_MS = 30_000;

/** True if a method has a body and must declare its media type. */
export function isWrite(method: string | undefined): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

/** @throws SvcError `unauthorized`, `local_only` */
export function checkPermission(permission: Permission, admission: AdmittedRequest): void {
  if (!admission.authorized && permission !== 'open') throw new SvcError('unauthorized');
  if (permission === 'local_only' && admission.origin !== 'local') throw new SvcError('local_only');
}

/** @throws SvcError `unsupported_media_type` if the `Content-Type` of a write is not `accepts` */
export function checkMediaType(request: IncomingMessage, accepts: string): void {
  if (!isWrite(request.method)) return;
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (type !== accepts)
    throw new SvcError('unsupported_media_type', { message: `Send "Content-Type: ${accepts}" with this request.` });
  if (encoding !== 'identity')
    throw new SvcError('unsupported_media_type', { message: 'Send the body without a Content-Encoding.' });
}

/** Destroys the connection of an incomplete body. The timeouts of the HTTP server cover only the head. */
export function limitBodyTime(request: IncomingMessage, response: ServerResponse, clock: Clock): void {
  if (!hasUnreadBody(request)) return;
  const timer = clock.after(BODY_TIMEOUT_MS, () => {
    if (!request.complete) request.socket.destroy();
  });
  const cancel = (): void => timer.cancel();
  request.once('end', cancel);
  response.once('close', cancel);
}

/** Burst of wrong tokens from one address. */
const WRONG_TOKEN_BURST = 10;
/** Sustained rate of wrong tokens from one address, per second: one in ten seconds. */
const WRONG_TOKENS_PER_S = 0.1;
/** Burst of requests without a valid token from one remote address. */
const STRANGER_BURST = 200;
/** Sustained rate of requests without a valid token from one remote address, per second. */
const STRANGER_REQUESTS_PER_S = 50;
/**
 * Limit of a network (IPv4 /24 or IPv6 /48) as a multiple of both rates of an address, because many IPv6 /64s are
 * cheap.
 */
const ADDRESSES_PER_NETWORK = 4;

export interface GateOptions {
  /** The host of `api_addr`; empty for all interfaces. */
  readonly host: string;
  readonly requireLocalToken: boolean;
}

export interface GateDependencies {
  /** The current API token; empty if none is set. */
  readonly token: () => string;
  /** Panel sessions. Their tokens have the rights of the API token. */
  readonly sessions?: PanelSessions;
  readonly clock: Clock;
}

/** Result of the access check. */
export interface AdmittedRequest {
  readonly origin: CallContext['origin'];
  /** False if the required token is missing. */
  readonly authorized: boolean;
  /** The request comes from a web page, possibly our own, according to the browser's headers. */
  readonly fromPage: boolean;
  /**
   * Requires the API token, if one is set, even from local programs.
   * @throws SvcError `unauthorized`, `rate_limited` if the request does not carry it
   */
  readonly requireToken: () => void;
  /** The panel session of the request, or null. */
  readonly session: string | null;
  /**
   * Checks a secret in the body. A wrong secret counts as a wrong token. Missing if no secret grants access.
   * @throws SvcError `unauthorized`, `rate_limited`
   */
  readonly trySecret?: (isRight: () => boolean) => void;
}

interface AddressedHost {
  readonly header: string | undefined;
  /** Null if the header is malformed; empty if it is missing, as HTTP/1.0 allows. */
  readonly host: string | null;
  readonly loopback: boolean;
}

export class RequestGate {
  readonly #requireLocalToken: boolean;
  /** The host of `api_addr`, if it is a name or an address. */
  readonly #host: string;
  /** Names under which other machines may reach this machine. */
  readonly #names: ReadonlySet<string>;
  readonly #token: TokenCheck;
  readonly #wrongTokens: RateQuota;
  readonly #strangers: RateQuota;
  #called: AddressedHost = { header: undefined, host: '', loopback: true };
  #peer: { readonly address: string; readonly onLoopback: boolean } = { address: '', onLoopback: false };

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
   * Admits or rejects a request.
   * @throws SvcError `forbidden_host`, `forbidden_origin`, `unauthorized`, `rate_limited`
   */
  admit(request: IncomingMessage): AdmittedRequest {
    const address = request.socket.remoteAddress ?? '';
    // Most requests come from the same address and have the same host as the previous request.
    if (address !== this.#peer.address) this.#peer = { address, onLoopback: isLoopbackPeer(address) };
    if (request.headers.host !== this.#called.header) this.#called = addressedHost(request.headers.host);
    const { onLoopback } = this.#peer;
    const { host, loopback: loopbackHost } = this.#called;
    // Check this before the token. A web page with DNS rebinding must not be able to use up the token attempts of its
    // user.
    if (onLoopback && !loopbackHost && (host === null || host !== this.#host)) throw new SvcError('forbidden_host');
    const fromPage = isFromPage(request);
    if (fromPage) rejectOtherSites(request);

    const local = onLoopback && loopbackHost;
    const needed = this.#token.set && (!local || this.#requireLocalToken);
    const { authorization } = request.headers;
    const holder = authorization === undefined ? null : this.#holder(authorization, address, needed);
    const right = holder !== null;
    if (!local && !right && !this.#strangers.take(holderAt(address))) throw limited(this.#strangers, holderAt(address));
    // DNS rebinding uses a name that the page controls. It cannot use an IP address, and the page does not know the
    // token.
    if (!onLoopback && !right && (host === null || !(canonicalIp(host) !== null || this.#names.has(host))))
      throw new SvcError('forbidden_host', {
        message: 'The Host header names another machine. Use the address of this machine, or send the API token.',
      });
    // A token that is not required is only checked when a handler requires it.
    const requireToken = needed && right ? () => {} : () => this.#requireToken(request, address);
    return {
      origin: local ? 'local' : 'remote',
      authorized: right || !needed,
      requireToken,
      fromPage,
      session: holder?.session ?? null,
      trySecret: (isRight) => this.#trySecret(isRight, address, 'This code or token is wrong or was already used.'),
    };
  }

  /** @throws SvcError `unauthorized`, `rate_limited` if the header is wrong and a token is required */
  #holder(authorization: string, address: string, needed: boolean): TokenHolder | null {
    return needed ? this.#checkToken(authorization, address) : this.#token.holderOf(authorization);
  }

  /** @throws SvcError `unauthorized`, `rate_limited` */
  #requireToken(request: IncomingMessage, address: string): void {
    if (!this.#token.set) return;
    const { authorization } = request.headers;
    if (authorization === undefined)
      throw new SvcError('unauthorized', { message: 'Storing and deleting objects always requires the API token.' });
    this.#checkToken(authorization, address);
  }

  /** @throws SvcError `unauthorized`, `rate_limited` */
  #checkToken(authorization: string, address: string): TokenHolder {
    // A page that is still open may send the token of a closed session. That is not a guess.
    if (this.#token.isOfSession(authorization)) {
      const holder = this.#token.holderOf(authorization);
      if (holder !== null) return holder;
      throw new SvcError('unauthorized', { message: 'This panel session has expired or was closed. Log in again.' });
    }
    this.#trySecret(() => this.#token.holderOf(authorization) !== null, address, 'The API token is wrong.');
    return { session: null };
  }

  /**
   * Checks a guess of the API token without the token, in the exchange of daemon-proof.ts.
   * @throws SvcError `unauthorized`, `rate_limited`
   */
  checkGuess({ socket: { remoteAddress: address = '' } }: IncomingMessage, isRight: () => boolean): void {
    // The exchange costs milliseconds of computing.
    if (!isLoopbackPeer(address) && !this.#strangers.take(holderAt(address)))
      throw limited(this.#strangers, holderAt(address));
    this.#trySecret(isRight, address, 'The API token is wrong.');
  }

  /** @throws SvcError `unauthorized`, `rate_limited` */
  #trySecret(isRight: () => boolean, address: string, message: string): void {
    const holder = holderAt(address);
    // All programs on this machine share one address. Wrong tokens of one program must not lock out the right token of
    // another. Only tokens that could be guessed are delayed too.
    if (!this.#token.isUnguessable && this.#wrongTokens.retryAfterMs(holder) > 0)
      throw limited(this.#wrongTokens, holder);
    if (isRight()) return;
    if (!this.#wrongTokens.take(holder)) throw limited(this.#wrongTokens, holder);
    throw new SvcError('unauthorized', { message });
  }
}

/** Classifies a `Host` header. */
function addressedHost(header: string | undefined): AddressedHost {
  const host = header === undefined ? '' : hostOf(header);
  return { header, host, loopback: host === '' || (host !== null && isLoopbackHost(host)) };
}

function holderAt(address: string): QuotaHolder {
  return { node: subscriberOf(address), source: address, named: false };
}

function limited(quota: RateQuota, holder: QuotaHolder): SvcError {
  return new SvcError('rate_limited', { details: { retry_after_s: Math.ceil(quota.retryAfterMs(holder) / 1000) } });
}

/**
 * Browsers report where a request comes from. Only same-origin requests and requests without an initiating page pass.
 * Other programs send neither header. Pages of remote agents are sandboxed with an opaque origin, so they are rejected
 * like other sites.
 */
function rejectOtherSites(request: IncomingMessage): void {
  const { origin, host } = request.headers;
  const site = request.headers['sec-fetch-site'];
  if (origin !== undefined && !isSameSite(origin, host)) throw new SvcError('forbidden_origin');
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  if (!isNavigation(request)) throw new SvcError('forbidden_origin');
  // A local file that opens the panel counts as cross-site without a user gesture. The page contains no data.
  if (isPanelPage(request.url)) return;
  if (!(isPeerPath(request.url) && isFollowedLink(request))) throw new SvcError('forbidden_origin');
}

/** Programs other than browsers send neither header. */
function isFromPage({ headers }: IncomingMessage): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] !== undefined;
}

/** The response becomes a page in a separate window, and the initiator cannot read it. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    headers.origin === undefined &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document'
  );
}

/** The user followed a link. No page can forge this. */
function isFollowedLink({ headers }: IncomingMessage): boolean {
  return headers['sec-fetch-user'] === '?1';
}

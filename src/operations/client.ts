/**
 * The typed client of the REST API. It has one method per declaration, which takes the operation's flat input. It needs
 * only `fetch` or a replacement, so it works in the command line and in a browser.
 */
import { type ErrorCode, isErrorCode, SvcError } from '../foundation/errors.ts';
import type { Aid } from '../foundation/identity/aid.ts';
import { isObject } from '../foundation/json.ts';
import {
  bodyInputKey,
  type Declaration,
  type Declarations,
  type InputOf,
  isOpen,
  type Loose,
  type OutputOf,
} from './operation.ts';

/** Default time limit of a request, longer than every timeout of the daemon. Operations with their own limit have none here. */
export const CLIENT_TIMEOUT_MS = 120_000;

/**
 * The part of `fetch` that a client needs. It must not follow redirects: they would send the token to another server.
 */
export type ClientFetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly body: string | null;
    readonly redirect: 'error';
    readonly signal: AbortSignal;
  },
) => Promise<{
  readonly status: number;
  readonly headers?: { get(name: string): string | null };
  text(): Promise<string>;
}>;

export interface ClientOptions {
  /** Address of the API, such as `http://127.0.0.1:2121`. */
  readonly baseUrl: string;
  /** The API token, if the daemon needs one. */
  readonly token?: string;
  /** Time limit of a request, milliseconds; 0: none. */
  readonly timeoutMs?: number;
  /** More headers for every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: `fetch` of the platform. */
  readonly fetch?: ClientFetch;
  /** `fetch` for streamed responses. Default: `fetch` of the platform. */
  readonly streamFetch?: (url: string, init: RequestInit) => Promise<Response>;
}

export interface CallOptions {
  /** Cancels the request, which fails with `cancelled`. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** `If-Match`: the write fails with status 412 if the version has changed. */
  readonly ifMatch?: string | undefined;
  /** Receives the version (`ETag`) of the response, if it has one. */
  readonly onVersion?: (etag: string) => void;
}

/** The daemon accepts every form of an AID. */
type Spelt<T> = T extends Aid ? string : T extends object ? { [K in keyof T]: Spelt<T[K]> } : T;

/** Input of a method. */
export type CallInput<D extends Declaration> = Loose<Spelt<InputOf<D>>>;

/** The input is optional if it has no required member. */
type ClientMethod<D extends Declaration> =
  Partial<InputOf<D>> extends InputOf<D>
    ? (input?: CallInput<D>, options?: CallOptions) => Promise<OutputOf<D>>
    : (input: CallInput<D>, options?: CallOptions) => Promise<OutputOf<D>>;

export type Client<T extends Declarations> = { readonly [K in keyof T]: ClientMethod<T[K]> };

/** Error code for an HTTP status, if a daemon of another version sends an unknown code. */
const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'access_denied',
  404: 'not_found',
  405: 'method_not_allowed',
  410: 'gone',
  413: 'too_large',
  415: 'unsupported_media_type',
  429: 'rate_limited',
  504: 'timeout',
};

type Input = Readonly<Record<string, unknown>>;

function pathValue(name: string, value: unknown): string {
  const text = typeof value === 'string' || typeof value === 'number' ? `${value}` : '';
  // A URL parser removes "." and "..", even escaped, and would send the request to another path.
  if (text === '' || text === '.' || text === '..')
    throw new SvcError('invalid_request', {
      message: `"${text}" is not a valid ${name}.`,
      details: { path: `/${name}` },
    });
  return encodeURIComponent(text);
}

/** Splits flat input into path, query and body. */
function wireRequest(base: string, declaration: Declaration, input: Input) {
  const { params, query: querySchema, body: bodySchema, method } = declaration;
  if (declaration.path === undefined) throw new Error(`${declaration.name} is not served over REST`);
  const path = declaration.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => pathValue(name, input[name]));
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  const openBody = isOpen(bodySchema);
  const renamed = new Map(Object.keys(bodySchema.properties).map((key) => [bodyInputKey(key, params), key]));
  for (const [given, value] of Object.entries(input)) {
    if (value === undefined || Object.hasOwn(params.properties, given)) continue;
    const key = renamed.get(given) ?? given;
    if (Object.hasOwn(querySchema.properties, key))
      for (const item of Array.isArray(value) ? value : [value]) query.append(key, String(item));
    else if (openBody || Object.hasOwn(bodySchema.properties, key)) body[key] = value;
    else
      throw new SvcError('invalid_request', {
        message: `${declaration.name} has no input "${key}".`,
        details: { path: `/${key}` },
      });
  }
  return {
    url: `${base}${path}${query.size === 0 ? '' : `?${query.toString()}`}`,
    method,
    body: method === 'GET' ? undefined : JSON.stringify(body),
    limitsItself: declaration.limitsItself === true,
  };
}

/** The error of an error response. An unknown code of another version is kept in the details. */
export function errorOf(status: number, body: unknown): SvcError {
  if (!isObject(body) || typeof body['error'] !== 'string')
    return new SvcError('daemon_unreachable', {
      message: `The server at this address is not svcd (HTTP status ${status}). Check the address.`,
    });
  const { error, message, details } = body;
  const known = isErrorCode(error);
  const shown = isObject(details) ? details : {};
  return new SvcError(known ? error : (CODE_OF_STATUS[status] ?? 'internal'), {
    ...(typeof message === 'string' ? { message } : {}),
    status,
    details: known ? shown : { ...shown, code: error },
  });
}

/** Another program answers at the address of the daemon. */
function notSvcd(base: string, why: string, cause?: unknown): SvcError {
  return new SvcError('daemon_unreachable', {
    message: `The server at ${base} is not svcd: ${why}. Check the address.`,
    details: { base },
    cause,
  });
}

/** The error of a failed `fetch`: cancelled, timed out, or no daemon. */
export function failureOf(error: unknown, base: string, options: CallOptions): SvcError {
  if (options.signal?.aborted === true) return new SvcError('cancelled', { cause: error });
  if (error instanceof Error && error.name === 'TimeoutError') return new SvcError('timeout', { cause: error });
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof SvcError) return cause;
  const reason = isObject(cause) && typeof cause['code'] === 'string' ? cause['code'] : undefined;
  if (reason === 'REDIRECT') return notSvcd(base, 'it sends a redirect', error);
  if (reason?.startsWith('HPE_') === true) return notSvcd(base, `it does not speak HTTP (${reason})`, error);
  if (reason === 'EPROTO' || reason?.startsWith('ERR_SSL_') === true)
    return notSvcd(base, 'it does not speak HTTPS', error);
  const isNameUnknown = reason === 'ENOTFOUND' || reason === 'EAI_AGAIN';
  const advice = isNameUnknown
    ? 'Its host name has no address. Check it.'
    : 'Start it with "svcd", or check the address.';
  return new SvcError('daemon_unreachable', {
    message: `No daemon answers at ${base}${reason === undefined ? '' : ` (${reason})`}. ${advice}`,
    details: { base, ...(reason === undefined ? {} : { reason }) },
    cause: error,
  });
}

export function baseOf(options: ClientOptions): string {
  const url = URL.parse(options.baseUrl);
  if (
    url === null ||
    (url.protocol !== 'http:' && url.protocol !== 'https:') ||
    url.username !== '' ||
    url.search !== ''
  )
    throw new SvcError('invalid_request', {
      message: 'The address of the daemon must be a URL without user name and query, such as http://127.0.0.1:2121.',
    });
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/** The headers of every request. */
export function headersFor({ headers, token }: ClientOptions, accept: string): Record<string, string> {
  return { ...headers, accept, ...authorization(token) };
}

/**
 * The header with the API token, without surrounding white space, such as the line break at the end of a file.
 * @throws SvcError `invalid_request` if a header cannot contain the token
 */
export function authorization(token: string = ''): { readonly authorization?: string } {
  const sent = token.trim();
  if (sent === '') return {};
  if (/^[\x20-\x7e]+$/.test(sent)) return { authorization: `Bearer ${sent}` };
  throw new SvcError('invalid_request', {
    message: 'The API token contains a line break or a character that is not ASCII. Check SVC_TOKEN or --token.',
  });
}

/**
 * The signal that ends a request.
 * @param limitMs 0: only the caller ends it
 */
function endOf(limitMs: number, { signal }: CallOptions): AbortSignal {
  const ends = [...(signal === undefined ? [] : [signal]), ...(limitMs === 0 ? [] : [AbortSignal.timeout(limitMs)])];
  return AbortSignal.any(ends);
}

async function send(
  base: string,
  request: ReturnType<typeof wireRequest>,
  client: ClientOptions,
  options: CallOptions,
): Promise<unknown> {
  const limitMs = options.timeoutMs ?? client.timeoutMs ?? (request.limitsItself ? 0 : CLIENT_TIMEOUT_MS);
  let status: number;
  let etag: string | null;
  let text: string;
  const headers = {
    ...headersFor(client, 'application/json'),
    ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(options.ifMatch === undefined ? {} : { 'if-match': options.ifMatch }),
  };
  try {
    const response = await (client.fetch ?? fetch)(request.url, {
      method: request.method,
      headers,
      body: request.body ?? null,
      redirect: 'error',
      signal: endOf(limitMs, options),
    });
    status = response.status;
    etag = response.headers?.get('etag') ?? null;
    text = await response.text();
  } catch (error) {
    throw failureOf(error, base, options);
  }
  let body: unknown;
  try {
    body = text === '' ? undefined : JSON.parse(text);
  } catch {
    throw errorOf(status, undefined);
  }
  if (status < 200 || status > 299) throw errorOf(status, body);
  // Every response of svcd is an object. Its members may differ between versions.
  if (!isObject(body)) throw notSvcd(base, 'its response is not a JSON object');
  if (etag !== null) options.onVersion?.(etag);
  return body;
}

/**
 * A client of the given declarations. Its methods throw `SvcError`: the error of the daemon, or `daemon_unreachable`,
 * `timeout`, `cancelled`.
 * @throws SvcError `invalid_request` if `baseUrl` is not an http or https URL
 */
export function createClient<T extends Declarations>(options: ClientOptions, declarations: T): Client<T> {
  const base = baseOf(options);
  const methods = Object.entries(declarations).map(([name, declaration]) => [
    name,
    async (input: Input = {}, call: CallOptions = {}) =>
      send(base, wireRequest(base, declaration, input), options, call),
  ]);
  return Object.fromEntries(methods) as Client<T>;
}

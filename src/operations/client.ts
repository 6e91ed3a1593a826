/**
 * The typed client of the REST API: one method per declaration, taking the operation's flat input.
 * Needs nothing but `fetch`, or what is given in its place, so that it works in the command line and in a browser.
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

/**
 * How long the daemon may take to answer when nobody says otherwise: above every time-out of the daemon itself. An
 * operation that limits itself has none here.
 */
export const CLIENT_TIMEOUT_MS = 120_000;

/** What of `fetch` a client needs. No redirect may be followed: the token goes to the daemon that was named and to nobody else. */
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
  /** Where the daemon answers, such as `http://127.0.0.1:2121`. */
  readonly baseUrl: string;
  /** The API token; left out where the daemon asks for none. */
  readonly token?: string;
  /** How long the daemon may take to answer; 0: as long as it likes. */
  readonly timeoutMs?: number;
  /** Further headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Left out: that of the platform. */
  readonly fetch?: ClientFetch;
  /** `fetch` for responses that are streamed. Left out: that of the platform. */
  readonly streamFetch?: (url: string, init: RequestInit) => Promise<Response>;
}

export interface CallOptions {
  /** Gives the call up: it fails with `cancelled`. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** `If-Match`: the write is for this version only, and fails with status 412 where there is another. */
  readonly ifMatch?: string | undefined;
  /** Told the version (`ETag`) of what an answer says, where it names one. */
  readonly onVersion?: (etag: string) => void;
}

/** An AID may come in any of its spellings. */
type Spelt<T> = T extends Aid ? string : T extends object ? { [K in keyof T]: Spelt<T[K]> } : T;

/** What a method takes. */
export type CallInput<D extends Declaration> = Loose<Spelt<InputOf<D>>>;

/** Without a required member the input may be left out. */
type ClientMethod<D extends Declaration> =
  Partial<InputOf<D>> extends InputOf<D>
    ? (input?: CallInput<D>, options?: CallOptions) => Promise<OutputOf<D>>
    : (input: CallInput<D>, options?: CallOptions) => Promise<OutputOf<D>>;

export type Client<T extends Declarations> = { readonly [K in keyof T]: ClientMethod<T[K]> };

/** The code to show for an error of a daemon of another version, by its HTTP status. */
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
  // A URL parser removes "." and ".." even where they are escaped: another path would be called.
  if (text === '' || text === '.' || text === '..')
    throw new SvcError('invalid_request', { message: `"${text}" cannot be ${name}.`, details: { path: `/${name}` } });
  return encodeURIComponent(text);
}

/** Splits flat input into path, query and body as the declaration says. */
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
        message: `${declaration.name} has no input named "${key}".`,
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

/** The error that an error answer carries; a code that this version does not know keeps its name in the details. */
export function errorOf(status: number, body: unknown): SvcError {
  if (!isObject(body) || typeof body['error'] !== 'string')
    return new SvcError('daemon_unreachable', {
      message: `What answers there is not svcd: its answer, with HTTP status ${status}, is none that svcd gives. Check the address.`,
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

/** Something else answers at the address of the daemon. */
function notSvcd(base: string, why: string, cause?: unknown): SvcError {
  return new SvcError('daemon_unreachable', {
    message: `What answers at ${base} is not svcd: ${why}. Check the address.`,
    details: { base },
    cause,
  });
}

/** What a failed `fetch` means: given up by the caller, by the clock, or nobody there. */
export function failureOf(error: unknown, base: string, options: CallOptions): SvcError {
  if (options.signal?.aborted === true) return new SvcError('cancelled', { cause: error });
  if (error instanceof Error && error.name === 'TimeoutError') return new SvcError('timeout', { cause: error });
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof SvcError) return cause;
  const reason = isObject(cause) && typeof cause['code'] === 'string' ? cause['code'] : undefined;
  if (reason === 'REDIRECT') return notSvcd(base, 'it redirects elsewhere', error);
  if (reason?.startsWith('HPE_') === true) return notSvcd(base, `it does not speak HTTP (${reason})`, error);
  return new SvcError('daemon_unreachable', {
    message: `No daemon answers at ${base}${reason === undefined ? '' : ` (${reason})`}. Start it with "svcd".`,
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
      message: 'The address of the daemon is a URL such as http://127.0.0.1:2121, without user name and query.',
    });
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/** The headers of every request of a client. */
export function headersFor({ headers, token }: ClientOptions, accept: string): Record<string, string> {
  return { ...headers, accept, ...authorization(token) };
}

/**
 * The header that carries the API token. Blanks around the token, such as the line break at the end of a file, are left out.
 * @throws SvcError `invalid_request` if it holds what no header can
 */
export function authorization(token: string = ''): { readonly authorization?: string } {
  const sent = token.trim();
  if (sent === '') return {};
  if (/^[\x20-\x7e]+$/.test(sent)) return { authorization: `Bearer ${sent}` };
  throw new SvcError('invalid_request', {
    message: 'The API token holds a line break or a character that is not ASCII. Check SVC_TOKEN or --token.',
  });
}

/** What ends a request. @param limitMs 0: only the caller does */
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
  // Every answer of svcd is an object. Members may differ from version to version.
  if (!isObject(body)) throw notSvcd(base, 'its answer is none that svcd gives');
  if (etag !== null) options.onVersion?.(etag);
  return body;
}

/**
 * A client of the given declarations.
 *
 * Its methods throw `SvcError`: what the daemon answered, or `daemon_unreachable` (nobody answers,
 * or something that is not svcd), `timeout`, `cancelled`.
 * @throws SvcError `invalid_request` where `baseUrl` is not an http or https URL
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

/**
 * Fetches a small JSON document from a server that the user named. The response is foreign: its size and time are
 * limited, and it cannot redirect to another host, such as one behind the user's firewall.
 */
import { SvcError } from '../../foundation/errors.ts';
import { memberOf, readJson } from '../../foundation/json.ts';
import { readAll } from './standard-input.ts';

/** Largest document, bytes after decompression. */
const MAX_DOCUMENT_BYTES = 256 * 1024;
/** Deadline for one document including redirects, milliseconds. */
export const DOCUMENT_TIMEOUT_MS = 10_000;
/** Largest number of redirects. */
const MAX_REDIRECTS = 3;

const ABSENT_STATUSES: ReadonlySet<number> = new Set([404, 405, 410]);

/** A document, or why there is none. Other errors are thrown. */
interface SmallJson {
  readonly url: URL;
  readonly value?: unknown;
  readonly absent?: string;
}

function failure(url: URL, error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  if (error instanceof Error && error.name === 'TimeoutError')
    return new SvcError('timeout', {
      message: `${url.href} did not respond within ${DOCUMENT_TIMEOUT_MS / 1000} s.`,
      cause: error,
    });
  const code = memberOf(error, 'cause', 'code');
  return new SvcError('connect_failed', {
    message: `${url.href} cannot be reached${typeof code === 'string' ? ` (${code})` : ''}.`,
    cause: error,
  });
}

/** The target of a redirect: the same host, and never from https to http. */
function redirected(from: URL, location: string | null): URL {
  const to = URL.parse(location ?? '', from);
  if (to === null) throw new SvcError('protocol_error', { message: `${from.href} redirects without a location.` });
  const secured = from.protocol === 'http:' && to.protocol === 'https:';
  if (to.hostname !== from.hostname || (to.origin !== from.origin && !secured))
    throw new SvcError('protocol_error', {
      message: `${from.href} redirects to another server: ${to.href}. Use that URL if you trust it.`,
    });
  return to;
}

async function follow(url: URL, signal: AbortSignal, redirects: number): Promise<SmallJson> {
  const response = await fetch(url, { headers: { accept: 'application/json' }, redirect: 'manual', signal });
  const { status, headers } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    if (redirects === MAX_REDIRECTS)
      throw new SvcError('protocol_error', { message: `${url.href} redirects more than ${MAX_REDIRECTS} times.` });
    return follow(redirected(url, headers.get('location')), signal, redirects + 1);
  }
  if (!response.ok) {
    await response.body?.cancel();
    if (ABSENT_STATUSES.has(status)) return { url, absent: `status ${status}` };
    throw new SvcError('protocol_error', { message: `${url.href} responded with status ${status}.` });
  }
  const tooLarge = new SvcError('too_large', { message: `${url.href} has more than ${MAX_DOCUMENT_BYTES} bytes.` });
  const value = readJson((await readAll(response.body ?? [], MAX_DOCUMENT_BYTES, tooLarge)).toString('utf8'));
  return value === undefined ? { url, absent: 'not JSON' } : { url, value };
}

/** Fetches a JSON document. @throws SvcError `connect_failed`, `timeout`, `too_large`, `protocol_error` */
export async function fetchSmallJson(url: URL, timeoutMs: number = DOCUMENT_TIMEOUT_MS): Promise<SmallJson> {
  try {
    return await follow(url, AbortSignal.timeout(timeoutMs), 0);
  } catch (error) {
    throw failure(url, error);
  }
}

/** Fetches from a registry with limits on time and size, and without redirects. */
import { hostOfUrl, isLoopbackHost } from '../../foundation/address.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';

export interface FetchLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Cancels the request. */
  readonly signal: AbortSignal;
}

/** True if the response cannot be changed on its path: https, or the loopback interface. */
export function isSafeUrl(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(hostOfUrl(url)));
}

/** Short reason for a network failure. */
function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return codeOf(cause, cause instanceof Error ? cause.message : 'unknown');
}

function failure(url: URL, error: unknown, signal: AbortSignal): SvcError {
  if (error instanceof SvcError) return error;
  if (signal.aborted) return new SvcError('cancelled', { cause: error });
  if (error instanceof Error && error.name === 'TimeoutError')
    return new SvcError('timeout', { message: `The registry at ${url.host} did not respond in time.`, cause: error });
  return new SvcError('connect_failed', {
    message: `Cannot reach the registry at ${url.host} (${reason(error)}).`,
    cause: error,
  });
}

async function readBody(url: URL, body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes)
      throw new SvcError('too_large', {
        message: `The registry sent more than ${maxBytes} bytes for ${url.pathname}.`,
      });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * The body at a URL; null if the registry responds with 404.
 * @throws SvcError `connect_failed`, `timeout`, `too_large`, `protocol_error`, `cancelled`
 */
export async function fetchBounded(url: URL, { maxBytes, timeoutMs, signal }: FetchLimits): Promise<Buffer | null> {
  try {
    // A redirect could lead to a service on this machine or in its network. Registries do not redirect.
    const response = await fetch(url, {
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    if (response.status === 200 && response.body !== null) return await readBody(url, response.body, maxBytes);
    await response.body?.cancel();
    if (response.status === 404) return null;
    throw new SvcError('protocol_error', {
      message: `The registry at ${url.host} responded with status ${response.status}.`,
    });
  } catch (error) {
    throw failure(url, error, signal);
  }
}

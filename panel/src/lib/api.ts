/** The API of the daemon, typed by the operations table. */
import type { CallInput } from '../../../src/operations/client.ts';
import type { operations } from '../../../src/operations/index.ts';
import type { OutputOf } from '../../../src/operations/operation.ts';
import { asFailure, Failure, failureOf } from './failure.ts';
import { wireRequest } from './request.ts';
import { currentToken, dropToken, tokenHeaders } from './session.ts';

type Operations = typeof operations;
export type Name = keyof Operations;
/** Conditional: otherwise the compiler compares the argument of every call with the inputs of all operations. */
export type Input<K extends Name> = K extends Name ? CallInput<Operations[K]> : never;
export type Output<K extends Name> = OutputOf<Operations[K]>;

/** Timeout of a request, milliseconds. It is longer than every timeout of the daemon. */
const TIMEOUT_MS = 120_000;

/** The base path of the viewed node: empty for this node, `/via/…` for another one. */
export function baseOf(node: string | null): string {
  return node === null ? '' : `/via/${encodeURIComponent(node)}`;
}

/** Paths that another node or an agent answers. Their rejections do not concern the token of this tab. */
const OTHERS = /^\/(?:via|aid)\//;

/**
 * Sends a request to the daemon, with the token if there is one.
 *
 * @throws Failure if the daemon does not respond or returns an error
 */
export async function request(path: string, init: RequestInit): Promise<Response> {
  const sent = currentToken();
  try {
    return await requestWith(tokenHeaders(), path, init);
  } catch (error) {
    if (asFailure(error).code === 'unauthorized' && !OTHERS.test(path)) dropToken(sent);
    throw error;
  }
}

/** As `request`, with these headers instead of the token. */
export async function requestWith(more: Record<string, string>, path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(more)) headers.set(name, value);
  let response: Response;
  try {
    const signal = init.signal ?? AbortSignal.timeout(TIMEOUT_MS);
    // Redirects are errors: the token must not reach another server.
    response = await fetch(path, {
      ...init,
      signal,
      redirect: 'error',
      headers,
    });
  } catch {
    throw new Failure(init.signal?.aborted === true ? 'cancelled' : 'daemon_unreachable', 0, '');
  }
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => undefined);
  throw failureOf(response.status, body);
}

/**
 * Calls an operation.
 *
 * @param base see `baseOf`
 * @throws Failure
 */
export async function call<K extends Name>(
  base: string,
  name: K,
  input: Input<K>,
  signal?: AbortSignal,
): Promise<Output<K>> {
  const { method, path, body } = wireRequest(ROUTES[name] ?? '', input);
  const response = await request(`${base}${path}`, {
    method,
    body,
    headers: body === null ? {} : { 'content-type': 'application/json' },
    ...(signal === undefined ? {} : { signal }),
  });
  try {
    const answer: Output<K> = await response.json();
    return answer;
  } catch {
    throw failureOf(response.status, undefined);
  }
}

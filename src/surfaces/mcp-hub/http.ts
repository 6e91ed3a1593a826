/** The hub over Streamable HTTP. */

import { randomUUID } from 'node:crypto';
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { memberOf } from '../../foundation/json.ts';
import type { StreamExchange } from '../../operations/handlers/exchange.ts';
import type { ActingAgent } from '../../operations/handlers/local-agents.ts';
import { type CancellableCalls, type HttpHandler, type ReceivedCall, serveHttp } from '../mcp/http.ts';
import { createHubServer, type HubServerDependencies } from './server.ts';

/** The header with the name of a session. */
const SESSION = 'mcp-session-id';
/** Longest accepted name of a session, characters. */
const MAX_SESSION_CHARS = 128;

/**
 * Pending calls by session and request ID. A client of a 2025 revision cancels a call with another request, and only
 * the name of its session shows which call it means. Sessions have no other state, so every name is accepted, also
 * after a restart.
 */
class PendingCalls implements CancellableCalls {
  readonly #pending = new Map<string, AbortController>();

  received({ request, response }: StreamExchange, message: unknown): ReceivedCall {
    const none: ReceivedCall = { isStreamed: false, done: () => {} };
    const method = memberOf(message, 'method');
    if (method === 'initialize') response.setHeader(SESSION, randomUUID());
    const session = request.headers[SESSION];
    const isNamed = typeof session === 'string' && session.length <= MAX_SESSION_CHARS;
    if (method === 'notifications/cancelled' && isNamed)
      this.#pending.get(keyOf(session, memberOf(message, 'params', 'requestId')))?.abort();
    if (method !== 'tools/call') return none;
    const isStreamed = memberOf(message, 'params', '_meta', 'progressToken') !== undefined;
    if (!isNamed) return { ...none, isStreamed };
    const key = keyOf(session, memberOf(message, 'id'));
    const controller = new AbortController();
    this.#pending.set(key, controller);
    const done = (): void => {
      if (this.#pending.get(key) === controller) this.#pending.delete(key);
    };
    return { signal: controller.signal, isStreamed, done };
  }
}

function keyOf(session: string, id: unknown): string {
  return `${session} ${typeof id} ${String(id)}`;
}

export interface HubHttpDependencies extends HubServerDependencies, ActingAgent {
  readonly clock: Clock;
}

/** Creates the handler of the route of the hub. */
export function createHubHandler(version: string, dependencies: HubHttpDependencies): HttpHandler {
  const { localAid } = dependencies;
  return serveHttp(
    ({ context, input }, cancelled) => {
      const named = input['local_aid'];
      const signal = cancelled === undefined ? context.signal : AbortSignal.any([context.signal, cancelled]);
      const local = (): Aid => localAid(typeof named === 'string' ? (named as Aid) : undefined);
      return createHubServer({ version, local, signal, trace: context.trace }, dependencies);
    },
    dependencies,
    new PendingCalls(),
  );
}

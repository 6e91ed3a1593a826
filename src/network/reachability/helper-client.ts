/** Requests to helpers, over connections that show the helper where this node is reachable. */

import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NodeAt, NodeRequests } from '../node-requests.ts';
import { NODE_DIAL_TIMEOUT_MS } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import { isStraight } from '../transport/path.ts';
import type { Endpoint } from '../transport/types.ts';
import { decodeHelperReply, encodeHelperRequest, type HelperReply, type HelperRequest } from './signals.ts';

/** Timeout of a request to a helper, which may have to query another node, milliseconds. */
export const HELPER_REQUEST_MS = 5_000;

interface HelperClientDependencies {
  readonly clock: Clock;
  readonly endpoint: Pick<Endpoint, 'dial'>;
  readonly pool: Pick<PeerTable, 'current' | 'upgrade'>;
  readonly nodeRequests: Pick<NodeRequests, 'request'>;
}

/**
 * Sends a repeatable request. Retries it once if its connection closed meanwhile and there is a new one.
 * @param dials true if the request can also open a new one. The path died before it closed, so the node may be back.
 */
export async function retryIfDead<T>(
  pool: Pick<PeerTable, 'current'>,
  nodeKey: Uint8Array,
  ask: () => Promise<T>,
  { signal, dials = false }: { readonly signal?: AbortSignal; readonly dials?: boolean } = {},
): Promise<T> {
  const used = pool.current(nodeKey);
  try {
    return await ask();
  } catch (error) {
    const current = pool.current(nodeKey);
    const canRetry = current === null ? dials : current !== used;
    if (signal?.aborted === true || used?.closed !== true || !canRetry) throw error;
    return await ask();
  }
}

export class HelperClient {
  readonly #deps: HelperClientDependencies;

  constructor(dependencies: HelperClientDependencies) {
    this.#deps = dependencies;
  }

  /**
   * Sends a request to a helper. The helper must see the socket that ordinary dials use, because other nodes see that
   * one too. A connection that the helper dialed shows a different socket, so this node dials an additional one.
   * @throws SvcError as `NodeRequests.request`
   */
  async request(helper: NodeAt, body: Uint8Array, signal?: AbortSignal): Promise<Uint8Array> {
    const { clock, endpoint, pool, nodeRequests } = this.#deps;
    using limit = awakeTimeout(clock, HELPER_REQUEST_MS, signal);
    const current = pool.current(helper.nodeKey)?.connection ?? null;
    if (current !== null && !(current.outbound && isStraight(current.path))) {
      const options = { timeoutMs: NODE_DIAL_TIMEOUT_MS, signal: limit.signal };
      await pool.upgrade(await endpoint.dial(helper.address, helper.nodeKey, options), limit.signal);
    }
    // If the helper dialed at the same time, its connection may stay the current one.
    const options = { signal: limit.signal, prefersOwnDial: true };
    const ask = () => nodeRequests.request('signal', helper, body, options);
    return await retryIfDead(pool, helper.nodeKey, ask, { signal: limit.signal, dials: true });
  }

  /**
   * Announces this node to a helper.
   * @throws SvcError as `request`; `protocol_error` if the answer is invalid
   */
  async hello(helper: NodeAt, signal?: AbortSignal): Promise<HelperReply> {
    return await this.#ask(helper, { kind: 'hello' }, signal);
  }

  /**
   * Makes a node dial a port of this node, at the host from which the request came.
   * @throws SvcError as `hello`
   */
  async requestDialBack(node: NodeAt, port: number): Promise<HelperReply> {
    return await this.#ask(node, { kind: 'reach', port });
  }

  async #ask(node: NodeAt, request: HelperRequest, signal?: AbortSignal): Promise<HelperReply> {
    const reply = decodeHelperReply(await this.request(node, encodeHelperRequest(request), signal));
    if (reply === null) throw new SvcError('protocol_error');
    return reply;
  }
}

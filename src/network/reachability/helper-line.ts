/** Requests to helpers, over connections that let them see where this node can be reached. */

import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NodeAt, NodeRequests } from '../node-requests.ts';
import { NODE_DIAL_TIMEOUT_MS } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import { isStraight } from '../transport/path.ts';
import type { Endpoint } from '../transport/types.ts';
import { decodeHelperReply, encodeHelperRequest, type HelperReply, type HelperRequest } from './signals.ts';

/** Time for a request to a helper, which may have to ask another node, milliseconds. */
export const HELPER_REQUEST_MS = 5_000;

interface HelperLineDependencies {
  readonly clock: Clock;
  readonly endpoint: Pick<Endpoint, 'dial'>;
  readonly pool: Pick<PeerTable, 'current' | 'upgrade'>;
  readonly nodeRequests: Pick<NodeRequests, 'request'>;
}

/**
 * Asks a node something that may be asked twice: once more where the connection turned out to be dead and another one
 * stands by then.
 */
export async function overLiving<T>(
  pool: Pick<PeerTable, 'current'>,
  nodeKey: Uint8Array,
  ask: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const used = pool.current(nodeKey);
  try {
    return await ask();
  } catch (error) {
    const current = pool.current(nodeKey);
    if (signal?.aborted === true || used?.closed !== true || current === null || current === used) throw error;
    return await ask();
  }
}

export class HelperLine {
  readonly #deps: HelperLineDependencies;

  constructor(dependencies: HelperLineDependencies) {
    this.#deps = dependencies;
  }

  /**
   * Sends a request to a helper. What it sees of us is the socket that all ordinary dials come from, as others will see
   * it: a connection that the helper itself has dialled shows it another one, so we dial one beside that.
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
    const ask = () => nodeRequests.request('signal', helper, body, { signal: limit.signal });
    return await overLiving(pool, helper.nodeKey, ask, limit.signal);
  }

  /**
   * Tells a helper that we are there.
   * @throws SvcError as `request`; `protocol_error` for an answer that is none
   */
  async hello(helper: NodeAt, signal?: AbortSignal): Promise<HelperReply> {
    return await this.#ask(helper, { kind: 'hello' }, signal);
  }

  /**
   * Has a node dial a port of ours, at the host where it sees us.
   * @throws SvcError as `hello`
   */
  async reach(node: NodeAt, port: number): Promise<HelperReply> {
    return await this.#ask(node, { kind: 'reach', port });
  }

  async #ask(node: NodeAt, request: HelperRequest, signal?: AbortSignal): Promise<HelperReply> {
    const reply = decodeHelperReply(await this.request(node, encodeHelperRequest(request), signal));
    if (reply === null) throw new SvcError('protocol_error');
    return reply;
  }
}

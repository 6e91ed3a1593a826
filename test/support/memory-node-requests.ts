/** Requests between nodes without a network: the interface of `links/`, in one process. */
import { toHex } from '../../src/foundation/bytes.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import type { NodeRequestHandler, NodeRequests } from '../../src/network/node-requests.ts';
import { plainPath } from '../../src/network/transport/path.ts';

interface Node {
  readonly nodeKey: Uint8Array;
  readonly port: number;
  handler: NodeRequestHandler | null;
  /** Number of answered requests. */
  answered: number;
}

/** Connects the nodes of one test. */
export class NodeRequestHub {
  readonly #nodes = new Map<string, Node>();

  /** The requests of one node, which others reach at `port`. */
  join(nodeKey: Uint8Array, port: number): NodeRequests {
    const node: Node = { nodeKey, port, handler: null, answered: 0 };
    this.#nodes.set(toHex(nodeKey), node);
    return {
      request: async (_kind, to, body) => {
        const other = this.#nodes.get(toHex(to.nodeKey));
        await Promise.resolve();
        if (other === undefined || other.handler === null || other.port !== to.address.port)
          throw new SvcError('connect_failed');
        other.answered++;
        return await other.handler(body, { nodeKey, path: plainPath('lan', { host: '127.0.0.1', port }) });
      },
      onRequest: (_kind, handler) => {
        node.handler = handler;
      },
    };
  }

  /** Makes a node unreachable. */
  leave(nodeKey: Uint8Array): void {
    this.#nodes.delete(toHex(nodeKey));
  }

  /** Number of requests that all nodes answered. */
  get answered(): number {
    return [...this.#nodes.values()].reduce((sum, node) => sum + node.answered, 0);
  }
}

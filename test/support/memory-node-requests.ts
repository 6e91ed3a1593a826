/** Requests between nodes without a network: what `links/` does over QUIC, in one process. */
import { toHex } from '../../src/foundation/bytes.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import type { NodeRequestHandler, NodeRequests } from '../../src/network/node-requests.ts';
import { plainPath } from '../../src/network/path.ts';

interface Node {
  readonly nodeKey: Uint8Array;
  readonly port: number;
  handler: NodeRequestHandler | null;
  /** Requests that it answered. */
  answered: number;
}

/** Where the nodes of one test find each other. */
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

  /** Takes a node off: from now on nobody reaches it. */
  leave(nodeKey: Uint8Array): void {
    this.#nodes.delete(toHex(nodeKey));
  }

  /** How many requests all nodes have answered. */
  get answered(): number {
    return [...this.#nodes.values()].reduce((sum, node) => sum + node.answered, 0);
  }
}

import type { Address } from '../foundation/address.ts';

/** A node, and where it is. */
export interface NodeAt {
  readonly nodeKey: Uint8Array;
  readonly address: Address;
}

export interface RequestOptions {
  /** Give up after this many milliseconds, though we could hear the other node. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Node-to-node requests beside links, on the same pooled connections: the DHT's large records. */
export interface NodeRequests {
  /**
   * Sends one request to a node and returns its answer, both of at most `MAX_NODE_MESSAGE_BYTES`.
   * @throws SvcError `connect_failed`, `timeout`, `protocol_error`
   */
  request(node: NodeAt, body: Uint8Array, options?: RequestOptions): Promise<Uint8Array>;
  /** Answers the requests of other nodes; set once, before the endpoint starts. */
  onRequest(handler: (body: Uint8Array, from: NodeAt) => Promise<Uint8Array>): void;
}

import type { Address } from '../foundation/address.ts';

/** Node-to-node requests beside links, on the same pooled connections: the DHT's large records. */
export interface NodeRequests {
  /**
   * Sends one request to a node and returns its answer, both of at most `MAX_NODE_MESSAGE_BYTES`.
   * @throws SvcError `connect_failed`, `timeout`, `protocol_error`
   */
  request(
    node: { readonly nodeKey: Uint8Array; readonly address: Address },
    body: Uint8Array,
    options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
  ): Promise<Uint8Array>;
  /** Answers the requests of other nodes; set once, before the endpoint starts. */
  onRequest(
    handler: (
      body: Uint8Array,
      from: { readonly nodeKey: Uint8Array; readonly address: Address },
    ) => Promise<Uint8Array>,
  ): void;
}

import type { Address } from '../foundation/address.ts';
import type { Path } from './transport/path.ts';

/** A node, and where it is. */
export interface NodeAt {
  readonly nodeKey: Uint8Array;
  readonly address: Address;
}

/**
 * What nodes ask each other: about the records of the network, and for help on the way to a third node. Each kind has
 * its own handler, and its own share of the answers: a flood of one holds up no other.
 */
export const NODE_REQUEST_KINDS = ['record', 'signal'] as const;
export type NodeRequestKind = (typeof NODE_REQUEST_KINDS)[number];

/** Answers the requests of one kind; what it throws is told to the asker by its status. */
export type NodeRequestHandler = (body: Uint8Array, from: AskingNode) => Promise<Uint8Array>;

/** A node that asks, and how it reaches us. */
export interface AskingNode {
  readonly nodeKey: Uint8Array;
  readonly path: Path;
}

export interface RequestOptions {
  /** Give up after this many milliseconds, though we could hear the other node. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Node-to-node requests beside links, on the same pooled connections. */
export interface NodeRequests {
  /**
   * Sends one request to a node and returns its answer, both of at most `MAX_NODE_MESSAGE_BYTES` of its kind.
   * @throws SvcError `connect_failed`, `timeout`, `protocol_error`, `too_large`
   */
  request(kind: NodeRequestKind, node: NodeAt, body: Uint8Array, options?: RequestOptions): Promise<Uint8Array>;
  /** Answers the requests of one kind; set once for each, before the endpoint starts. */
  onRequest(kind: NodeRequestKind, handler: NodeRequestHandler): void;
}

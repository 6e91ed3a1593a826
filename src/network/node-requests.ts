import type { Address } from '../foundation/address.ts';
import type { Path } from './transport/path.ts';

/** A node and its address. */
export interface NodeAt {
  readonly nodeKey: Uint8Array;
  readonly address: Address;
}

/**
 * Kinds of requests between nodes: for records of the network, and for help to reach a third node. Each kind has a
 * separate handler and share of the answers, so a flood of one kind does not block the other.
 */
export const NODE_REQUEST_KINDS = ['record', 'signal'] as const;
export type NodeRequestKind = (typeof NODE_REQUEST_KINDS)[number];

/** Answers the requests of one kind. The caller receives the status of a thrown error. */
export type NodeRequestHandler = (body: Uint8Array, from: AskingNode) => Promise<Uint8Array>;

/** The calling node and its path. */
export interface AskingNode {
  readonly nodeKey: Uint8Array;
  readonly path: Path;
}

export interface RequestOptions {
  /** Timeout, milliseconds. It also applies while the peer is connected. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Prefers a direct connection that this node dialed. The other node then sees the socket of ordinary dials. */
  readonly prefersOwnDial?: boolean;
}

/** Requests between nodes on the pooled connections, in addition to links. */
export interface NodeRequests {
  /**
   * Sends a request to a node and returns the answer. Both have at most `MAX_NODE_MESSAGE_BYTES` of their kind.
   * @throws SvcError `connect_failed`, `timeout`, `protocol_error`, `too_large`
   */
  request(kind: NodeRequestKind, node: NodeAt, body: Uint8Array, options?: RequestOptions): Promise<Uint8Array>;
  /** Sets the handler of a kind. Once per kind, before the endpoint starts. */
  onRequest(kind: NodeRequestKind, handler: NodeRequestHandler): void;
}

/** Connections of the QUIC engine, and further ports that the engine can use in addition to those of its endpoint. */
import type { Address } from '../../foundation/address.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { BorrowedPort } from './udp-socket.ts';

export interface EngineStream {
  /** The next bytes, at most `max`; null (or undefined) at a clean end. */
  read(max: number): Promise<Uint8Array | null | undefined>;
  /** Settles when all bytes are in the send buffer. They must not change before. */
  write(data: Uint8Array): Promise<void>;
  finishWrite(): Promise<void>;
  resetWrite(): Promise<void>;
  stopRead(): Promise<void>;
}

export interface EngineConnectionStats {
  readonly udpTxDatagrams: number;
  readonly udpTxBytes: number;
  readonly udpRxBytes: number;
  readonly pathSentPackets: number;
  readonly pathLostPackets: number;
}

export interface EngineConnection {
  /** True if a borrowed port carries it. */
  readonly isBorrowed?: boolean;
  inboundStream(): Promise<EngineStream>;
  outboundStream(): Promise<EngineStream>;
  /** `/ip4/<host>/udp/<port>/quic-v1/p2p/<peer id>`. */
  remoteMultiaddr(): string;
  rtt(): number;
  stats(): EngineConnectionStats;
  closed(): Promise<void>;
  abort(): void;
}

/* One port. */

/** Another program has bound the port since it was opened. */
export class PortTaken extends SvcError {
  constructor(cause: unknown) {
    super('connect_failed', { message: 'Another program has bound the port that was opened. Retry.', cause });
  }
}

export interface LentPortOptions {
  /** The local address to listen on: all addresses of a family, or one. */
  readonly host: string;
  readonly port: number;
  /** The key of the expected node. Other nodes are rejected. */
  readonly expectedKey: Uint8Array;
  /** The port of a helper that leads to this one (UDP over TLS). It is closed with this one. */
  readonly via?: BorrowedPort | undefined;
}

/**
 * A port that this node has opened in its NAT, and on which the QUIC engine listens now. A NAT mapping belongs to the
 * port, not to the socket, so packets need no forwarding.
 */
export interface LentPort {
  readonly port: number;
  /**
   * The first connection on which the expected node opens a stream: of several connections, that node uses this one.
   * The port remains open until the connection closes.
   * @throws SvcError `timeout`, `cancelled`; the port is closed then. `close` settles when it is free, because the
   *   engine finishes pending handshakes first
   */
  connection(timeoutMs?: number, signal?: AbortSignal): Promise<EngineConnection>;
  /** Settles when the port is no longer used: it was closed without a connection, or the connection was closed. */
  readonly ended: Promise<void>;
  /**
   * Closes the port unless `connection` has returned one. `connection` rejects with `cancelled`. Settles when the port
   * is free.
   */
  close(): Promise<void>;
}

/* Many ports at the same time. */

/** Maximum duration of a round, milliseconds. */
export const BIRTHDAY_TIMEOUT_MS = 5_000;
/**
 * Minimum interval between the starts of rounds: until then the engine still retries the ports of the previous round.
 */
export const BIRTHDAY_SPACING_MS = 20_000;

/** Rounds with one node. The probability that all fail is 1 in 200,000. */
export const BIRTHDAY_ROUNDS = 3;

/**
 * Sockets that dial one address at the same time. A symmetric NAT gives each socket a different external port, and with
 * high probability one is a port that the peer has opened (birthday paradox).
 */
export interface ClientPool {
  /** Milliseconds until the next round may begin. */
  readonly waitMs: number;
  /** Starts creating the sockets before they are needed. Their creation is as slow as several round trips. */
  prepare(): void;
  /**
   * Dials an address from all sockets and keeps the first connection. The peer learns which one from the stream that
   * the caller opens next.
   * @throws SvcError `rate_limited` if the previous round is too recent, `timeout`, `cancelled`, `connect_failed`
   */
  dial(address: Address, expectedKey: Uint8Array, signal?: AbortSignal): Promise<EngineConnection>;
}

/** Helpers that lend UDP ports to this node while its own UDP does not work, and why one does not. */
import type { Address } from '../../foundation/address.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Listeners } from '../../foundation/listeners.ts';
import type { UdpSocket } from './udp-socket.ts';

/** Stable codes: `details.cause` of the error, and in the status. */
export const HELPER_FAILURES = [
  'name_unresolved',
  'tcp_refused',
  'tcp_silent',
  'proxy_invalid',
  'proxy_not_used',
  'proxy_unreachable',
  'proxy_silent',
  'proxy_wants_password',
  'proxy_command_failed',
  'proxy_refuses',
  'proxy_cannot_connect',
  'certificate',
  'certificate_refused',
  'tls_failed',
  'portal',
  'upgrade_stripped',
  'not_a_helper',
  'helper_full',
  'rate_limited',
  'other_network',
  'other_node',
  'forwards_nothing',
  'lost',
] as const;
export type HelperFailureCode = (typeof HELPER_FAILURES)[number];

export class HelperFailure extends SvcError {
  readonly failure: HelperFailureCode;

  constructor(failure: HelperFailureCode, message: string, cause?: unknown) {
    super('connect_failed', { message, details: { cause: failure }, ...(cause === undefined ? {} : { cause }) });
    this.failure = failure;
  }
}

/** The TCP address of a node that may help. */
export interface HelperTarget extends Address {
  /** The key that it must prove; missing to accept any node. */
  readonly nodeKey?: Uint8Array;
}

/** A connection to a helper. */
export interface HelperSession {
  readonly target: HelperTarget;
  readonly hello: {
    readonly nodeKey: Uint8Array;
    /** True if the ports of an earlier connection are open again. */
    readonly isResumed: boolean;
  };
  /** The IP address of the helper; null if only its name is known. */
  readonly host: string | null;
  /** `host:port` of the proxy; null for a direct connection. */
  readonly proxy: string | null;
  /** True if a machine between this node and the helper has decrypted TLS. */
  readonly isInspected: boolean;
  close(): void;
}

/** A helper whose ports are borrowed, and a spare in another network. Its methods take sessions of `open`. */
export interface Borrowing {
  /** The external addresses of the ports have changed, so connections through them are dead. */
  readonly moved: Listeners<[]>;
  /** No other node has answered through the ports for a while. */
  readonly silent: Listeners<[]>;
  /** The last helper is lost. */
  readonly lost: Listeners<[HelperFailure]>;
  /** The connection in use; null without one, and while it is opened again. */
  readonly session: HelperSession | null;
  readonly spare: HelperSession | null;
  /** True while new datagrams use borrowed ports, which stay open until `disconnect`. */
  readonly isActive: boolean;
  /** False if only IPv4 needs a helper, because this machine has IPv6 only. */
  carriesIpv6: boolean;
  /** True if the user has set an HTTP proxy. */
  readonly hasProxy: boolean;
  /**
   * Connects to a helper, and closes nothing. Resumes the ports of a connection that was just lost.
   * @throws HelperFailure, or the signal's reason
   */
  open(target: HelperTarget, signal: AbortSignal): Promise<HelperSession>;
  /** To be called after a change of network: the connection may be dead. */
  reopen(): void;
  /** Later datagrams use this connection. */
  use(session: HelperSession): void;
  /** A socket that shows what a connection carries. */
  trialSocket(session: HelperSession): UdpSocket;
  /** Uses the spare in place of the current helper. */
  moveToSpare(): void;
  /** Closes the spare. */
  dropSpare(): void;
  /** Keeps a connection for the loss of the current one. */
  keepSpare(session: HelperSession): void;
  /** New datagrams use UDP again. Connections through borrowed ports live on. */
  leave(): void;
  /** Closes the borrowed ports and all connections to helpers. */
  disconnect(): void;
}

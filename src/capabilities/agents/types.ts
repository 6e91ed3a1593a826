/** Types of the registry of local agents. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { KeyStore } from '../../foundation/keys/key-store.ts';

/** Stores operational keys in files that only their owner can read. */
export type KeyVault = Pick<KeyStore, 'put' | 'get' | 'delete' | 'list'>;

/** Result of a TCP connection to the service of an agent. */
export interface TcpCheck {
  readonly ok: boolean;
  /** Milliseconds until the connection was accepted or failed. */
  readonly ms: number;
  /** The reason of the failure: `ECONNREFUSED`, `timeout` and similar codes. */
  readonly error?: string;
}

/** A local agent, as this capability describes it. */
export interface LocalAgent {
  readonly aid: Aid;
  readonly serviceTcp: string;
  /** The service that a temporary one replaced. Null if no temporary service is bound. */
  readonly serviceBefore: string | null;
  /** The latest check of the bound service. Null if there is no service or it was not checked yet. */
  readonly serviceOk: boolean | null;
  /** Why the last check of the service failed. */
  readonly serviceError?: string | undefined;
  readonly heartbeatSecondsAgo: number;
  /**
   * Validity of the delegation, Unix seconds; an `expiresAt` of 0 means never. The same object until the agent changes.
   */
  readonly window: { readonly issuedAt: number; readonly expiresAt: number };
}

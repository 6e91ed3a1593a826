/** What the registry of local agents needs from others. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { KeyStore } from '../../foundation/keys/key-store.ts';

/** Where operational keys are kept: files that only their owner reads. */
export type KeyVault = Pick<KeyStore, 'put' | 'get' | 'delete' | 'list'>;

/** What the service of an agent answered to a TCP connection. */
export interface TcpCheck {
  readonly ok: boolean;
  /** Milliseconds until it answered. */
  readonly ms: number;
  /** Why not: `ECONNREFUSED`, `timeout` and the like. */
  readonly error?: string;
}

/** A local agent as this capability knows it. */
export interface LocalAgent {
  readonly aid: Aid;
  readonly serviceTcp: string;
  /** What a temporary service replaced; null while no temporary one is bound. */
  readonly serviceBefore: string | null;
  /** What was last seen of the bound service; null where nothing is bound or was looked at. */
  readonly serviceOk: boolean | null;
  readonly heartbeatSecondsAgo: number;
  /** When the delegation is valid, Unix seconds; an end of 0 means never. The same object until the agent changes. */
  readonly window: { readonly issuedAt: number; readonly expiresAt: number };
}

/** What a local address of a remote agent is made of. */
import type { Aid } from '../../foundation/identity/aid.ts';

/** Whose address it is, and who calls from it. */
export interface OriginRequest {
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  readonly accessToken?: string | undefined;
  /** 0: the system chooses one, which it then keeps. */
  readonly port: number;
}

/** Why a request or a connection could not be served. */
export interface OriginFailure {
  /** A code of the catalogue. */
  readonly code: string;
  readonly message: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** What serves programs at an address. */
export interface OriginListener {
  readonly port: number;
  readonly connections: number;
  /** Requests and connections of other protocols that were served since the start. */
  readonly served: number;
  readonly lastError: OriginFailure | null;
  /** Cuts the connections; the port is free when this settles. */
  close(): Promise<void>;
}

/** Whom a listener calls, as whom: read at each request. */
export type OriginTarget = () => Omit<OriginRequest, 'port'> & { readonly id: string };

/** Begins to serve on a port of 127.0.0.1. @throws SvcError `port_in_use` */
export type ServeOrigin = (target: OriginTarget, port: number) => Promise<OriginListener>;

export interface OriginInfo {
  readonly id: string;
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** False where its port was taken when the daemon started. */
  readonly isServed: boolean;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly connections: number;
  readonly served: number;
  readonly lastError: OriginFailure | null;
}

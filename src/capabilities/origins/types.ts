/** Types of the local addresses of remote agents. */
import type { Aid } from '../../foundation/identity/aid.ts';

/** The remote agent, and the local agent that calls it. */
export interface OriginRequest {
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  readonly accessToken?: string | undefined;
  /** 0: the system chooses a port, which the address keeps. */
  readonly port: number;
}

/** The reason why a request or a connection failed. */
export interface OriginFailure {
  /** An error code. */
  readonly code: string;
  readonly message: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Accepts requests of programs at an address. */
export interface OriginListener {
  readonly port: number;
  readonly connections: number;
  /** Requests, and connections of other protocols, since the start. */
  readonly served: number;
  readonly lastError: OriginFailure | null;
  /** Closes all connections. The port is free when this resolves. */
  close(): Promise<void>;
}

/** The remote agent and the caller of a listener, read at each request. */
export type OriginTarget = () => Omit<OriginRequest, 'port'> & { readonly id: string };

/** Starts listening on a port of 127.0.0.1. @throws SvcError `port_in_use` */
export type ServeOrigin = (target: OriginTarget, port: number) => Promise<OriginListener>;

export interface OriginInfo {
  readonly id: string;
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** False if its port was in use when the daemon started. */
  readonly isServed: boolean;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly connections: number;
  readonly served: number;
  readonly lastError: OriginFailure | null;
}

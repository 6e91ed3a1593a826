/** Ports of our router that lead to ports of ours, and the ways to ask for them. */
import type { Address } from '../../../foundation/address.ts';
import type { MappingProtocol } from '../../../foundation/domain/reach.ts';

/** The router, and where we stand in its network. */
export interface Gateway {
  /** IPv4 address of the router; null where the system does not say. */
  readonly host: string | null;
  /** Our IPv4 address in its network. */
  readonly ownHost: string;
}

/** A UDP port that the router gives us. */
export interface GrantedPort {
  /** Where packets come in, as the router has it: whoever reads it asks how far that reaches. */
  readonly external: Address;
  /** Seconds from now; at least 1. */
  readonly lifetimeS: number;
}

/** A router that grants ports by one of the protocols. */
export interface PortGrantor {
  readonly protocol: MappingProtocol;
  /**
   * Asks for a UDP port, or for more time for one that was granted.
   * @param suggestedPort the outer port that we would like; the router may give another
   * @throws SvcError `connect_failed` where the router does not answer or refuses, `cancelled`
   */
  grant(internalPort: number, suggestedPort: number, lifetimeS: number, signal: AbortSignal): Promise<GrantedPort>;
  /**
   * Gives a port back.
   * @throws SvcError as `grant`
   */
  release(internalPort: number, externalPort: number, signal: AbortSignal): Promise<void>;
}

import type { Socket } from 'node:net';

/** Looks at the server names of TLS connections first: some of them are for others. */
export interface ServerNameRouter {
  /** False if it needs no connection. */
  readonly isOn: boolean;
  /**
   * Handles a connection of an IP address.
   * @param keep called if it is for this node, with its bytes in the socket, and the address of the client if a web server
   *   has named it
   */
  route(socket: Socket, peer: string, keep: (source: string | null) => void): void;
}

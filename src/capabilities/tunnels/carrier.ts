/** What carries a TCP connection to the other side of a tunnel: a link or several as a stream, or a lasting connection. */
import type { Socket } from 'node:net';
import { LastingConnection } from './lasting/lasting-connection.ts';
import { type SpliceLink, type SpliceObserver, splice } from './splice.ts';

export type Carrier = SpliceLink | LastingConnection;

/**
 * Joins a TCP connection and what carries it; neither may be used otherwise afterwards.
 * @param awaitsStatus the first byte of the other side says whether it could connect
 */
export function join(socket: Socket, carrier: Carrier, observer: SpliceObserver, awaitsStatus = false): void {
  if (carrier instanceof LastingConnection) carrier.join(socket, observer, awaitsStatus);
  else splice(socket, carrier, observer, awaitsStatus);
}

/** Resources of the machine that the record network uses, so that a simulator can replace them. */
import { randomFillSync } from 'node:crypto';
import { type Clock, systemClock } from '../../../foundation/clock.ts';
import { type LentPortAddresses, type SocketFactory, udxSockets } from '../../transport/udp-socket.ts';

export interface RpcWorld {
  /** Times requests, tokens and pings. */
  readonly clock: Clock;
  readonly createSocket: SocketFactory;
  /** Random bytes of this length. */
  readonly randomBytes: (length: number) => Uint8Array;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  /** Default: no lent ports. */
  readonly lentPorts?: LentPortAddresses;
}

/** The machine itself. */
export function machine(): RpcWorld {
  return {
    clock: systemClock,
    createSocket: udxSockets(),
    randomBytes: (length) => randomFillSync(new Uint8Array(length)),
    random: Math.random,
  };
}

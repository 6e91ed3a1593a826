/** Time and network of the machine. The simulator replaces them. */
import { type Clock, systemClock } from '../foundation/clock.ts';
import { machine, type RpcWorld } from '../network/records/rpc/world.ts';
import type { QuicEngine } from '../network/transport/quic/engine.ts';

export interface Machine {
  readonly clock: Clock;
  /** For the record network. Its sockets are also used to punch holes into NATs, and to relay. */
  readonly rpc: RpcWorld;
  /** Default: the native engine. */
  readonly engine?: QuicEngine;
  /** How often the QUIC endpoint adapts the number of pending handshakes, milliseconds. Default: as for a flood. */
  readonly adaptHandshakesMs?: number;
  /** False if UDP sockets cannot carry bulk lanes. */
  readonly hasBulkLanes: boolean;
  /** False if UDP over TLS is never used. */
  readonly hasTls: boolean;
  /** False if memory is never returned to the system. */
  readonly releasesMemory: boolean;
}

/** The machine on which this process runs. */
export function thisMachine(): Machine {
  return {
    clock: systemClock,
    rpc: machine(),
    hasBulkLanes: true,
    hasTls: true,
    releasesMemory: true,
  };
}

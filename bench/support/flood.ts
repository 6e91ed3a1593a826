/** A flood and its target. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Address } from '../../src/foundation/address.ts';

/** The attacked daemon, as known to strangers. */
export interface Target {
  readonly dht: Address;
  readonly quic: Address;
  readonly api: Address;
  /** The key of its node, in hex. */
  readonly nodeKey: string;
  /** A separate agent that only accepts callers with a secret. */
  readonly guarded: string;
  /** An agent whose plain web service everyone may call. */
  readonly open: string;
  /** A service name with 1,000 records on this node. */
  readonly service: string;
}

/** Sends until the signal; returns the number of requests. */
export type RunFlood = (until: AbortSignal, sent: (count: number) => void) => Promise<void>;

/** Expensive preparation, so that it does not slow the flood. */
export type Flood = (target: Target) => Promise<RunFlood>;

/** Milliseconds between two batches of due requests. */
const TICK_MS = 2;

/** Sends at a constant rate. */
export async function paced(perSecond: number, until: AbortSignal, send: (index: number) => void): Promise<void> {
  const started = performance.now();
  for (let sent = 0; !until.aborted; ) {
    const due = ((performance.now() - started) / 1000) * perSecond;
    while (sent < due) send(sent++);
    await delay(TICK_MS);
  }
}

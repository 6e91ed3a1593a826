/** One attempt of a pair: from no connection to echoed bytes, then to the best path. */
import { setTimeout as delay } from 'node:timers/promises';
import { part } from './parting.ts';
import { promised } from './places.ts';
import type { Slot } from './schedule.ts';
import type { World } from './world.ts';

/** Deadline for a direct path after a relay: three rounds of random ports, milliseconds. */
const DIRECT_WITHIN_MS = 65_000;
const LOOK_MS = 100;
const RELAYED = new Set(['relay', 'turn']);

interface Tunnel {
  readonly id: string;
  readonly listen: string;
  readonly path: string;
}

/** The result of an attempt. */
export interface Tried {
  /** Time until the tunnel was established, milliseconds. */
  readonly ms: number;
  /** The first and the last path. Empty if not reached. */
  readonly first: string;
  readonly last: string;
  /** Time until the last path was in use, milliseconds. */
  readonly lastMs: number;
  /** Without relays, if a relay is the only path: status and time of the response. */
  readonly refusal?: { readonly status: number; readonly ms: number };
  readonly error?: string;
}

async function timed<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly ms: number }> {
  const began = performance.now();
  const value = await work();
  return { value, ms: performance.now() - began };
}

/** Runs one attempt and closes all connections between the two nodes. */
export async function tryPair(world: World, { pair, copy }: Slot): Promise<Tried> {
  const caller = world.party('caller', pair.caller, copy);
  const called = world.party('called', pair.called, copy);
  await part(caller, called);
  const open = `/tunnel/${called.aid}`;
  let refusal: Tried['refusal'];
  if (promised(pair) === 'relay') {
    const { value, ms } = await timed(() => caller.daemon.ask('POST', open, { disable_relay: true }));
    refusal = { status: value.status, ms };
    await part(caller, called);
  }
  const began = performance.now();
  const { value, ms } = await timed(() => caller.daemon.ask('POST', open, { local_aid: caller.aid }));
  const common = { ms, ...(refusal === undefined ? {} : { refusal }) };
  const failed = (error: string): Tried => ({ ...common, first: '', last: '', lastMs: ms, error });
  if (value.status >= 300) return failed(`${value.status} ${JSON.stringify(value.body)}`);
  const { id, listen, path: first } = value.body as Tunnel;
  try {
    const echoed = await caller.daemon.echo(listen, 'there and back');
    if (echoed !== 'there and back') return failed(`the service said ${JSON.stringify(echoed)}`);
    const path = async (): Promise<string> => (await caller.daemon.call<Tunnel>('GET', `/tunnel/${id}`)).path;
    let last = await path();
    let lastMs = last === first ? ms : performance.now() - began;
    while (promised(pair) === 'direct' && RELAYED.has(last) && performance.now() - began < DIRECT_WITHIN_MS) {
      await delay(LOOK_MS);
      last = await path();
      lastMs = performance.now() - began;
    }
    return { ...common, first, last, lastMs };
  } catch (error) {
    return failed(error instanceof Error ? error.message : 'unknown');
  } finally {
    await caller.daemon.ask('POST', `/tunnel/${id}/reset`);
    await caller.daemon.ask('DELETE', `/tunnel/${id}`);
  }
}

export function isRelayedPath(path: string): boolean {
  return RELAYED.has(path);
}

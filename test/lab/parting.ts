/** Leaves no connection between two nodes, so that the next dial begins from nothing. */
import { setTimeout as delay } from 'node:timers/promises';
import type { LabDaemon } from '../support/lab/daemons.ts';

/** Looks until two nodes are apart, from one to the next (milliseconds), and after how many they are parted again. */
const MAX_DROPS = 240;
const DROP_LOOK_MS = 250;
const DROP_EVERY = 48;
export interface Party {
  readonly daemon: LabDaemon;
  readonly aid: string;
  /** The node itself, as lists of connections name it. */
  readonly node: string;
}

async function isConnected(one: Party, other: Party): Promise<boolean> {
  const { connections } = await one.daemon.call<{ connections: { node: string }[] }>('GET', '/debug/stats');
  return connections.some(({ node }) => node === other.node);
}

/** Drops the connections that stand between two nodes, which may have come by what they tell each other as nodes. */
async function drop(caller: Party, called: Party): Promise<void> {
  const { status, body } = await caller.daemon.ask('POST', `/tunnel/${called.aid}`, {});
  if (status >= 300) return;
  const { id } = body as { readonly id: string };
  await caller.daemon.ask('POST', `/tunnel/${id}/reset`);
  await caller.daemon.ask('DELETE', `/tunnel/${id}`);
}

/** Ends what connects two nodes, and waits until neither has a connection to the other. */
export async function part(caller: Party, called: Party): Promise<void> {
  const areConnected = async (): Promise<boolean> =>
    (await isConnected(caller, called)) || (await isConnected(called, caller));
  for (let tried = 0; await areConnected(); tried++) {
    if (tried === MAX_DROPS) throw new Error('the two nodes stay connected');
    // What is dropped ends when it has been idle for a moment.
    if (tried % DROP_EVERY === 0) await drop(caller, called);
    await delay(DROP_LOOK_MS);
  }
}

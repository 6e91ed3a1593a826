/** Closes all connections between two nodes, so that the next dial starts from scratch. */
import { setTimeout as delay } from 'node:timers/promises';
import type { LabDaemon } from '../support/lab/daemons.ts';

/**
 * Largest number of polls until two nodes are separated, polling interval in milliseconds, and polls between two
 * attempts.
 */
const MAX_DROPS = 240;
const DROP_LOOK_MS = 250;
const DROP_EVERY = 48;
export interface Party {
  readonly daemon: LabDaemon;
  readonly aid: string;
  /** The node AID in lists of connections. */
  readonly node: string;
}

async function isConnected(one: Party, other: Party): Promise<boolean> {
  const { connections } = await one.daemon.call<{ connections: { node: string }[] }>('GET', '/debug/stats');
  return connections.some(({ node }) => node === other.node);
}

/** Drops the connections between two nodes. Node-level messages may have opened new ones. */
async function drop(caller: Party, called: Party): Promise<void> {
  const { status, body } = await caller.daemon.ask('POST', `/tunnel/${called.aid}`, {});
  if (status >= 300) return;
  const { id } = body as { readonly id: string };
  await caller.daemon.ask('POST', `/tunnel/${id}/reset`);
  await caller.daemon.ask('DELETE', `/tunnel/${id}`);
}

/** Closes the links of two nodes, and waits until neither has a connection to the other. */
export async function part(caller: Party, called: Party): Promise<void> {
  const areConnected = async (): Promise<boolean> =>
    (await isConnected(caller, called)) || (await isConnected(called, caller));
  for (let tried = 0; await areConnected(); tried++) {
    if (tried === MAX_DROPS) throw new Error('the two nodes stay connected');
    // A dropped connection closes after a moment without use.
    if (tried % DROP_EVERY === 0) await drop(caller, called);
    await delay(DROP_LOOK_MS);
  }
}

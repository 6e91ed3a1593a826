/* oxlint-disable no-underscore-dangle -- dht-rpc decides by its own timetable when a node joins the tables; we decide otherwise, and these are the few of its private members that it takes. */
/** Everything that we touch of dht-rpc beyond its public interface, in one place. */
import type DHT from 'dht-rpc';

/** The unit of `TableNode.seen`, milliseconds. */
const TICK_MS = 5000;

/** How many milliseconds ago a node of the table was last heard. */
export function silenceMs(dht: DHT, node: DHT.TableNode): number {
  return (dht._tick - node.seen) * TICK_MS;
}

export function removeNode(dht: DHT, node: DHT.TableNode): void {
  dht._removeNode(node);
}

/** Nodes in an answer to the engine's own question for those near a target: with more it would be over three times as long. */
const MAX_NAMED = 17;

/** Has the engine name no more nodes than that. The table is another one after each change of our address. */
export function shortenAnswers({ table }: DHT): void {
  const closest = table.closest.bind(table);
  table.closest = (target, count = MAX_NAMED) => closest(target, count);
}

/** Makes `address` the node's own: it answers with the routing id that follows, from its server socket. */
export async function joinTables(dht: DHT, address: DHT.Address): Promise<void> {
  const Sampler = dht._nat.constructor;
  dht._nat = new Sampler();
  dht._nat.add(address.host, address.port);
  dht.firewalled = false;
  dht.io.firewalled = false;
  dht.ephemeral = true;
  dht.io.ephemeral = true;
  await dht._updateNetworkState();
  shortenAnswers(dht);
}

/** Makes the node answer without a routing id, and ask from its client socket. */
export function leaveTables(dht: DHT): void {
  dht.firewalled = true;
  dht.io.firewalled = true;
  dht.ephemeral = true;
  dht.io.ephemeral = true;
}

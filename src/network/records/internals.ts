/* oxlint-disable no-underscore-dangle -- dht-rpc decides by its own timetable when a node joins the tables; we decide otherwise, and these are the few of its private members that it takes. */
/** Everything that we touch of dht-rpc beyond its public interface, in one place. */
import type DHT from 'dht-rpc';

/** The unit of `TableNode.seen` and `added`, milliseconds. */
const TICK_MS = 5000;

/** How many milliseconds ago a node of the table was last heard. */
export function silenceMs(dht: DHT, node: DHT.TableNode): number {
  return (dht._tick - node.seen) * TICK_MS;
}

/** For how many milliseconds a node has been in the table. */
export function ageMs(dht: DHT, node: DHT.TableNode): number {
  return (dht._tick - node.added) * TICK_MS;
}

export function removeNode(dht: DHT, node: DHT.TableNode): void {
  dht._removeNode(node);
}

/** Who is to leave a full row so that another node has room; null where all stay. */
type Choice = (row: readonly DHT.TableNode[], newcomer: DHT.TableNode) => DHT.TableNode | null;

/** Nodes in an answer to the engine's own question for those near a target: with more it would be over three times as long. */
const MAX_NAMED = 17;
/** Nodes in a row of the table: more than the blocks that one attacker is likely to have. */
const ROW_NODES = 40;

const tended = new WeakSet<DHT.Table>();

/**
 * Has the engine name no more nodes than that, and a full row make room for who comes. To be called at the start and
 * after each change of our address: the table is another one then.
 */
export function tendTable(dht: DHT, toLeave: Choice): void {
  const { table } = dht;
  if (tended.has(table)) return;
  tended.add(table);
  table.k = ROW_NODES;
  const closest = table.closest.bind(table);
  table.closest = (target, count = MAX_NAMED) => closest(target, count);
  const watch = (row: DHT.TableRow): void => {
    row.on('full', (newcomer) => {
      const leaving = toLeave(row.nodes, newcomer);
      if (leaving === null) return;
      removeNode(dht, leaving);
      dht._addNode(newcomer);
    });
  };
  for (const row of table.rows) if (row !== undefined) watch(row);
  table.on('row', watch);
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
}

/** Makes the node answer without a routing id, and ask from its client socket. */
export function leaveTables(dht: DHT): void {
  dht.firewalled = true;
  dht.io.firewalled = true;
  dht.ephemeral = true;
  dht.io.ephemeral = true;
}

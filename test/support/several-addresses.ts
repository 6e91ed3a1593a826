/**
 * Runs in a network namespace with loopback and one LAN address: nodes that listen on all addresses, on loopback, or on
 * the LAN address, each pair in a separate network. Prints the problems as one JSON list.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RECORD } from '../../src/foundation/records/types.ts';
import type { RecordDht } from '../../src/network/records/record-dht.ts';
import { LIMIT_MS } from './eventually.ts';
import { NodeRequestHub } from './memory-node-requests.ts';
import { endpointRecord } from './records.ts';
import { dhtNode, type TestNode } from './testnet-dht.ts';

const [lan = ''] = process.argv.slice(2);
const LISTEN = { default: '0.0.0.0', loopback: '127.0.0.1', lan } as const;
type Kind = keyof typeof LISTEN;
const KINDS: readonly Kind[] = ['default', 'loopback', 'lan'];
/** Number of record exchanges during which nothing may change. */
const EXCHANGES = 10;

/** The address of a node that another one learns. */
function contact(of: Kind, by: Kind): string {
  if (of !== 'default') return LISTEN[of];
  return by === 'lan' ? lan : '127.0.0.1';
}

async function within(what: string, holds: () => boolean): Promise<string[]> {
  for (const until = performance.now() + LIMIT_MS; performance.now() < until; await delay(20)) if (holds()) return [];
  return [what];
}

const hasPeer = (dht: RecordDht) => (): boolean => dht.reachability().ready && dht.reachability().inRoutingTables;

/** Checks that each node can read the other's records. */
async function share(a: RecordDht, b: RecordDht, what: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const [writer, reader, way] of [
    [a, b, 'the first to the second'],
    [b, a, 'the second to the first'],
  ] as const) {
    const { key, record } = endpointRecord();
    await writer.put(key, record).catch(() => wrong.push(`${what}: no record of ${way} is stored`));
    const found = await reader.get(key, RECORD.endpoints);
    if (found === null) wrong.push(`${what}: no record of ${way} is found`);
  }
  return wrong;
}

async function pair(first: Kind, second: Kind): Promise<string[]> {
  const what = `${first} and ${second}`;
  const hub = new NodeRequestHub();
  const network = `${what} ${Math.random()}`;
  let a = dhtNode(hub, { listen: { host: LISTEN[first], port: 0 }, network });
  await a.dht.start();
  const portA = a.dht.address.port;
  const options = (port: number) => ({
    listen: { host: LISTEN[second], port },
    bootstrap: [{ host: contact(first, second), port: portA }],
    network,
  });
  let b = dhtNode(hub, options(0));
  await b.dht.start();
  const portB = b.dht.address.port;
  const both = async (when: string): Promise<string[]> => {
    const stand = (
      await Promise.all([
        within(`${what}, ${when}: the first finds no node`, hasPeer(a.dht)),
        within(`${what}, ${when}: the second finds no node`, hasPeer(b.dht)),
      ])
    ).flat();
    return stand.length > 0 ? stand : await share(a.dht, b.dht, `${what}, ${when}`);
  };
  const again = async (node: TestNode, next: TestNode): Promise<TestNode> => {
    await node.dht.stop();
    await next.dht.start();
    return next;
  };
  const wrong = await both('fresh');
  b = await again(b, dhtNode(hub, options(portB)));
  wrong.push(...(await both('the second started again')));
  a = await again(
    a,
    dhtNode(hub, {
      listen: { host: LISTEN[first], port: portA },
      bootstrap: [{ host: contact(second, first), port: portB }],
      network,
    }),
  );
  wrong.push(...(await both('the first started again')));
  await Promise.all([a.dht.stop(), b.dht.stop()]);
  return wrong;
}

/** A node on loopback joins a network through its LAN address. */
async function joinsLan(): Promise<string[]> {
  const hub = new NodeRequestHub();
  const network = `joins ${Math.random()}`;
  const add = async (kind: Kind, to?: RecordDht): Promise<RecordDht> => {
    const { dht } = dhtNode(hub, {
      listen: { host: LISTEN[kind], port: 0 },
      bootstrap: to === undefined ? [] : [{ host: kind === 'loopback' ? '127.0.0.1' : lan, port: to.address.port }],
      network,
    });
    await dht.start();
    return dht;
  };
  const first = await add('default');
  const others = [await add('default', first), await add('default', first)];
  const wrong = (
    await Promise.all([first, ...others].map((dht, i) => within(`node ${i} of the LAN is alone`, hasPeer(dht))))
  ).flat();
  const isOnLan = (): boolean => first.reachability().observed.some(({ host }) => host === lan);
  wrong.push(...(await within('the first node is not listed under its LAN address', isOnLan)));
  const latecomer = await add('loopback', first);
  wrong.push(...(await within('the late node on loopback finds no other node', hasPeer(latecomer))));
  let flaps = 0;
  first.onReachability(() => {
    if (!isOnLan()) flaps++;
  });
  for (let i = 0; i < EXCHANGES; i++) wrong.push(...(await share(latecomer, first, 'latecomer and first')));
  if (flaps > 0 || !isOnLan()) wrong.push('the first node gave up its LAN address for loopback');
  await Promise.all([first, ...others, latecomer].map((dht) => dht.stop()));
  return wrong;
}

const pairs = KINDS.flatMap((first) => KINDS.map((second) => pair(first, second)));
const wrong = (await Promise.all([...pairs, joinsLan()])).flat();
console.log(JSON.stringify(wrong));

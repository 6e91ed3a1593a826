/** The record network: 60 real nodes on the loopback interface, all in this process. */
import { RECORD } from '../src/foundation/records/types.ts';
import { eventually } from '../test/support/eventually.ts';
import { newIdentity } from '../test/support/identities.ts';
import { endpointRecord, type Published, serviceRecord } from '../test/support/records.ts';
import { DhtTestnet, type TestNode } from '../test/support/testnet-dht.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const NODES = 60;
/** A routing table has at most 20 nodes of each half of the network, so it does not contain all nodes. */
const SETTLED_PEERS = 30;
const SAMPLES = 150;
const WARM_UP = 30;
const PROVIDERS = 200;
const LISTS = 20;
const SERVICE = 'lang.translate';

async function time(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index % items.length];
  if (item === undefined) throw new RangeError('an empty list');
  return item;
}

function latency(what: string, samples: readonly number[], p: number, aimMs?: number): BenchRow {
  const value = quantile(samples, p);
  const row = { what: `${what}, p${p * 100}`, value, unit: 'ms' };
  return aimMs === undefined ? row : { ...row, aim: `≤ ${aimMs} ms`, ok: value <= aimMs };
}

async function publish(
  nodes: readonly TestNode[],
  count: number,
): Promise<{ samples: number[]; published: Published[] }> {
  const published = Array.from({ length: count }, () => endpointRecord());
  const samples: number[] = [];
  for (const [i, { key, record }] of published.entries())
    samples.push(
      await time(async () => {
        const { replicas } = await at(nodes, i * 7).dht.put(key, record);
        if (replicas < 8) throw new Error(`only ${replicas} nodes acknowledged`);
      }),
    );
  return { samples, published };
}

/** Reads records that no cache knows: each from a node that has not seen it. */
async function resolve(nodes: readonly TestNode[], published: readonly Published[]): Promise<number[]> {
  const samples: number[] = [];
  for (const [i, { key }] of published.entries())
    samples.push(
      await time(async () => {
        if ((await at(nodes, i * 11 + 5).dht.get(key, RECORD.endpoints)) === null) throw new Error('lost a record');
      }),
    );
  return samples;
}

async function discover(nodes: readonly TestNode[], key: Uint8Array, lists: number): Promise<number[]> {
  const samples: number[] = [];
  for (let i = 0; i < lists; i++)
    samples.push(
      await time(async () => {
        const { length } = await at(nodes, i).dht.list(key, [RECORD.service]);
        if (length !== PROVIDERS) throw new Error(`found ${length} of ${PROVIDERS}`);
      }),
    );
  return samples;
}

export async function run(): Promise<BenchTable> {
  const rows: BenchRow[] = [];
  const startedAt = performance.now();
  await using net = await DhtTestnet.start(NODES);
  rows.push({ what: `${NODES} nodes up and in the tables`, value: performance.now() - startedAt, unit: 'ms' });
  await eventually('the tables are filled', () =>
    net.nodes.every(({ dht }) => dht.reachability().peers >= SETTLED_PEERS),
  );
  await resolve(net.nodes, (await publish(net.nodes, WARM_UP)).published);

  const alive = await publish(net.nodes, SAMPLES);
  rows.push(latency('publish, 8 acknowledgements', alive.samples, 0.5, 20), latency('publish', alive.samples, 0.95));
  const reads = await resolve(net.nodes, alive.published);
  rows.push(latency('resolve, cold', reads, 0.5, 5), latency('resolve, cold', reads, 0.95));

  const providers = Array.from({ length: PROVIDERS }, () => serviceRecord(SERVICE, newIdentity()));
  for (const [i, { key, record }] of providers.entries()) await at(net.nodes, i).dht.put(key, record);
  const { key } = at(providers, 0);
  rows.push(
    latency(
      `discover ${PROVIDERS} providers, each time from another node`,
      await discover(net.nodes, key, LISTS),
      0.5,
      50,
    ),
  );
  const same = await discover([at(net.nodes, 3)], key, LISTS);
  rows.push(latency('the same again from one node', same, 0.5, 50));

  // The kill is silent, as with SIGKILL: no node is notified.
  for (const node of net.nodes.filter((_, i) => i % 3 === 1)) await net.kill(node);
  const deadReads = await resolve(net.nodes, alive.published);
  rows.push(
    latency('resolve, a third dead', deadReads, 0.5, 10),
    latency('resolve, a third dead', deadReads, 0.95, 500),
  );
  const dead = await publish(net.nodes, SAMPLES);
  rows.push(
    latency('publish, a third dead', dead.samples, 0.5, 50),
    latency('publish, a third dead', dead.samples, 0.95),
  );

  return { title: `Record network, ${NODES} nodes in one process`, rows };
}

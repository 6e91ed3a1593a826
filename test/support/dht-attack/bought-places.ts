/**
 * Runs in a network namespace with public addresses: honest nodes, an attacker who wants the places of three keys, and
 * what is found of records that are written and read while he is there. Takes `AttackOptions` as JSON where they are
 * others than usual, and prints `AttackFigures` as JSON; what happens meanwhile goes to stderr.
 */
import { equalBytes, toHex } from '../../../src/foundation/bytes.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { agentKey, mailboxKey, serviceKey } from '../../../src/foundation/records/keys.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { delegateAnew } from '../identities.ts';
import { endpointRecord, noteRecord, type Published, serviceRecord } from '../records.ts';
import type { AttackFigures, AttackOptions } from './attack-options.ts';
import { USUAL_ATTACK } from './attack-options.ts';
import { AttackProcess } from './attack-process.ts';
import { HonestNetwork, type HonestNode, NETWORK } from './honest-network.ts';
import type { Manner } from './hostile-answers.ts';
import { closestPlaces, distance, honestPlaces, hostileNetworks, networkOf } from './places.ts';

/** Reads that are under way at once: few, so that on a busy machine none comes too late. */
const READING = 2;
/** Nodes that a key should be kept by. */
const PLACES = 16;
const SERVICE = 'org.example.attacked';
/** Which honest node the shy stand in front of, and how many nodes near a key lend their networks to phantoms. */
const LAST_HEARD = 7;
const NEIGHBOURS = 30;

const changed: Partial<AttackOptions> = JSON.parse(process.argv[2] ?? '{}');
const options: AttackOptions = { ...USUAL_ATTACK, ...changed };
const started = performance.now();

function say(what: string): void {
  const { user, system } = process.cpuUsage();
  const figures = [(performance.now() - started) / 1000, (user + system) / 1e6].map((s) => s.toFixed(1));
  console.error(`${figures[0]} s, ${figures[1]} s of CPU, ${process.memoryUsage.rss() >> 20} MiB: ${what}`);
}

const [recipient, publisher] = [1, 2].map((i) =>
  delegateAnew(KeyPair.fromSeed(new Uint8Array(32).fill(options.seed + i))),
) as [ReturnType<typeof delegateAnew>, ReturnType<typeof delegateAnew>];
const keys = [mailboxKey(recipient.aid), serviceKey(SERVICE), agentKey(publisher.aid)];

const hostileSeed = options.seed + 1000;
const honestAt = honestPlaces({
  ...options,
  nodes: options.honest,
  hostile: hostileNetworks({ ...options, seed: hostileSeed }),
});
const near = keys.map((key) => closestPlaces(key, honestAt, NEIGHBOURS));
const isShy = options.shy > 0;
using attack = new AttackProcess({
  ...options,
  keys,
  network: NETWORK,
  own: new Map([noteRecord(recipient), serviceRecord(SERVICE)].map(({ key, record }) => [toHex(key), record.encoded])),
  neighbours: near.map((places) => [...new Set(places.map(networkOf))]),
  plan: {
    ...options,
    seed: hostileSeed,
    apart: keys.map((key, i) => options.shy * distance(key, near[i]?.at(LAST_HEARD)?.id ?? key)),
    crowd: !isShy,
    perKey: isShy ? options.networks : options.perKey,
  },
});
const hostile = new Set(attack.places.map(({ host }) => host));
const network = new HonestNetwork(honestAt);

async function begin(): Promise<void> {
  await attack.start();
  say(`attackers listen at ${attack.places.length} places`);
  await call();
}

async function call(): Promise<void> {
  await attack.call(network.addresses);
  await network.calm();
  say('the attackers have called everybody');
}

/** A node that is as far from a key as any, and reaches it by searching alone. */
function strangerTo(key: Uint8Array): HonestNode {
  const [farthest] = network.farFrom(key);
  if (farthest === undefined) throw new RangeError('nobody is far from the key');
  return farthest;
}

async function write({ key, record }: Published, by: HonestNode = strangerTo(key)): Promise<void> {
  const { replicas, refused } = await by.dht.put(key, record);
  say(`${replicas} say that they keep it, ${JSON.stringify(refused)}`);
}

async function found(reader: HonestNode, { key, record }: Published): Promise<boolean> {
  let records: readonly (SignedRecord | null)[];
  if (record.type === RECORD.endpoints) records = [await reader.dht.get(key, record.type, { thorough: true })];
  else records = await reader.dht.list(key, [record.type]);
  return records.some((one) => one !== null && equalBytes(one.encoded, record.encoded));
}

/** The part of reads that find a record, from nodes far from it in turn. */
async function read(published: Published, reads: number): Promise<number> {
  const readers = network.farFrom(published.key);
  const waiting = Array.from({ length: reads }, (_, i) => readers[i % readers.length] ?? strangerTo(published.key));
  let good = 0;
  const times: number[] = [];
  const work = async (): Promise<void> => {
    for (let reader = waiting.pop(); reader !== undefined; reader = waiting.pop()) {
      const asked = performance.now();
      if (await found(reader, published)) good++;
      else sayWhoMissed(reader);
      times.push(performance.now() - asked);
    }
  };
  await Promise.all(Array.from({ length: READING }, work));
  times.sort((a, b) => a - b);
  const [median = 0, slowest = 0] = [times[times.length >> 1], times.at(-1)].map((ms) => Math.round(ms ?? 0));
  say(`${good} of ${reads} reads find it, in ${median} ms, the slowest in ${slowest} ms`);
  return good / reads;
}

function sayWhoMissed({ place: { host, port }, dht }: HonestNode): void {
  const peers = dht.peers();
  const theirs = peers.filter((peer) => hostile.has(peer.host)).length;
  const place = dht.reachability().inRoutingTables ? 'in the tables' : 'in no table';
  say(`${host}:${port}, ${place}, ${theirs} of ${peers.length} neighbours hostile, has not found it`);
}

/** What the nodes behind one address write and read of each other, as others do of them: the part that is found. */
async function company(): Promise<number> {
  const members = network.behindOne();
  let good = 0;
  let asked = 0;
  for (const [i, member] of members.entries()) {
    if (i % 5 > 0) continue;
    const record = endpointRecord();
    await write(record, member);
    const readers = [members[i + 1] ?? member, strangerTo(record.key)];
    for (const reader of readers) if (await found(reader, record)) good++;
    asked += readers.length;
  }
  say(`${good} of ${asked} reads behind one address find it`);
  return asked === 0 ? 1 : good / asked;
}

/** Writes one record under each key while the attackers behave so, and has it read. */
async function experiment(manner: Manner, nth: number) {
  await attack.behave(manner);
  say(JSON.stringify(manner));
  const details = { seq: nth + 2 };
  const note = noteRecord(recipient);
  const service = serviceRecord(SERVICE, publisher, details);
  const endpoints = endpointRecord(publisher, details);
  for (const record of [note, service, endpoints]) await write(record);
  await network.calm();
  return {
    ...manner,
    mailbox: await read(note, options.reads),
    service: await read(service, options.reads),
    endpoints: await read(endpoints, options.reads),
  };
}

await network.startFirst();
const isFirst = options.begins === 'first';
if (isFirst) await begin();
await network.startOthers(isFirst, async (nth) => {
  if (isFirst && nth % 3 === 0) await call();
});
say('all honest nodes have joined');
await network.calm();
const behindOne = isFirst ? null : await company();
if (options.begins === 'joined') await begin();
if (options.begins !== 'stored') await call();
// What the attackers show again where they show what is old.
for (const record of [serviceRecord(SERVICE, publisher), endpointRecord(publisher)]) await write(record);
if (options.begins === 'stored') await begin();
const reads: AttackFigures['reads'] = [];
for (const [i, manner] of options.manners.entries())
  reads.push(await experiment({ lie: 'nothing', names: 'own', delayMs: 0, ...manner }, i));

const hostileParts = network.nodes.map(({ dht }) => {
  const peers = dht.peers();
  return peers.filter(({ host }) => hostile.has(host)).length / Math.max(1, peers.length);
});
const figures: AttackFigures = {
  taken: keys.map(
    (key) => closestPlaces(key, [...attack.places, ...honestAt], PLACES).filter(({ host }) => hostile.has(host)).length,
  ),
  behindOne,
  reads,
  hostileInTables: hostileParts.reduce((sum, part) => sum + part, 0) / hostileParts.length,
  inTables: network.nodes.filter(({ dht }) => dht.reachability().inRoutingTables).length,
};
console.log(JSON.stringify(figures));
await network.stop();

/**
 * `npm run soak -- [--hours 24] [--rounds 60]`: runs the tests that exist in two sizes in the large one. Then,
 * unless `--hours` is 0, it runs real daemons under everyday load as fast as the machine allows,
 * and prints their resources after every simulated hour. A figure that grows from the second third of the hours to the
 * last is reported as a leak, with exit code 1.
 *
 * An hour is `--rounds` rounds. A round is calls, a tunnel, notes, chat, a group, publications, searches, short event
 * streams, rejected requests, and random datagrams.
 */
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { parseArgs } from 'node:util';
import { type Client, createClient } from '../src/operations/client.ts';
import { operations } from '../src/operations/index.ts';
import { TestDaemon } from '../test/support/daemon.ts';
import { eventually } from '../test/support/eventually.ts';
import { tool } from '../test/support/moving.ts';
import { SCALE_VARIABLE } from '../test/support/scale.ts';
import { allTestFiles, planJobs } from './test-run/plan.ts';
import { runJobs } from './test-run/run.ts';

const MIB = 1024 * 1024;
/** Tolerated growth from the second third of the hours to the last. Caches fill, and figures vary. */
const STEADY = 1.15;
const CLOCK_TICKS_PER_S = 100;

interface Party {
  readonly name: string;
  readonly daemon: TestDaemon;
  readonly client: Client<typeof operations>;
  readonly aid: string;
}

type Figures = Readonly<Record<'memory MiB' | 'descriptors' | 'threads' | 'disk MiB' | 'CPU s', number>>;

/** Current resources of a daemon, and CPU since its start. */
function figuresOf({ daemon }: Party): Figures {
  const proc = `/proc/${daemon.process.pid}`;
  const stat = readFileSync(`${proc}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const files = globSync(`${daemon.dataDir}/**/*`).map((file) => statSync(file, { throwIfNoEntry: false }));
  const bytes = files.reduce((sum, file) => sum + (file?.isFile() === true ? file.size : 0), 0);
  return {
    'memory MiB': (Number(readFileSync(`${proc}/statm`, 'utf8').split(' ')[1]) * 4096) / MIB,
    descriptors: readdirSync(`${proc}/fd`).length,
    threads: readdirSync(`${proc}/task`).length,
    'disk MiB': bytes / MIB,
    'CPU s': (Number(stat[11]) + Number(stat[12])) / CLOCK_TICKS_PER_S,
  };
}

async function party(name: string, bootstrap: readonly string[], service: string): Promise<Party> {
  const daemon = await TestDaemon.start({ bootstrap });
  const client = createClient({ baseUrl: daemon.api }, operations);
  const { operational_private_key_hex, delegation_proof_hex } = await client.identityGenerate();
  const { aid } = await client.agentRegister({
    operational_private_key_hex,
    delegation_proof_hex,
    service_tcp: service,
  });
  return { name, daemon, client, aid };
}

async function echoThrough(listen: string): Promise<void> {
  const [host = '', port = ''] = listen.split(':');
  const socket = connect(Number(port), host);
  socket.write(`GET /through HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  socket.resume();
  await once(socket, 'close');
}

async function subscribe({ daemon, aid }: Party): Promise<void> {
  const leave = new AbortController();
  const answer = await fetch(`${daemon.api}/agents/${aid}/events`, { signal: leave.signal });
  await answer.body?.getReader().read();
  leave.abort();
}

/** Random datagrams of various lengths to the record network and QUIC. */
async function noise({ daemon }: Party): Promise<void> {
  const socket = createSocket('udp4');
  for (const address of [daemon.dhtAddress, daemon.quicAddress]) {
    const [host = '', port = ''] = address.split(':');
    for (let i = 0; i < 50; i++) socket.send(randomBytes(1 + i * 20), Number(port), host);
  }
  await new Promise<void>((resolve) => setImmediate(() => socket.close(resolve)));
}

async function round(from: Party, to: Party, group: string): Promise<void> {
  const { client, aid } = from;
  await Promise.all(Array.from({ length: 16 }, (_, i) => client.fetch({ aid: to.aid, local_aid: aid, path: `/${i}` })));
  const tunnel = await client.tunnelOpen({ aid: to.aid, local_aid: aid });
  await echoThrough(tunnel.listen);
  await client.tunnelClose({ id: tunnel.id });
  await client.mailboxSend({ aid, recipient: to.aid, msg_type: 1, body_base64: randomBytes(300).toString('base64') });
  await to.client.mailboxPoll({ aid: to.aid });
  await client.chatSend({ aid, peer: to.aid, text: 'how is it going' });
  await to.client.chatRead({ aid: to.aid, peer: aid, limit: 1 });
  await tool(from.daemon, 'group_append', { aid, group_id: group, body: Buffer.from('still here').toString('base64') });
  await client.agentPublish({ aid });
  await client.serviceRegister({ aid, services: ['soak.test'] });
  await to.client.discover({ services: ['soak.test'] });
  await subscribe(from);
  await noise(to);
  await client.agentGet({ aid: 'aid1nobody' }).catch(() => {});
}

function row(cells: readonly (string | number)[]): string {
  return cells.map((cell) => String(cell).padStart(12)).join('');
}

/** Figures that still grow. */
function growing(hours: readonly Figures[]): string[] {
  const third = Math.floor(hours.length / 3);
  if (third === 0) return [];
  const mean = (part: readonly Figures[], name: keyof Figures): number =>
    part.reduce((sum, figures) => sum + figures[name], 0) / part.length;
  const names: readonly (keyof Figures)[] = ['memory MiB', 'descriptors', 'threads', 'CPU s'];
  return names.filter((name) => mean(hours.slice(-third), name) > STEADY * mean(hours.slice(third, 2 * third), name));
}

async function run(hours: number, rounds: number): Promise<boolean> {
  const service = createServer((request, response) => response.end(request.url));
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  const bound = `127.0.0.1:${(service.address() as AddressInfo).port}`;
  const first = await party('first', [], bound);
  const parties = [
    first,
    await party('second', [first.daemon.dhtAddress], bound),
    await party('third', [first.daemon.dhtAddress], bound),
  ];
  const [one, two] = [parties[1] ?? first, parties[2] ?? first];
  for (const { client, aid } of parties) await client.agentPublish({ aid });
  await one.client.chatRequest({ aid: one.aid, peer: two.aid, note: 'soak' });
  await eventually('the request has arrived', async () => {
    const { in_pending: waiting } = await two.client.chatContacts({ aid: two.aid });
    return waiting.length > 0;
  });
  await two.client.chatAccept({ aid: two.aid, peer: one.aid });
  const { group_id: group } = await tool<{ group_id: string }>(one.daemon, 'group_create', {
    aid: one.aid,
    title: 'soak',
  });
  const byParty = new Map(parties.map(({ name }) => [name, [] as Figures[]]));
  console.log(row(['hour', 'daemon', 'memory MiB', 'descriptors', 'threads', 'disk MiB', 'CPU s', 'took s']));
  for (let hour = 1; hour <= hours; hour++) {
    const started = performance.now();
    const before = new Map(parties.map((of) => [of.name, figuresOf(of)['CPU s']]));
    for (let i = 0; i < rounds; i++) await round(one, two, group);
    for (const of of parties) {
      const now = figuresOf(of);
      const figures = { ...now, 'CPU s': now['CPU s'] - (before.get(of.name) ?? 0) };
      byParty.get(of.name)?.push(figures);
      const took = (performance.now() - started) / 1000;
      console.log(row([hour, of.name, ...Object.values(figures).map((n) => n.toFixed(1)), took.toFixed(1)]));
    }
  }
  for (const { daemon } of parties) await daemon.stop();
  service.close();
  const leaks = [...byParty].flatMap(([name, all]) => growing(all).map((figure) => `${name}: ${figure} grows`));
  for (const leak of leaks) console.error(leak);
  return leaks.length === 0;
}

/** Runs the tests that exist in two sizes. */
async function runLarge(): Promise<boolean> {
  const { unit, endToEnd } = allTestFiles();
  const isScaled = (file: string): boolean => readFileSync(file, 'utf8').includes('support/scale.ts');
  process.env[SCALE_VARIABLE] = 'large';
  const isPassed = await runJobs(planJobs({ unit: unit.filter(isScaled), endToEnd: endToEnd.filter(isScaled) }));
  delete process.env[SCALE_VARIABLE];
  return isPassed;
}

const { values } = parseArgs({ options: { hours: { type: 'string' }, rounds: { type: 'string' } } });
const [hours, rounds] = [Number(values.hours ?? 24), Number(values.rounds ?? 60)];
for (const [name, value] of Object.entries({ hours, rounds: rounds - 1 }))
  if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} needs a positive integer.`);
const isPassed = await runLarge();
process.exit((hours === 0 || (await run(hours, rounds))) && isPassed ? 0 : 1);

/**
 * `npm run demo`: the whole job on this machine, step by step. Three real daemons, each in a process
 * and a data directory of its own; nothing is left behind.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { type Client, createClient } from '../src/operations/client.ts';
import { operations } from '../src/operations/index.ts';
import { LocalDaemon } from './local-daemon.ts';

interface DemoDaemon {
  readonly name: string;
  readonly daemon: LocalDaemon;
  readonly client: Client<typeof operations>;
}

const root = mkdtempSync(join(tmpdir(), 'svcd-demo-'));
const daemons: DemoDaemon[] = [];
/** The daemon that starts: it is waited for, so that it is stopped as well. */
let starting: Promise<unknown> | null = null;
let ending: Promise<void> | null = null;
let stepNumber = 0;

function step(text: string): void {
  console.log(`\n${styleText('bold', `${++stepNumber}. ${text}`)}`);
}

function say(text: string): void {
  console.log(`   ${text}`);
}

async function startDaemon(name: string): Promise<DemoDaemon> {
  if (ending !== null) throw new Error('the demonstration ends');
  const checkout = join(import.meta.dirname, '..');
  const options = { dataDir: join(root, name), checkout, node: process.execPath };
  const started = LocalDaemon.start(options, daemons[0]?.daemon ?? null);
  starting = started;
  const daemon = await started;
  const client = createClient({ baseUrl: daemon.api }, operations);
  const demoDaemon = { name, daemon, client };
  daemons.push(demoDaemon);
  say(`${name}: API at ${daemon.api}, record network at ${daemon.dht}`);
  return demoDaemon;
}

async function newAgent({ client, name }: DemoDaemon, serviceTcp?: string): Promise<string> {
  const identity = await client.identityGenerate();
  const { aid } = await client.agentRegister({
    operational_private_key_hex: identity.operational_private_key_hex,
    delegation_proof_hex: identity.delegation_proof_hex,
    ...(serviceTcp === undefined ? {} : { service_tcp: serviceTcp }),
  });
  say(`on ${name}: ${aid}`);
  return aid;
}

async function stopAll(): Promise<void> {
  await starting?.catch(() => {});
  await Promise.all(daemons.map(({ daemon }) => daemon[Symbol.asyncDispose]()));
  rmSync(root, { recursive: true, force: true });
}

async function demo(): Promise<void> {
  step('Three daemons start; the second and third know only the address of the first.');
  const alice = await startDaemon('alice');
  const bob = await startDaemon('bob');
  const carol = await startDaemon('carol');

  step('Bob runs a small web service. It knows nothing of svcd.');
  const service = createServer((request, response) => {
    const caller = request.headers['svc-caller-aid'];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ greeting: 'Hello! You asked for', path: request.url, i_know_you_are: caller }));
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  const address = service.address();
  if (address === null || typeof address === 'string') throw new Error('the service has no port');
  const bound = `127.0.0.1:${address.port}`;
  say(`it listens on ${bound}, and only on this machine`);

  step('Alice and Bob make an identity each. No account, no server: a key is the identity.');
  const aliceAid = await newAgent(alice);
  const bobAid = await newAgent(bob, `http://${bound}`);

  step('Bob publishes where he is, and that he offers "demo.greet".');
  const { seq, replicas } = await bob.client.agentPublish({ aid: bobAid });
  say(`the signed endpoint record number ${seq} is kept by ${replicas} nodes`);
  await bob.client.serviceRegister({
    aid: bobAid,
    services: ['demo.greet'],
    name: 'Bob',
    brief: 'Greets whoever calls',
    protocols: ['http'],
  });

  step('Carol, on the third daemon, asks who offers "demo.greet".');
  const { entries } = await carol.client.discover({ services: ['demo.greet'] });
  for (const entry of entries) say(`${entry.name}: "${entry.brief}" (${entry.aid})`);
  const { endpoints } = await carol.client.resolve({ aid: bobAid });
  say(`he is at ${endpoints.join(', ')}`);

  step('Alice calls Bob by his AID. Her identity is proven to him; his service reads it in a header.');
  const started = performance.now();
  const first = await alice.client.fetch({ aid: bobAid, path: '/hello' });
  const cold = performance.now() - started;
  say(`status ${first.status}: ${Buffer.from(first.body, 'base64').toString('utf8')}`);
  const again = performance.now();
  await alice.client.fetch({ aid: bobAid, path: '/hello' });
  say(
    `the first call took ${cold.toFixed(1)} ms (search, connection, proofs), the second ${(performance.now() - again).toFixed(1)} ms`,
  );

  step('Bob lets in nobody but invited agents. Alice is refused; then he allows her.');
  await bob.client.aclPatch({ aid: bobAid, default: 'deny' });
  const refusal = await alice.client.fetch({ aid: bobAid, path: '/hello' }).then(
    () => 'she got in',
    (error: Error) => error.message,
  );
  say(`"${refusal}"`);
  await bob.client.aclAllow({ aid: bobAid, body_aid: aliceAid });
  const third = await alice.client.fetch({ aid: bobAid, path: '/hello' });
  say(`after that: status ${third.status}`);

  step('Bob lets tunnels in too, and Alice opens one: any program can use it, and its bytes prove nothing.');
  await bob.client.agentPatch({ aid: bobAid, service_tcp: `http+tcp://${bound}` });
  const tunnel = await alice.client.tunnelOpen({ aid: bobAid });
  const answer = await fetch(`http://${tunnel.listen}/through-the-tunnel`);
  say(`http://${tunnel.listen}/through-the-tunnel answers: ${await answer.text()}`);
  say(`path ${tunnel.path}, round trip ${tunnel.rtt_ms.toFixed(1)} ms`);

  service.closeAllConnections();
  service.close();
}

/** Once, however the demonstration ends. */
function end(code: number): void {
  ending ??= stopAll();
  void ending.finally(() => process.exit(code));
}

// A reader that has seen enough, such as `head`, closes the pipe.
process.stdout.on('error', () => end(0));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => end(1));
try {
  await demo();
  step('Everything stops, and nothing is left on the disk.');
  end(0);
} catch (error) {
  if (ending === null) console.error(error);
  end(1);
}

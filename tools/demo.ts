/**
 * `npm run demo`: shows svcd step by step on this machine. Runs three real daemons, each with its own data directory,
 * and removes everything at the end.
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
/** The daemon that is starting. Shutdown waits for it. */
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
  if (ending !== null) throw new Error('The demo is shutting down.');
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
  step('Three daemons start. The second and third know only the address of the first.');
  const alice = await startDaemon('alice');
  const bob = await startDaemon('bob');
  const carol = await startDaemon('carol');

  step('Bob runs a small web service. It does not know about svcd.');
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
  say(`it listens on ${bound}, only on this machine`);

  step('Alice and Bob each create an identity: a key, without an account or a server.');
  const aliceAid = await newAgent(alice);
  const bobAid = await newAgent(bob, `http://${bound}`);

  step('Bob publishes an endpoint and the service "demo.greet".');
  const { seq, replicas } = await bob.client.agentPublish({ aid: bobAid });
  say(`${replicas} nodes store the signed endpoint record, number ${seq}`);
  await bob.client.serviceRegister({
    aid: bobAid,
    services: ['demo.greet'],
    name: 'Bob',
    brief: 'Greets its callers',
    protocols: ['http'],
  });

  step('Carol, on the third daemon, searches for "demo.greet".');
  const { entries } = await carol.client.discover({ services: ['demo.greet'] });
  for (const entry of entries) say(`${entry.name}: "${entry.brief}" (${entry.aid})`);
  const { endpoints } = await carol.client.resolve({ aid: bobAid });
  say(`its endpoints: ${endpoints.join(', ')}`);

  step('Alice calls Bob by AID. The call proves the identity of Alice, and the service reads it in a header.');
  const started = performance.now();
  const first = await alice.client.fetch({ aid: bobAid, path: '/hello' });
  const cold = performance.now() - started;
  say(`status ${first.status}: ${Buffer.from(first.body, 'base64').toString('utf8')}`);
  const again = performance.now();
  await alice.client.fetch({ aid: bobAid, path: '/hello' });
  say(
    `the first call took ${cold.toFixed(1)} ms (search, connection, proofs), the second ${(performance.now() - again).toFixed(1)} ms`,
  );

  step('Bob denies all callers by default. Alice is refused, then allowed.');
  await bob.client.aclPatch({ aid: bobAid, default: 'deny' });
  const refusal = await alice.client.fetch({ aid: bobAid, path: '/hello' }).then(
    () => 'the call succeeded',
    (error: Error) => error.message,
  );
  say(`"${refusal}"`);
  await bob.client.aclAllow({ aid: bobAid, body_aid: aliceAid });
  const third = await alice.client.fetch({ aid: bobAid, path: '/hello' });
  say(`after that: status ${third.status}`);

  step('Bob accepts tunnels too, and Alice opens one. Any program can use it.');
  await bob.client.agentPatch({ aid: bobAid, service_tcp: `http+tcp://${bound}` });
  const tunnel = await alice.client.tunnelOpen({ aid: bobAid });
  const answer = await fetch(`http://${tunnel.listen}/through-the-tunnel`);
  say(`http://${tunnel.listen}/through-the-tunnel: ${await answer.text()}`);
  say(`path ${tunnel.path}, round trip ${tunnel.rtt_ms.toFixed(1)} ms`);

  service.closeAllConnections();
  service.close();
}

/** Runs once, for every kind of exit. */
function end(code: number): void {
  ending ??= stopAll();
  void ending.finally(() => process.exit(code));
}

// A reader such as `head` closes the pipe early.
process.stdout.on('error', () => end(0));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => end(1));
try {
  await demo();
  step('The daemons stop, and their data is removed.');
  end(0);
} catch (error) {
  if (ending === null) console.error(error);
  end(1);
}

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { toHex } from '../../src/foundation/bytes.ts';
import { parseWalletText, signDelegation } from '../../src/foundation/identity/wallet.ts';
import { svc, svcJson, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { type Echo, EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { TestNetwork } from '../support/network.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { hex } from '../support/vectors.ts';
import { walletVectors } from '../support/wallet-vectors.ts';

interface Proof {
  readonly aid: string;
  readonly delegation_proof_hex: string;
  readonly operational_private_key_hex?: string;
}

const {
  ethereum: [eth],
  paralism: [par],
} = walletVectors;

/** Registers the first wallet of the vectors, which another library signed for. */
async function registerEthereum(daemon: TestDaemon, serviceTcp: string): Promise<string> {
  const { agent, issued_at, expires_at, eth_signature_hex, operational_private_key_seed_hex } = eth;
  const body = { agent, issued_at, expires_at, eth_signature_hex, operational_private_key_seed_hex };
  const { aid } = await daemon.call<{ aid: string }>('POST', '/agents/ethereum/register', {
    ...body,
    service_tcp: serviceTcp,
  });
  return aid;
}

/** Proves an agent with its wallet key and registers it. */
async function registerByProof(
  daemon: TestDaemon,
  key: Readonly<Record<string, string>>,
  issuedAt: number,
  service: string,
) {
  const chain = Object.keys(key)[0]?.split('_')[0];
  const proof = await daemon.call<Proof>('POST', `/agents/${chain}/proof`, {
    ...key,
    issued_at: issuedAt,
    expires_at: 0,
  });
  await daemon.call('POST', '/agents', {
    operational_private_key_hex: proof.operational_private_key_hex,
    delegation_proof_hex: proof.delegation_proof_hex,
    service_tcp: service,
  });
  return proof.aid;
}

async function echo(daemon: TestDaemon, from: string, to: string): Promise<Echo> {
  const answer = await daemon.call<{ body: string }>('POST', `/fetch/${to}`, { path: '/', local_aid: from });
  return JSON.parse(Buffer.from(answer.body, 'base64').toString('utf8')) as Echo;
}

test('agents of both wallet types publish, are found and call each other across daemons', async () => {
  await using network = await TestNetwork.start(2);
  await using service = await EchoService.start();
  const [one, two] = [network.at(0), network.at(1)];
  const ethereum = await registerEthereum(one, service.address);
  const paralism = await registerByProof(
    two,
    { paralism_private_key_hex: par.paralism_private_key_hex },
    par.issued_at,
    service.address,
  );
  assert.deepEqual([ethereum, paralism], [eth.agent, par.agent]);
  for (const [daemon, aid, name] of [
    [one, ethereum, 'chain.ethereum'],
    [two, paralism, 'chain.paralism'],
  ] as const) {
    await daemon.call('POST', `/agents/${aid}/publish`);
    await daemon.call('POST', `/agents/${aid}/services`, { services: [name], name: 'Wallet', brief: 'w'.repeat(120) });
  }
  for (const [daemon, own, other, name] of [
    [one, ethereum, paralism, 'chain.paralism'],
    [two, paralism, ethereum, 'chain.ethereum'],
  ] as const) {
    const found = await daemon.call<{ entries: { aid: string }[] }>('POST', '/discover', { services: [name] });
    assert.deepEqual(
      found.entries.map(({ aid }) => aid),
      [other],
    );
    const record = await daemon.call<{ aid: string; endpoints: string[] }>('POST', `/resolve/${other}`);
    assert.equal(record.aid, other);
    assert.match(record.endpoints[0] ?? '', /^quic:\/\//);
    const { headers } = await echo(daemon, own, other);
    assert.deepEqual([headers['svc-caller-aid'], headers['svc-local-aid']], [own, other]);
  }
  // Any form of an AID works: the older form of the address, or an address in lowercase.
  assert.equal((await echo(one, ethereum.toLowerCase(), par.p2pkh_address)).headers['svc-local-aid'], paralism);
});

test('the wallet recovers its agent from a stolen operational key', async () => {
  await using network = await TestNetwork.start(3);
  await using old = await EchoService.start();
  await using now = await EchoService.start();
  const [stolen, owner, caller] = [network.at(0), network.at(1), network.at(2)];
  const aid = await registerEthereum(stolen, old.address);
  await stolen.call('POST', `/agents/${aid}/publish`);
  const resolved = async (): Promise<string> =>
    (await caller.call<{ endpoints: string[] }>('POST', `/resolve/${aid}`)).endpoints[0] ?? '';
  assert.equal(await resolved(), `quic://${stolen.quicAddress}`);
  const key = { ethereum_private_key_hex: eth.ethereum_private_key_hex };
  await registerByProof(owner, key, eth.issued_at + 1, now.address);
  await owner.call('POST', `/agents/${aid}/publish`);
  const thief = await stolen.request('POST', `/agents/${aid}/publish`);
  assert.deepEqual([thief.status, Reflect.get(Object(thief.body), 'error')], [409, 'stale_sequence']);
  await eventually('the owner is found', async () => (await resolved()) === `quic://${owner.quicAddress}`);
  assert.equal((await echo(caller, await caller.newAgent(), aid)).headers['host'], now.address);
});

test('tools create, sign for and register a wallet, and describe signature errors', async () => {
  await using daemon = await TestDaemon.start();
  const tool = async <T>(name: string, args: object = {}): Promise<T> =>
    daemon.call<T>('POST', '/mcp/call', { tool: name, args });
  const made = await tool<Record<string, string>>('svc_agents_generate_ethereum');
  const window = { issued_at: Math.floor(Date.now() / 1000), expires_at: 0 };
  const operational = { operational_private_key_seed_hex: made['operational_private_key_hex'] };
  const agent = made['aid'];
  const { message } = await tool<{ message: string }>('svc_ethereum_delegation_message', {
    agent,
    ...window,
    ...operational,
  });
  const grant = parseWalletText(message);
  assert.ok(grant !== null);
  const key = made['master_private_key_hex'] ?? '';
  const { signature } = signDelegation('ethereum', hex(key), grant);
  const registration = { agent, ...window, ...operational, eth_signature_hex: toHex(signature) };
  const refused = await daemon.request('POST', '/mcp/call', {
    tool: 'svc_ethereum_register',
    args: { ...registration, expires_at: window.issued_at + 3600 },
  });
  assert.equal(refused.status, 422);
  assert.equal(Reflect.get(Object(refused.body), 'error'), 'bad_delegation');
  assert.deepEqual(await tool('svc_ethereum_register', registration), { aid: agent, status: 'registered' });
  const proof = await tool<Proof>('svc_ethereum_proof', { ethereum_private_key_hex: key, ...window, ...operational });
  assert.equal(proof.aid, agent);
  assert.equal(proof.operational_private_key_hex, undefined);
});

test('a wallet key stays on its machine, out of the log, and out of caches', async () => {
  await using network = await TestNetwork.start(2);
  const [here, there] = [network.at(0), network.at(1)];
  for (const daemon of network.daemons) await daemon.call('PATCH', '/config', { log_level: 'debug' });
  const status = await there.call<{ node_aid: string }>('GET', '/status');
  const mine = await here.call<{ node_aid: string }>('GET', '/status');
  await there.call('PATCH', '/node/remote-admin', { enabled: true });
  await there.call('POST', '/node/remote-admin/allow', { aid: mine.node_aid });
  const body = { ethereum_private_key_hex: eth.ethereum_private_key_hex, issued_at: 1, expires_at: 0 };
  const via = `/via/${status.node_aid}`;
  const proof = await eventually('the other node is reachable', async () => {
    const answer = await here.request('POST', `${via}/agents/ethereum/proof`, body);
    return answer.status === 404 || answer.status === 502 ? undefined : answer;
  });
  assert.deepEqual([proof.status, Reflect.get(Object(proof.body), 'error')], [403, 'local_only']);
  // Operations without a wallet key work remotely.
  const { agent, issued_at, expires_at, operational_public_key_hex, message } = eth;
  const request = { agent, issued_at, expires_at, operational_public_key_hex };
  const text = await here.request('POST', `${via}/agents/ethereum/delegation-message`, request);
  assert.deepEqual([text.status, text.body], [200, { message }]);
  const own = await here.request('POST', '/agents/ethereum/proof', body);
  assert.equal(own.status, 200);
  assert.equal(own.headers.get('cache-control'), 'no-store');
  const made = await here.request('POST', '/agents/generate', { chain: 'paralism' });
  assert.equal(made.headers.get('cache-control'), 'no-store');
  const broken = await here.request('POST', '/agents/ethereum/proof', { ...body, issued_at: 'now' });
  assert.equal(broken.status, 400);
  const secrets = [body.ethereum_private_key_hex, String(Reflect.get(Object(made.body), 'master_private_key_hex'))];
  for (const secret of secrets) {
    assert.ok(!JSON.stringify(broken.body).includes(secret));
    for (const daemon of network.daemons) assert.ok(!daemon.output.includes(secret));
  }
});

test('the command line registers wallets whose key it has, and wallets that sign elsewhere', async (t) => {
  await using network = await TestNetwork.start(2);
  const [here, there] = [network.at(0), network.at(1)];
  const directory = temporaryDirectory(t);
  const file = (name: string): string => join(directory, name);

  const made = await svcOk(here, 'register', '--ethereum', '--save-master', file('eth.key'), '--quiet');
  assert.match(made, /^0x[0-9a-fA-F]{40}$/);
  assert.match(await svcOk(there, 'resolve', made, '--quiet'), /^quic:/);
  // The written file can be read.
  assert.equal((await svcJson<Proof>(here, 'identity', 'new-eth', '--eth-key', file('eth.key'))).aid, made);

  const given = await svc(
    here,
    ['agents', 'new-paralism', '--paralism-key', '-', '--json'],
    par.paralism_private_key_hex,
  );
  assert.equal(given.code, 0, given.stderr);
  assert.equal((JSON.parse(given.stdout) as Proof).aid, par.agent);
  assert.ok(!(given.stdout + given.stderr).includes(par.paralism_private_key_hex));
  const typed = await svc(here, ['agents', 'new-eth', '--eth-key', eth.ethereum_private_key_hex, '--no-publish']);
  assert.equal(typed.code, 0, typed.stderr);
  assert.match(typed.stdout, /master key: the key that you provided/);

  // A wallet elsewhere: it gets the text and returns the signature.
  for (const [agent, key, scheme, encoding] of [
    [walletVectors.ethereum[1].agent, walletVectors.ethereum[1].ethereum_private_key_hex, 'ethereum', 'hex'],
    [walletVectors.paralism[1].agent, walletVectors.paralism[1].paralism_private_key_hex, 'paralism', 'base64'],
  ] as const) {
    const request = file(`${agent}.json`);
    const message = await svcOk(there, 'wallet', 'message', agent, '--save', request, '--expires', '30d');
    const grant = parseWalletText(message);
    assert.ok(grant !== null);
    const signature = Buffer.from(signDelegation(scheme, hex(key), grant).signature).toString(encoding);
    assert.equal(await svcOk(there, 'wallet', 'register', request, signature, '--quiet'), agent);
    assert.match(await svcOk(here, 'resolve', agent, '--quiet'), /^quic:/);
    const { delegation } = await there.call<{ delegation: { expires_at: string } }>('GET', `/agents/${agent}`);
    assert.equal(Date.parse(delegation.expires_at), grant.expiresAt * 1000);
    assert.ok(!message.includes(JSON.parse(readFileSync(request, 'utf8')).operational_private_key_hex));
  }
});

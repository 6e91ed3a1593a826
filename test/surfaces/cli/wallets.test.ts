import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAid, schemeOf } from '../../../src/foundation/identity/aid.ts';
import { decodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { verifyDelegationSignature } from '../../../src/foundation/identity/delegation-verifier.ts';
import { testAid } from '../../support/agents.ts';
import { runSvc } from '../../support/cli-run.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { hex } from '../../support/vectors.ts';
import { walletVectors } from '../../support/wallet-vectors.ts';

interface Keys {
  readonly aid: string;
  readonly master_private_key_hex?: string;
  readonly operational_private_key_hex: string;
  readonly delegation_proof_hex: string;
}

/** No daemon listens there, and these commands need none. */
const NOWHERE = ['--api', 'http://127.0.0.1:9'];

function svc(args: readonly string[], input = '') {
  return runSvc([...NOWHERE, ...args], { input });
}

async function keys(args: readonly string[], input = ''): Promise<Keys> {
  const { code, stdout, stderr } = await svc(['--json', 'identity', ...args], input);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as Keys;
}

const {
  ethereum: [eth],
  paralism: [par],
} = walletVectors;

test('creates valid wallet identities without a daemon', async () => {
  for (const [command, scheme] of [
    ['new-eth', 'ethereum'],
    ['new-paralism', 'paralism'],
  ] as const) {
    const made = await keys([command]);
    assert.equal(schemeOf(parseAid(made.aid)), scheme);
    const proof = decodeDelegation(hex(made.delegation_proof_hex));
    assert.equal(proof.agent, made.aid);
    verifyDelegationSignature(proof);
    assert.match(made.master_private_key_hex ?? '', /^[0-9a-f]{64}$/);
  }
});

test('reads an existing key from a file, standard input or the command line without showing it', async (t) => {
  const file = join(temporaryDirectory(t), 'wallet.key');
  writeFileSync(file, `# my wallet\n\n${eth.ethereum_private_key_hex}\n`);
  for (const made of [
    await keys(['new-eth', '--eth-key', file]),
    await keys(['new-eth', '--eth-key', '-'], `0x${eth.ethereum_private_key_hex}\n`),
    await keys(['new-eth', '--eth-key', eth.ethereum_private_key_hex]),
  ]) {
    assert.equal(made.aid, eth.agent);
    assert.equal(made.master_private_key_hex, undefined);
  }
  assert.equal((await keys(['new-paralism', '--paralism-key', '-'], par.paralism_private_key_hex)).aid, par.agent);
  const typed = await svc(['identity', 'new-eth', '--eth-key', eth.ethereum_private_key_hex]);
  assert.match(typed.stderr, /Other programs can see/);
  assert.ok(!(typed.stdout + typed.stderr).includes(eth.ethereum_private_key_hex));
});

test('rejects an invalid key without repeating it', async (t) => {
  const directory = temporaryDirectory(t);
  const [two, large] = [join(directory, 'two'), join(directory, 'large')];
  writeFileSync(two, `${eth.ethereum_private_key_hex}\n${par.paralism_private_key_hex}\n`);
  writeFileSync(large, `${eth.ethereum_private_key_hex}${'\n'.repeat(70_000)}`);
  const mistyped = eth.ethereum_private_key_hex.slice(1);
  for (const [given, input] of [
    [mistyped, ''],
    ['-', mistyped],
    ['-', ''],
    ['00'.repeat(32), ''],
    [two, ''],
    [large, ''],
    [directory, ''],
  ] as const) {
    const { code, stdout, stderr } = await svc(['identity', 'new-eth', '--eth-key', given], input);
    assert.equal(code, 2, given);
    assert.equal(stdout, '');
    assert.ok(!stderr.includes(mistyped), stderr);
  }
  const both = await svc(['register', '--ethereum', '--paralism-key', '-'], par.paralism_private_key_hex);
  assert.equal(both.code, 2);
  assert.match(both.stderr, /cannot be used with/);
});

test('leaves no key file behind if no daemon accepts the identity', async (t) => {
  const file = join(temporaryDirectory(t), 'wallet.key');
  assert.equal((await svc(['register', '--ethereum', '--save-master', file])).code, 3);
  assert.ok(!existsSync(file));
});

test('prints the exact text for a wallet and saves the key for its owner', async (t) => {
  const file = join(temporaryDirectory(t), 'request.json');
  const { code, stdout, stderr } = await svc(['wallet', 'message', eth.agent.toLowerCase(), '--save', file]);
  assert.equal(code, 0, stderr);
  const { message, operational_private_key_hex: seed } = JSON.parse(readFileSync(file, 'utf8')) as Record<
    string,
    string
  >;
  assert.equal(stdout, `${message}\n`);
  assert.match(message ?? '', new RegExp(`^agent: ${eth.agent}$`, 'm'));
  assert.match(message ?? '', /^expires_at: 0$/m);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.ok(!(stdout + stderr).includes(seed ?? ''));
  assert.match(stderr, /svc wallet register/);
  const again = await svc(['wallet', 'message', eth.agent, '--save', file]);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /exists and is never overwritten/);
  const native = await svc(['wallet', 'message', testAid(1), '--save', `${file}2`]);
  assert.equal(native.code, 2);
  assert.match(native.stderr, /not a wallet/);
});

test('rejects a signature of another wallet before sending anything', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'request.json');
  await svc(['wallet', 'message', eth.agent, '--save', file, '--expires', '7d']);
  assert.match(readFileSync(file, 'utf8'), /expires_at: [1-9]/);
  const other = await svc(['wallet', 'register', file, eth.eth_signature_hex]);
  assert.equal(other.code, 2);
  assert.match(other.stderr, /Either 0x[0-9a-fA-F]{40} signed it, or the signed text has other times/);
  assert.match((await svc(['wallet', 'register', file, '?'])).stderr, /neither hex nor base64/);
  assert.match((await svc(['wallet', 'register', file], '0x00')).stderr, /has 65 bytes/);

  const mixed = join(directory, 'mixed.json');
  const request = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
  const seed = eth.operational_private_key_seed_hex;
  for (const content of [
    JSON.stringify({ ...request, operational_private_key_hex: seed }),
    JSON.stringify({ ...request, message: `${request['message']}\n` }),
    '{}',
    'no JSON',
  ]) {
    writeFileSync(mixed, content);
    const { code, stderr } = await svc(['wallet', 'register', mixed, eth.eth_signature_hex]);
    assert.equal(code, 2);
    assert.match(stderr, /was not written by "svc wallet message"/);
  }
});

test('accepts signatures of other libraries, in hex and base64', async (t) => {
  const file = join(temporaryDirectory(t), 'request.json');
  for (const [{ message, operational_private_key_seed_hex }, signature] of [
    ...walletVectors.ethereum.map((signed) => [signed, signed.eth_signature_hex] as const),
    ...walletVectors.paralism.map((signed) => [signed, signed.signature_base64] as const),
  ]) {
    writeFileSync(file, JSON.stringify({ message, operational_private_key_hex: operational_private_key_seed_hex }));
    const { code, stderr } = await svc(['wallet', 'register', file, '-'], `${signature}\n`);
    assert.equal(code, 3, `as far as the daemon, which is not there: ${stderr}`);
  }
});

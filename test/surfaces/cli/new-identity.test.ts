import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Delegation, decodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { verifyDelegation } from '../../../src/foundation/identity/delegation-verifier.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { hex } from '../../support/vectors.ts';

interface Made {
  readonly aid: string;
  readonly master_private_key_hex?: string;
  readonly operational_private_key_hex: string;
  readonly delegation_proof_hex: string;
}

/** No daemon listens there, so none sees a master key. */
const NOWHERE = ['--api', 'http://127.0.0.1:9'];

function svc(args: readonly string[], input = '') {
  return runSvc([...NOWHERE, ...args], { input });
}

async function identity(args: readonly string[], input = ''): Promise<Made & { readonly proof: Delegation }> {
  const { code, stdout, stderr } = await svc(['--json', 'identity', ...args], input);
  assert.equal(code, 0, stderr);
  const made = JSON.parse(stdout) as Made;
  const proof = decodeDelegation(hex(made.delegation_proof_hex));
  verifyDelegation(proof, Math.floor(Date.now() / 1000));
  assert.equal(proof.agent, made.aid);
  return { ...made, proof };
}

test('an existing master key creates another operational key and is not shown', async (t) => {
  const first = await identity(['new']);
  const master = first.master_private_key_hex ?? '';
  const file = join(temporaryDirectory(t), 'master.key');
  writeFileSync(file, `# Master key of ${first.aid}\n${master}\n`);
  for (const [given, input] of [
    [file, ''],
    ['-', `${master}\n`],
  ] as const) {
    const next = await identity(['new', '--master-key', given], input);
    assert.equal(next.aid, first.aid);
    assert.notEqual(next.operational_private_key_hex, first.operational_private_key_hex);
    assert.equal(next.master_private_key_hex, undefined);
  }
});

test('limits the lifetime of an operational key, for wallets too', async () => {
  for (const command of ['new', 'new-eth', 'new-paralism']) {
    const { proof } = await identity([command, '--expires', '7d']);
    assert.ok(Math.abs(proof.expiresAt - proof.issuedAt - 7 * 86_400) <= 1, command);
    assert.equal((await identity([command])).proof.expiresAt, 0);
  }
  assert.equal((await svc(['identity', 'new', '--expires', 'soon'])).code, 2);
});

test('rejects an invalid key without repeating it', async () => {
  const wrong = await svc(['identity', 'new', '--master-key', '-'], 'correct horse');
  assert.equal(wrong.code, 2);
  assert.ok(!wrong.stderr.includes('horse'), wrong.stderr);
  assert.equal((await svc(['register', '--ethereum', '--master-key', '-'])).code, 2);
});

test('deletes the key file of a rejected identity, unless the result is unknown', async (t) => {
  const full = { error: 'not_writable', message: 'The disk is full.' };
  const none = { error: 'not_found', message: 'Not found.' };
  for (const [known, isKept] of [
    [[404, none], false],
    [[200, {}], true],
    [[503, full], true],
  ] as const) {
    const { api } = await AnsweringDaemon.start(t, (line) => {
      if (line.startsWith('GET /agents?')) return [200, { agents: [] }];
      return line.startsWith('GET ') ? known : [507, full];
    });
    const file = join(temporaryDirectory(t), 'master.key');
    const { code, stderr } = await runSvc(['--api', api, 'register', '--save-master', file], { input: '' });
    assert.equal(code, 1);
    assert.match(stderr, /The disk is full/);
    assert.equal(existsSync(file), isKept);
  }
});

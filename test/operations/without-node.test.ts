import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { readVectors } from '../support/vectors.ts';
import type { WithoutNode } from '../support/without-node.ts';

interface Vectors {
  readonly aid: { readonly valid: readonly { text: string; also: readonly string[]; canonical_hex: string }[] };
  readonly delegation: { readonly valid: readonly { proof_hex: string; signing_input_hex?: string }[] };
  readonly record: { readonly valid: readonly { record_hex: string; signing_input_hex: string }[] };
}

test('the declarations, their client and the shared formats do not depend on Node', async (t) => {
  const { valid: aids } = readVectors('aid') as Vectors['aid'];
  const { valid: proofs } = readVectors('delegation') as Vectors['delegation'];
  const { valid: records } = readVectors('record') as Vectors['record'];
  const workerData: WithoutNode = {
    aids: aids.flatMap(({ text, also, canonical_hex }) =>
      [text, ...also].map((spelling) => ({ spelling, text, hex: canonical_hex })),
    ),
    proofs: proofs.map((one) => ({ hex: one.proof_hex, signingInput: one.signing_input_hex })),
    records: records.map((one) => ({ hex: one.record_hex, signingInput: one.signing_input_hex })),
    held: new Int32Array(new SharedArrayBuffer(4)),
  };
  const worker = new Worker(new URL('../support/without-node.ts', import.meta.url), { workerData });
  t.after(() => worker.terminate());
  // An error in the thread rejects here.
  assert.deepEqual(await once(worker, 'exit'), [0]);
  const native = workerData.proofs.filter(({ signingInput }) => signingInput !== undefined).length;
  const expected = workerData.aids.length * 2 + proofs.length + native + records.length + 2;
  assert.equal(workerData.held[0], expected);
});

/** A thread without Node-only features, in which the modules shared with browsers process test vectors. */
import { registerHooks } from 'node:module';
import { workerData } from 'node:worker_threads';

/** The vectors to process. */
export interface WithoutNode {
  readonly aids: readonly { readonly spelling: string; readonly text: string; readonly hex: string }[];
  readonly proofs: readonly { readonly hex: string; readonly signingInput: string | undefined }[];
  readonly records: readonly { readonly hex: string; readonly signingInput: string }[];
  /** Shared memory with the number of passed comparisons. */
  readonly held: Int32Array;
}

const { aids, proofs, records, held } = workerData as WithoutNode;

/** @throws Error if the values differ */
function same(what: string, actual: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a} is not ${b}`);
  Atomics.add(held, 0, 1);
}

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    if (found.url.startsWith('node:')) throw new Error(`${context.parentURL} imports ${found.url}`);
    return found;
  },
});
for (const name of ['Buffer', 'process', 'global', 'setImmediate', 'clearImmediate', 'require'])
  Reflect.deleteProperty(globalThis, name);

const { fromHex, toHex } = await import('../../src/foundation/bytes.ts');
const { parseAid, aidToBytes } = await import('../../src/foundation/identity/aid.ts');
const { decodeDelegation, delegationSigningInput, encodeDelegation } = await import(
  '../../src/foundation/identity/delegation.ts'
);
const { verifyWalletDelegation } = await import('../../src/foundation/identity/wallet.ts');
const { decodeRecord, recordSigningInput } = await import('../../src/foundation/records/record.ts');
const { createClient } = await import('../../src/operations/client.ts');
const { operations } = await import('../../src/operations/index.ts');
const { compileInput } = await import('../../src/operations/input.ts');
await import('../../src/operations/event-client.ts');
await import('../../src/operations/update-client.ts');

const bytes = (hex: string): Uint8Array => fromHex(hex) ?? new Uint8Array();

for (const { spelling, text, hex } of aids) {
  const aid = parseAid(spelling);
  same(spelling, [aid, toHex(aidToBytes(aid))], [text, hex]);
  const read = compileInput(operations.agentGet)({ params: { aid: spelling }, query: {}, body: undefined });
  same('input', read, { aid: text });
}
for (const { hex, signingInput } of proofs) {
  const proof = decodeDelegation(bytes(hex));
  same('proof', toHex(encodeDelegation(proof)), hex);
  if (proof.text !== undefined) verifyWalletDelegation(proof);
  if (signingInput !== undefined)
    same('a signature of a master key', toHex(delegationSigningInput(proof)), signingInput);
}
for (const { hex, signingInput } of records)
  same('a signature of an operational key', toHex(recordSigningInput(decodeRecord(bytes(hex)))), signingInput);

// Node's own fetch needs Node-only features.
Reflect.set(globalThis, 'fetch', async (url: string, { body }: { readonly body: string }) => {
  same('request', [url, body], ['http://daemon.example/agents/a%2Fb/acl', '{"default":"deny"}']);
  return { status: 200, text: async () => '{"ok":true}' };
});
const client = createClient({ baseUrl: 'http://daemon.example' }, operations);
same('answer', await client.aclPatch({ aid: 'a/b', default: 'deny' }), { ok: true });

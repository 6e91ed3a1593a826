import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { agentGet, agentHeartbeat } from '../../../src/operations/agents.ts';
import { countHeartbeats } from '../../../src/operations/handlers/heartbeats.ts';
import type { BoundOperation, CallContext } from '../../../src/operations/operation.ts';

const context: CallContext = {
  origin: 'local',
  signal: new AbortController().signal,
  requireToken: () => {},
  setStatus: () => {},
};
const aid = nativeAid(new Uint8Array(32).fill(9));

test('only a success of an operation that counts is a heartbeat', async () => {
  const seen: string[] = [];
  let fail = false;
  const run = async (): Promise<unknown> => {
    if (fail) throw new Error('no');
    return { at: 'now' };
  };
  const bound: BoundOperation[] = [
    { declaration: agentHeartbeat, run },
    { declaration: agentGet, run },
  ];
  const [write, read] = countHeartbeats(bound, (local) => seen.push(local));
  assert.deepEqual(await write?.run({ aid }, context), { at: 'now' });
  await read?.run({ aid }, context);
  assert.deepEqual(seen, [aid]);
  fail = true;
  await assert.rejects(async () => write?.run({ aid }, context));
  assert.deepEqual(seen, [aid]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { countHeartbeats } from '../../../src/operations/handlers/agents.ts';
import { operations } from '../../../src/operations/index.ts';
import type { BoundOperation, CallContext } from '../../../src/operations/operation.ts';

const context: CallContext = {
  origin: 'local',
  signal: new AbortController().signal,
  requireToken: () => {},
  setStatus: () => {},
};
const aid = nativeAid(new Uint8Array(32).fill(9));

test('only a success of a heartbeat operation is a heartbeat', async () => {
  const seen: string[] = [];
  let fail = false;
  const run = async (): Promise<unknown> => {
    if (fail) throw new Error('no');
    return { at: 'now' };
  };
  const bound: BoundOperation[] = [
    { declaration: operations.agentHeartbeat, run },
    { declaration: operations.agentGet, run },
  ];
  const [write, read] = countHeartbeats(bound, {
    record: (local) => seen.push(local),
    localAid: () => aid,
    tunnelAid: () => undefined,
  });
  assert.deepEqual(await write?.run({ aid }, context), { at: 'now' });
  await read?.run({ aid }, context);
  assert.deepEqual(seen, [aid]);
  fail = true;
  await assert.rejects(async () => write?.run({ aid }, context));
  assert.deepEqual(seen, [aid]);
});

test('a call and a tunnel are heartbeats of the local agent, not of the called one', async () => {
  const remote = nativeAid(new Uint8Array(32).fill(8));
  const other = nativeAid(new Uint8Array(32).fill(7));
  const seen: string[] = [];
  const run = async (): Promise<unknown> => ({});
  const bound = [operations.fetch, operations.connect, operations.tunnelOpen].map(
    (declaration): BoundOperation => ({ declaration, run }),
  );
  const localAid = (named: string | undefined) => (named === undefined ? aid : other);
  for (const operation of countHeartbeats(bound, {
    record: (local) => seen.push(local),
    localAid,
    tunnelAid: () => undefined,
  })) {
    await operation.run({ aid: remote }, context);
    await operation.run({ aid: remote, local_aid: other }, context);
  }
  assert.deepEqual(seen, [aid, other, aid, other, aid, other]);
});

test('closing and resetting a tunnel are heartbeats of its agent', async () => {
  const seen: string[] = [];
  let there = true;
  const run = async (): Promise<unknown> => {
    there = false;
    return {};
  };
  const bound = [operations.tunnelClose, operations.tunnelReset, operations.tunnelGet].map(
    (declaration): BoundOperation => ({ declaration, run }),
  );
  const dependencies = {
    record: (local: string) => seen.push(local),
    localAid: () => assert.fail('no agent is named'),
    tunnelAid: (id: string) => (there && id === 'one' ? aid : undefined),
  };
  for (const operation of countHeartbeats(bound, dependencies)) {
    there = true;
    await operation.run({ id: 'one' }, context);
    await operation.run({ id: 'two' }, context);
  }
  assert.deepEqual(seen, [aid, aid]);
});

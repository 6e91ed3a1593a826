import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeOfCaller } from '../../../src/capabilities/reach/callers.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { UNHELPED } from '../../../src/network/links/dial.ts';
import { testAid, testKeys } from '../../support/agents.ts';

const NODE = testKeys(1).publicKey;
const OTHER_NODE = testKeys(2).publicKey;
const LOCAL = testAid(3);

/** Looks for the node by agents of whom it is known on which node each is; null for one that has published nothing. */
async function find(agents: ReadonlyMap<Aid, Uint8Array | null>, signal = new AbortController().signal) {
  const asked: Aid[] = [];
  const resolver = {
    locate: async (aid: Aid) => {
      asked.push(aid);
      const nodeKey = agents.get(aid) ?? null;
      if (nodeKey === null) throw new SvcError('resolve_failed');
      return { aid, nodeKey, addresses: [], ...UNHELPED, delegationIssuedAt: 0 };
    },
  };
  const pairsWith = () => [...agents.keys()].map((remote) => ({ local: LOCAL, remote }));
  return { place: await placeOfCaller(NODE, { resolver, pairsWith }, signal), asked };
}

test('the agent that called last and is still there says where its node is', async () => {
  const [moved, here, silent] = [testAid(4), testAid(5), testAid(6)];
  const agents = new Map([
    [moved, OTHER_NODE],
    [here, NODE],
    [silent, null],
  ]);
  const { place, asked } = await find(agents);
  assert.equal(place?.nodeKey, NODE);
  assert.deepEqual(asked, [silent, here]);
});

test('a node is not found by agents that have moved away, and few of them are looked up', async () => {
  const away = Array.from({ length: 10 }, (_, i): [Aid, Uint8Array] => [testAid(10 + i), OTHER_NODE]);
  const { place, asked } = await find(new Map(away));
  assert.deepEqual([place, asked.length], [null, 4]);
});

test('who gives up is let go', async () => {
  await assert.rejects(find(new Map([[testAid(4), null]]), AbortSignal.abort()), { code: 'resolve_failed' });
});

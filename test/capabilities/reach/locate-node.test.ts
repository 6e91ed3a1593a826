import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locateNode } from '../../../src/capabilities/reach/locate-node.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { type Aid, nativeAid } from '../../../src/foundation/identity/aid.ts';
import { UNHELPED } from '../../../src/network/peers/dial.ts';
import { testAid, testKeys } from '../../support/agents.ts';

const NODE = testKeys(1).publicKey;
const OTHER_NODE = testKeys(2).publicKey;
const OWN_AID = nativeAid(NODE);

/** Locates the node through agents with known nodes; null for an agent without a record. */
async function find(agents: ReadonlyMap<Aid, Uint8Array | null>, own = false, signal = new AbortController().signal) {
  const asked: Aid[] = [];
  const resolver = {
    locate: async (aid: Aid) => {
      asked.push(aid);
      const nodeKey = own && aid === OWN_AID ? NODE : (agents.get(aid) ?? null);
      if (nodeKey === null) throw new SvcError('resolve_failed');
      return { aid, nodeKey, addresses: [], ...UNHELPED, delegationIssuedAt: 0 };
    },
  };
  return { place: await locateNode(NODE, [...agents.keys()], resolver, signal), asked };
}

test("a node's own record gives its location", async () => {
  const { place, asked } = await find(new Map([[testAid(4), NODE]]), true);
  assert.equal(place?.nodeKey, NODE);
  assert.deepEqual(asked, [OWN_AID]);
});

test('a node without known agents is not looked up', async () => {
  assert.deepEqual(await find(new Map(), true), { place: null, asked: [] });
});

test('the most recent agent that is still on the node gives its location', async () => {
  const [silent, here, moved] = [testAid(6), testAid(5), testAid(4)];
  const agents = new Map([
    [silent, null],
    [here, NODE],
    [moved, OTHER_NODE],
  ]);
  const { place, asked } = await find(agents);
  assert.equal(place?.nodeKey, NODE);
  assert.deepEqual(asked, [OWN_AID, silent, here]);
});

test('agents that have moved away do not locate a node, and only a few are looked up', async () => {
  const away = Array.from({ length: 10 }, (_, i): [Aid, Uint8Array] => [testAid(10 + i), OTHER_NODE]);
  const { place, asked } = await find(new Map(away));
  assert.deepEqual([place, asked.length], [null, 5]);
});

test('a lookup can be canceled', async () => {
  await assert.rejects(find(new Map([[testAid(4), null]]), false, AbortSignal.abort()), { code: 'resolve_failed' });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseLocalAid } from '../../../src/capabilities/calls/local-aid.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { testAid } from '../../support/agents.ts';

const [NODE, A, B] = [testAid(0), testAid(1), testAid(2)];
const agents = (...list: Aid[]) => ({ has: (aid: Aid) => list.includes(aid), first: (n: number) => list.slice(0, n) });

test('without a name the only agent acts, or the node if there is none; several agents are an error', () => {
  assert.equal(chooseLocalAid(agents(A), NODE, undefined), A);
  assert.equal(chooseLocalAid(agents(), NODE, undefined), NODE);
  assert.throws(() => chooseLocalAid(agents(A, B), NODE, undefined), { code: 'local_aid_required' });
});

test('a named agent must be registered here', () => {
  assert.equal(chooseLocalAid(agents(A, B), NODE, B), B);
  assert.equal(chooseLocalAid(agents(A, B), NODE, NODE), NODE);
  assert.throws(() => chooseLocalAid(agents(A), NODE, B), { code: 'not_found' });
});

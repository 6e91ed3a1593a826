import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseLocalAid, onlyLocalAid } from '../../../src/capabilities/calls/local-aid.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { testAid } from '../../support/agents.ts';

const [NODE, A, B] = [testAid(0), testAid(1), testAid(2)];
const agents = (...list: Aid[]) => ({
  has: (aid: Aid) => list.includes(aid),
  first: (n: number) => list.slice(0, n),
  named: (aids: readonly Aid[]) => aids.map((aid) => ({ aid, name: aid === A ? 'alice' : undefined })),
});

test('without a name the only agent acts, or the node if there is none; several agents are an error', () => {
  assert.equal(chooseLocalAid(agents(A), NODE, undefined), A);
  assert.equal(chooseLocalAid(agents(), NODE, undefined), NODE);
  assert.throws(() => chooseLocalAid(agents(A, B), NODE, undefined), {
    code: 'local_aid_required',
    message: `There are several agents: alice (${A.slice(0, 12)}…), ${B.slice(0, 12)}…. Choose one with local_aid.`,
    details: {
      agents: [
        { aid: A, label: 'alice' },
        { aid: B, label: null },
      ],
    },
  });
});

test('a tool call without "aid" is for the only agent, and never for the node', () => {
  assert.equal(onlyLocalAid(agents(A)), A);
  assert.throws(() => onlyLocalAid(agents()), { code: 'not_found', message: /svc_agent_register/ });
  assert.throws(() => onlyLocalAid(agents(A, B)), {
    code: 'local_aid_required',
    message: /alice \(aid1.*\. Choose one with aid\./,
  });
});

test('the error lists at most 20 agents', () => {
  const many = Array.from({ length: 30 }, (_, i) => testAid(i + 1));
  assert.throws(
    () => onlyLocalAid(agents(...many)),
    (error: { message: string; details: { agents: unknown[] } }) =>
      error.details.agents.length === 20 && error.message.includes(', …. Choose'),
  );
});

test('a named agent must be registered here', () => {
  assert.equal(chooseLocalAid(agents(A, B), NODE, B), B);
  assert.equal(chooseLocalAid(agents(A, B), NODE, NODE), NODE);
  assert.throws(() => chooseLocalAid(agents(A), NODE, B), { code: 'not_found' });
});

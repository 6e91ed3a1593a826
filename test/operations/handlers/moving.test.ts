import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { AgentDocument } from '../../../src/foundation/moving/agent-document.ts';
import { type AgentMover, movingHandlers } from '../../../src/operations/handlers/moving.ts';
import { movingOperations } from '../../../src/operations/moving.ts';
import { newIdentity } from '../../support/identities.ts';
import { furnish, MoverNode } from '../../support/mover-world.ts';
import { operationRunner } from '../../support/run-operation.ts';

function runnerOf(mover: AgentMover) {
  return operationRunner(movingOperations, movingHandlers(mover));
}

function nodeIn(t: TestContext): MoverNode {
  const node = new MoverNode();
  t.after(() => node.close());
  return node;
}

/** A node with an agent that has data of every kind. */
async function furnished(t: TestContext) {
  const node = nodeIn(t);
  const agent = newIdentity();
  await node.registry.register({ ...agent.credentials, serviceTcp: '127.0.0.1:8080' });
  await furnish(node, agent, [newIdentity(), newIdentity(), newIdentity()]);
  return { node, aid: agent.aid };
}

test('an agent is exported to a bundle and imported elsewhere, with a count for each part', async (t) => {
  const { node, aid } = await furnished(t);
  const document = await runnerOf(node.mover)('agentBundle', { params: { aid: aid.toUpperCase() } });
  assert.deepEqual(document, JSON.parse(JSON.stringify(node.mover.export(aid))));
  const home = nodeIn(t);
  assert.deepEqual(await runnerOf(home.mover)('agentImport', { body: document }), {
    aid,
    status: 'registered',
    service_tcp: '127.0.0.1:8080',
    services: 1,
    tunnels: 1,
    origins: 1,
    ports_taken: [],
    notes: 1,
    conversations: 1,
    groups: 1,
  });
  assert.equal(home.registry.get(aid).serviceTcp, '127.0.0.1:8080');
  await assert.rejects(runnerOf(home.mover)('agentImport', { body: document }), { code: 'agent_exists' });
});

test('tunnels whose ports are in use are reported separately from listening tunnels', async (t) => {
  const { node, aid } = await furnished(t);
  const document = node.mover.export(aid);
  const [tunnel] = document.tunnels;
  assert.ok(tunnel !== undefined);
  const tunnels = [4242, 4243, 4244].map((local_port) => ({ ...tunnel, local_port }));
  const taken: AgentMover = {
    export: () => assert.fail(),
    import: async (given: AgentDocument) => {
      assert.equal(given.tunnels.length, 3);
      return { aid, portsTaken: { tunnels: [4242, 4244], origins: [4243] } };
    },
  };
  const answer = await runnerOf(taken)('agentImport', { body: { ...document, tunnels } });
  assert.ok(typeof answer === 'object' && answer !== null && 'tunnels' in answer && 'ports_taken' in answer);
  assert.ok('origins' in answer);
  assert.deepEqual([answer.tunnels, answer.origins, answer.ports_taken], [1, 0, [4242, 4243, 4244]]);
});

test('only local programs may export and import keys, even if a surface does not check it', async (t) => {
  const { node, aid } = await furnished(t);
  const document = node.mover.export(aid);
  const untouchable: AgentMover = {
    export: () => assert.fail('exported'),
    import: () => assert.fail('imported'),
  };
  const run = runnerOf(untouchable);
  for (const origin of ['remote', 'remote_admin'] as const) {
    await assert.rejects(run('agentBundle', { params: { aid } }, { origin }), { code: 'local_only' });
    await assert.rejects(run('agentImport', { body: document }, { origin }), { code: 'local_only' });
  }
});

test('an unknown agent and an invalid document are errors', async (t) => {
  const node = nodeIn(t);
  const run = runnerOf(node.mover);
  await assert.rejects(run('agentBundle', { params: { aid: newIdentity().aid } }), { code: 'not_found' });
  await assert.rejects(run('agentBundle', { params: { aid: 'me' } }), { code: 'bad_aid' });
  await assert.rejects(run('agentImport', { body: {} }), { code: 'invalid_request' });
  const { node: other, aid } = await furnished(t);
  const document = other.mover.export(aid);
  await assert.rejects(run('agentImport', { body: { ...document, svcd_agent: 3 } }), { code: 'invalid_request' });
  await assert.rejects(run('agentImport', { body: { ...document, extra: 1 } }), { code: 'invalid_request' });
});

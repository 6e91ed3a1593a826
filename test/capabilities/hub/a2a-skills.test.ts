import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2aSkills, toolsOfCard } from '../../../src/capabilities/hub/a2a-skills.ts';
import { defineTool } from '../../../src/capabilities/hub/definition.ts';
import type { Card } from '../../../src/foundation/cards/card.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

const { aid: local } = newIdentity();
const { aid: remote } = newIdentity();
const { signal } = new AbortController();

const SKILL = {
  id: 'translate',
  name: 'Translation',
  description: 'Translates texts.',
  tags: ['language'],
  examples: ['Say hello in Polish.'],
};
const NEW: Card = {
  skills: [SKILL],
  supportedInterfaces: [{ url: `svc://${remote}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
};
const OLD: Card = { skills: [SKILL], url: `svc://${remote}/old`, preferredTransport: 'JSONRPC' };

/** The request of one call to an agent with this card, and the result for its answer. */
async function called(card: Card | null, answer: unknown, args: Record<string, unknown> = { message: 'hello' }) {
  const sent: { url: string; body: Record<string, unknown>; version: string | null }[] = [];
  const skills = new A2aSkills({
    clock: new TestClock(),
    newId: () => 'id',
    card: async () => card,
    fetch: () => async (url, init) => {
      const version = new Headers(init?.headers).get('a2a-version');
      sent.push({ url: String(url), body: JSON.parse(typeof init?.body === 'string' ? init.body : ''), version });
      return answer instanceof Response ? answer : Response.json(answer);
    },
  });
  const result = await skills.call({ local, remote }, { name: 'translate', args, signal });
  return { result, sent: sent[0] };
}

test('skills become tools', () => {
  const [tool] = toolsOfCard(NEW);
  const definition = defineTool(remote, 'a2a', tool);
  assert.equal(definition?.name, 'translate');
  assert.match(definition.json, /Translates texts\.\\nTags: language\.\\nExample: Say hello in Polish\./);
  for (const card of [{}, { skills: 'x' }, { skills: [null, 1, {}] }] as Card[])
    assert.deepEqual(
      toolsOfCard(card).map((one) => defineTool(remote, 'a2a', one)),
      toolsOfCard(card).map(() => null),
    );
});

test('a message to an agent of A2A 1.0, and its answer', async () => {
  const message = { messageId: '1', role: 'ROLE_AGENT', parts: [{ text: 'cześć' }], contextId: 'c' };
  const args = { message: 'hello', context_id: 'c' };
  const { result, sent } = await called(NEW, { jsonrpc: '2.0', id: 'id', result: { message } }, args);
  assert.deepEqual([new URL(sent?.url ?? '').pathname, sent?.version], ['/a2a', '1.0']);
  assert.deepEqual(sent?.body['method'], 'SendMessage');
  assert.deepEqual(sent.body['params'], {
    message: {
      messageId: 'id',
      role: 'ROLE_USER',
      parts: [{ text: 'hello' }],
      contextId: 'c',
      metadata: { 'svcd/skill': 'translate' },
    },
  });
  assert.deepEqual(result['content'], [{ type: 'text', text: 'cześć' }]);
});

test('a message to an agent of A2A 0.3, and a failed task', async () => {
  const failed = {
    kind: 'task',
    id: 't',
    status: { state: 'failed', message: { parts: [{ kind: 'text', text: 'no' }] } },
  };
  const { result, sent } = await called(OLD, { jsonrpc: '2.0', id: 'id', result: failed });
  assert.deepEqual(
    [new URL(sent?.url ?? '').pathname, sent?.version, sent?.body['method']],
    ['/old', '0.3', 'message/send'],
  );
  assert.deepEqual([result['isError'], result['content']], [true, [{ type: 'text', text: 'no' }]]);
});

test('errors of an agent are results, and anything else is an error', async () => {
  const { result } = await called(NEW, { jsonrpc: '2.0', id: 'id', error: { code: -1, message: 'no' } });
  assert.equal(result['isError'], true);
  for (const answer of [null, [], 'x', { result: 1 }, {}])
    await assert.rejects(called(NEW, answer), { code: 'bad_response' });
  // Its values are counted by events only.
  const stream = new Response('{"result":{}}', { headers: { 'content-type': 'text/event-stream' } });
  await assert.rejects(called(NEW, stream), { code: 'bad_response' });
  await assert.rejects(called(NEW, {}, {}), { code: 'invalid_request' });
  await assert.rejects(called(null, {}), { code: 'not_found' });
});

test('a card cannot send a call to another agent or address', async () => {
  const { aid: other } = newIdentity();
  for (const url of [`svc://${other}/a2a`, 'http://127.0.0.1:1/a2a', `svc://${remote}@x/a2a`, `svc://${remote}x/`, 7]) {
    const card = { skills: [SKILL], supportedInterfaces: [{ url, protocolBinding: 'JSONRPC' }] };
    await assert.rejects(called(card, {}), { code: 'bad_card' }, String(url));
  }
});

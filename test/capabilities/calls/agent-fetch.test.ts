import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { agentFetch } from '../../../src/capabilities/calls/agent-fetch.ts';
import { newIdentity } from '../../support/identities.ts';

const { aid: local } = newIdentity();
const { aid: remote } = newIdentity();
const LIMITS = { maxBytes: 1_000, maxValues: 10 };

/** A `fetch` to an agent whose response has this head. The test sends the body. */
function answering(type: string, status = 200) {
  const body = new IncomingMessage(new Socket());
  let released = 0;
  const release = (): number => released++;
  const caller = {
    request: async () => ({ status, statusText: '', headers: ['Content-Type', type], body, release }),
  };
  return { fetch: agentFetch(caller, local, remote, LIMITS), body, released: () => released };
}

function fetching(type: string, chunks: readonly string[], status = 200) {
  const answer = answering(type, status);
  for (const chunk of chunks) answer.body.push(Buffer.from(chunk));
  answer.body.push(null);
  return answer;
}

test('a response, its status and its headers', async () => {
  const { fetch, released } = fetching('application/json', ['{"a":', '1}']);
  const response = await fetch('http://agent.invalid/mcp?x=1', { method: 'POST', body: '{}' });
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/json']);
  assert.deepEqual(await response.json(), { a: 1 });
  assert.equal(released(), 2);
  const none = await fetching('text/plain', [], 204).fetch('http://agent.invalid/');
  assert.deepEqual([none.status, none.body], [204, null]);
});

test('a large response, or one with many values, is cut off', async () => {
  for (const [type, chunks] of [
    ['application/json', ['"', 'x'.repeat(2_000), '"']],
    ['application/json', ['[', '1,'.repeat(20), '1]']],
    ['text/event-stream', ['data: [', '1,'.repeat(20), '1]\n\n']],
    ['text/event-stream', ['data: [', '1,'.repeat(20), '1]\r\r']],
    ['text/event-stream', ['\ufeffdata: [\n', 'data: 1,\n'.repeat(20), 'data: 1]\n\n']],
    ['Text/Event-Stream; charset=utf-8', ['data: [', '1,'.repeat(20), '1]\n\n']],
    ['text/event-stream', Array.from({ length: 300 }, () => 'data: 1\n')],
  ] as const) {
    const response = await fetching(type, chunks).fetch('http://agent.invalid/');
    await assert.rejects(response.text(), `${type} ${chunks[1]}`);
  }
});

test('an event stream passes while it is open', async () => {
  const { fetch, body } = answering('text/event-stream');
  const response = await fetch('http://agent.invalid/');
  const reader = response.body?.getReader();
  body.push(Buffer.from('data: 1\n'));
  const { value } = (await reader?.read()) ?? {};
  assert.equal(Buffer.from(value as Uint8Array).toString(), 'data: 1\n');
  await reader?.cancel();
});

test('a response that has no place in the web API is closed', async () => {
  const { fetch, body } = answering('application/json', 999);
  await assert.rejects(fetch('http://agent.invalid/'), RangeError);
  assert.equal(body.destroyed, true);
});

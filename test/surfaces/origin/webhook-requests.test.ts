/** Requests about webhooks, as the official client writes them in all dialects. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { SendMessageRequest, TaskPushNotificationConfig } from '@a2a-js/sdk';
import { JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { LegacyJsonRpcTransport, LegacyRestTransport } from '@a2a-js/sdk/compat/v0_3/client';
import {
  isPushPath,
  mayBeWebhookCall,
  parseWebhookRequest,
  webhookRequestByPath,
  withWebhooks,
} from '../../../src/surfaces/origin/webhook-requests.ts';

const HOOK = 'http://127.0.0.1:3000/hook';

interface Written {
  readonly request: IncomingMessage;
  readonly body: string;
}

function requestOf(method: string, url: string, headers: Record<string, string>): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  return Object.assign(request, { method, url, headers });
}

/** The request of a client, without a response. */
function writing(): { readonly fetchImpl: typeof fetch; readonly last: () => Written } {
  let written: Written | null = null;
  const fetchImpl: typeof fetch = async (input, init) => {
    const body = typeof init?.body === 'string' ? init.body : '';
    const headers = Object.fromEntries(new Headers(init?.headers).entries());
    if (body !== '') headers['content-length'] = String(Buffer.byteLength(body));
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    written = { request: requestOf(init?.method ?? 'GET', pathname + search, headers), body };
    return new Response('{}', { status: 500, headers: { 'content-type': 'application/json' } });
  };
  return {
    fetchImpl,
    last: () => {
      assert.ok(written !== null);
      return written;
    },
  };
}

async function clients(fetchImpl: typeof fetch) {
  const endpoint = 'http://127.0.0.1:4000/agent';
  const card = (protocolBinding: string) => ({ url: endpoint, protocolBinding, protocolVersion: '1.0', tenant: '' });
  const whole = { name: 'x', supportedInterfaces: [card('JSONRPC'), card('HTTP+JSON')] };
  const { AgentCard } = await import('@a2a-js/sdk');
  return {
    'JSON-RPC 1.0': await new JsonRpcTransportFactory({ fetchImpl }).create(endpoint, AgentCard.fromJSON(whole)),
    'HTTP+JSON 1.0': await new RestTransportFactory({ fetchImpl }).create(endpoint, AgentCard.fromJSON(whole)),
    'JSON-RPC 0.3': new LegacyJsonRpcTransport({ endpoint, fetchImpl }),
    'HTTP+JSON 0.3': new LegacyRestTransport({ endpoint, fetchImpl }),
  };
}

const MESSAGE = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: `my webhook is ${HOOK}` }] };
const CONFIG = { id: 'c1', url: HOOK, token: 't' };
const asked = { tenant: '', taskId: 'task-1', id: 'c1' };

function sending(taskId: string) {
  const configuration = { taskPushNotificationConfig: CONFIG };
  return SendMessageRequest.fromJSON({ message: { ...MESSAGE, taskId }, configuration });
}

/** The webhooks found in a request, and the text after their replacement. */
function changed({ body }: Written): { readonly found: string[]; readonly after: string } {
  const found: string[] = [];
  const after = withWebhooks(body, (address) => {
    found.push(address);
    return 'http://127.0.0.1:1/box';
  });
  return { found, after };
}

test('finds a webhook in a message, and nowhere else', async () => {
  const { fetchImpl, last } = writing();
  for (const [dialect, client] of Object.entries(await clients(fetchImpl))) {
    for (const taskId of ['', 'task-1']) {
      await client.sendMessage(sending(taskId)).catch(() => {});
      const question = parseWebhookRequest(last().request, last().body);
      const purpose = taskId === '' ? null : JSON.stringify(['task-1', 'c1']);
      assert.deepEqual(question, { kind: 'names', isAnswered: false, purpose }, dialect);
      assert.ok(isPushPath(last().request) || mayBeWebhookCall(last().body), dialect);
      const { found, after } = changed(last());
      assert.deepEqual(found, [HOOK], dialect);
      assert.ok(after.includes(`my webhook is ${HOOK}`), dialect);
    }
    await client.sendMessage(SendMessageRequest.fromJSON({ message: MESSAGE })).catch(() => {});
    assert.deepEqual(changed(last()).found, [], dialect);
  }
});

test('finds configurations that are created, shown and deleted', async () => {
  const { fetchImpl, last } = writing();
  for (const [dialect, client] of Object.entries(await clients(fetchImpl))) {
    const config = TaskPushNotificationConfig.fromJSON({ ...CONFIG, taskId: 'task-1' });
    await client.createTaskPushNotificationConfig(config).catch(() => {});
    const made = parseWebhookRequest(last().request, last().body);
    assert.equal(made?.kind, 'names', dialect);
    assert.deepEqual(made, { kind: 'names', isAnswered: true, purpose: JSON.stringify(['task-1', 'c1']) }, dialect);
    assert.deepEqual(changed(last()).found, [HOOK], dialect);

    const question = () => {
      const { request, body } = last();
      return body === '' ? webhookRequestByPath(request) : parseWebhookRequest(request, body);
    };
    await client.getTaskPushNotificationConfig(asked).catch(() => {});
    const shows = last();
    assert.ok(['reads', 'names'].includes(question()?.kind ?? ''), dialect);
    await client.listTaskPushNotificationConfig({ ...asked, pageSize: 0, pageToken: '' }).catch(() => {});
    assert.ok(['reads', 'names'].includes(question()?.kind ?? ''), dialect);

    await client.deleteTaskPushNotificationConfig(asked).catch(() => {});
    const back = question();
    assert.equal(back?.kind, 'takesBack', dialect);
    if (back?.kind !== 'takesBack') return;
    if (back.before === null) assert.equal(last().request.url, shows.request.url, dialect);
    else {
      // The same call that the client itself uses to show it, except for its number.
      const [one, other] = [back.before, shows.body].map((text) => text.replace(/"id":\d+/, '"id":0'));
      assert.equal(one, other, dialect);
    }
  }
});

test('does not inspect other requests', () => {
  const json = { 'content-type': 'application/json', 'content-length': '10' };
  assert.ok(!isPushPath(requestOf('POST', '/rpc', json)));
  assert.ok(!mayBeWebhookCall('{"method":"SendMessage","params":{"configuration":{}}}'));
  const call = (method: string) => JSON.stringify({ method, params: { pushNotificationConfig: { url: HOOK } } });
  const request = requestOf('POST', '/mcp', json);
  assert.equal(parseWebhookRequest(request, call('tools/call')), null);
  assert.equal(parseWebhookRequest(request, '{"pushNotification": nothing'), null);
  for (const url of ['/v1/message:send', '/v1/tasks/1/pushNotificationConfigs'])
    assert.equal(parseWebhookRequest(requestOf('POST', url, json), `"${'\\"'.repeat(9)}`), null, 'no JSON');
  assert.equal(webhookRequestByPath(requestOf('GET', '/tasks/1', {})), null);
  const batch = `[${call('tasks/pushNotificationConfig/set')},${call('tools/call')}]`;
  assert.equal(parseWebhookRequest(request, batch)?.kind, 'names');
  const escaped = call('message/send').replace('push', '\\u0070ush');
  assert.equal(parseWebhookRequest(request, escaped)?.kind, 'names');
  assert.equal(
    withWebhooks(escaped, () => 'x'),
    escaped.replace(HOOK, 'x'),
  );
});

test('a purpose is at most two IDs long', () => {
  const purposeOf = (taskId: string) => {
    const body = JSON.stringify({ method: 'CreateTaskPushNotificationConfig', params: { taskId, id: 'c', url: HOOK } });
    const question = parseWebhookRequest(requestOf('POST', '/rpc', {}), body);
    assert.ok(question?.kind === 'names');
    return question.purpose;
  };
  assert.equal(purposeOf('t'), '["t","c"]');
  assert.equal(purposeOf('t'.repeat(1000)), null);
});

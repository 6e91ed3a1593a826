/**
 * Tests a toy agent with the official JavaScript client: `node client.ts <address>`. Prints one JSON line per verdict,
 * without IDs, times and machine addresses, so that two runs can be compared. Runs the same checks as `a2a_client.py`.
 */
import { randomUUID } from 'node:crypto';
import {
  AgentCard,
  ListTasksRequest,
  type Message,
  SendMessageRequest,
  type StreamResponse,
  type Task,
  taskStateToJSON,
} from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { credentials, Client as GrpcClient } from '@grpc/grpc-js';
import { masked } from './masked.ts';
import { openWebhook } from './webhook.ts';

const [base = ''] = process.argv.slice(2);
const legacyCompat = { enabled: true };
const tenant = '';
const webhook = await openWebhook();

function say(check: string, verdict: unknown): void {
  console.log(masked({ check, verdict }));
}

/** Prints the result of a query, or its error. */
async function ask<T>(check: string, question: () => Promise<T>, verdict: (answer: T) => unknown): Promise<T | null> {
  try {
    const answer = await question();
    say(check, verdict(answer));
    return answer;
  } catch (error) {
    say(check, error instanceof Error ? { error: error.constructor.name, message: error.message } : { error });
    return null;
  }
}

function textOf(message: Message | undefined): string {
  return message?.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '?')).join('|') ?? '';
}

function stateOf({ status }: Pick<Task, 'status'>): string {
  return `${status === undefined ? 'none' : taskStateToJSON(status.state)} ${textOf(status?.message)}`.trim();
}

function taskText(task: Task): unknown {
  const artifacts = task.artifacts.map(({ name, parts }) => `${name}: ${parts.length}`);
  return { state: stateOf(task), artifacts, history: task.history.map(textOf) };
}

function eventText({ payload }: StreamResponse): string {
  switch (payload?.$case) {
    case 'message':
      return `message ${textOf(payload.value)}`;
    case 'task':
      return `task ${stateOf(payload.value)}`;
    case 'statusUpdate':
      return `status ${stateOf(payload.value)}`;
    case 'artifactUpdate': {
      const { artifact, append, lastChunk } = payload.value;
      const parts = artifact?.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '?'));
      return `artifact ${artifact?.name} ${parts?.join('|')} ${append} ${lastChunk}`;
    }
    default:
      return 'nothing';
  }
}

async function eventsOf(stream: AsyncIterable<StreamResponse>, seen: (event: StreamResponse) => void = () => {}) {
  const events: string[] = [];
  for await (const event of stream) {
    events.push(eventText(event));
    seen(event);
  }
  return events;
}

function messageOf(text: string, contextId: string = randomUUID()): SendMessageRequest {
  const message = { messageId: randomUUID(), contextId, role: 'ROLE_USER', parts: [{ text }] };
  return SendMessageRequest.fromJSON({ message });
}

/**
 * A pending task: subscribers see its events, and it ends when it is canceled.
 * @param rpc registers a webhook for a task that `client` started; null for none
 */
async function held(at: string, client: Client, rpc: Client | null): Promise<void> {
  const contextId = randomUUID();
  const working = Promise.withResolvers<string>();
  const stream = eventsOf(client.sendMessageStream(messageOf('hold on', contextId)), ({ payload }) => {
    if (payload?.$case === 'statusUpdate') working.resolve(payload.value.taskId);
  });
  stream.catch(working.reject);
  const id = await working.promise;
  await ask(`${at} get`, () => client.getTask({ tenant, id, historyLength: undefined }), taskText);
  const some = ListTasksRequest.fromJSON({ contextId, historyLength: 0 });
  await ask(
    `${at} list`,
    () => client.listTasks(some),
    ({ tasks }) => tasks.map((task) => stateOf(task)),
  );
  await push(at, client, id);
  const path = await tellMe(at, client, id);
  const viaJsonRpc = `JSON-RPC next to ${at}`;
  const otherPath = rpc === null ? null : await tellMe(viaJsonRpc, rpc, id, 'p3');
  const first = Promise.withResolvers<void>();
  const watched = eventsOf(client.resubscribeTask({ tenant, id }), () => first.resolve());
  watched.catch(first.reject);
  await ask(
    `${at} subscribe`,
    () => first.promise,
    () => 'it begins',
  );
  await ask(`${at} cancel`, () => client.cancelTask({ tenant, id, metadata: undefined }), stateOf);
  if (path !== null) await notified(at, path);
  if (otherPath !== null) await notified(viaJsonRpc, otherPath);
  await ask(
    `${at} stream of the held task`,
    () => stream,
    (events) => events,
  );
  await ask(
    `${at} stream of a subscriber`,
    () => watched,
    (events) => events,
  );
  await ask(`${at} get cancelled`, () => client.getTask({ tenant, id, historyLength: undefined }), taskText);
  await ask(`${at} cancel again`, () => client.cancelTask({ tenant, id, metadata: undefined }), stateOf);
  await ask(
    `${at} subscribe to what is over`,
    () => eventsOf(client.resubscribeTask({ tenant, id })),
    (events) => events,
  );
}

/** Registers a webhook, reads it, and deletes it. */
async function push(at: string, client: Client, taskId: string): Promise<void> {
  const url = `${webhook.url}/never`;
  const config = { tenant, id: 'p1', taskId, url, token: 'secret', authentication: undefined };
  const shown = (one: { id: string; url: string; token: string }) =>
    `${one.id} ${one.url === url ? 'as it was given' : one.url} ${one.token}`;
  const one = { tenant, taskId, id: 'p1' };
  const all = { tenant, taskId, pageSize: 0, pageToken: '' };
  await ask(`${at} push set`, () => client.createTaskPushNotificationConfig(config), shown);
  await ask(`${at} push get`, () => client.getTaskPushNotificationConfig(one), shown);
  await ask(
    `${at} push list`,
    () => client.listTaskPushNotificationConfig(all),
    ({ configs }) => configs.map(shown),
  );
  await ask(
    `${at} push delete`,
    () => client.deleteTaskPushNotificationConfig(one),
    () => 'deleted',
  );
  await ask(`${at} push get deleted`, () => client.getTaskPushNotificationConfig(one), shown);
}

/** Registers a webhook and waits for a notification. @returns its path, or null if the SDKs are incompatible */
async function tellMe(at: string, client: Client, taskId: string, id = 'p2'): Promise<string | null> {
  const path = `/${randomUUID()}`;
  const config = { tenant, id, taskId, url: webhook.url + path, token: 'mine', authentication: undefined };
  const kept = await ask(
    `${at} push wanted`,
    () => client.createTaskPushNotificationConfig(config),
    ({ token }) => token,
  );
  return kept === null ? null : path;
}

async function notified(at: string, path: string): Promise<void> {
  await ask(
    `${at} push comes`,
    () => webhook.heard(path, /cancell?ed/i),
    ({ caller, ...one }) => {
      console.log(JSON.stringify({ at, caller: caller ?? null }));
      return { ...one, path: '/hook' };
    },
  );
}

async function everything(at: string, client: Client, rpc: Client | null): Promise<void> {
  await ask(
    `${at} extended card`,
    () => client.getAgentCard(),
    (card) => AgentCard.toJSON(card),
  );
  await ask(
    `${at} send`,
    () => client.sendMessage(messageOf('echo é ✓')),
    (answer) => ('parts' in answer ? textOf(answer) : taskText(answer)),
  );
  for (const text of ['work', 'fail'])
    await ask(
      `${at} send ${text}`,
      () => client.sendMessage(messageOf(text)),
      (answer) => ('parts' in answer ? textOf(answer) : taskText(answer)),
    );
  for (const text of ['echo', 'work', 'fail'])
    await ask(
      `${at} stream ${text}`,
      () => eventsOf(client.sendMessageStream(messageOf(text))),
      (events) => events,
    );
  await held(at, client, rpc);
  const unknown = { tenant, id: 'nobody', historyLength: undefined, metadata: undefined };
  await ask(`${at} get unknown`, () => client.getTask(unknown), taskText);
  await ask(`${at} cancel unknown`, () => client.cancelTask(unknown), stateOf);
  await ask(
    `${at} send nothing`,
    () => client.sendMessage(SendMessageRequest.fromJSON({})),
    () => 'taken',
  );
}

/** Requests that no SDK client sends. */
async function raw(path: string, init: RequestInit): Promise<unknown> {
  const response = await fetch(base + path, init);
  const type = response.headers.get('content-type');
  return { status: response.status, type, body: await response.text() };
}

async function strange(): Promise<void> {
  const rpc = (headers: Record<string, string>, body: string): RequestInit => ({
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  const call = (method: string): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} });
  const v1 = { 'A2A-Version': '1.0' };
  const questions: [string, string, RequestInit][] = [
    ['card', '/.well-known/agent-card.json', { headers: v1 }],
    ['card of 0.3', '/.well-known/agent-card.json', {}],
    ['card elsewhere', '/.well-known/agent.json', {}],
    ['unknown method', '/jsonrpc', rpc(v1, call('NoSuchMethod'))],
    ['unknown method of 0.3', '/jsonrpc', rpc({}, call('no/such'))],
    ['extended card by call', '/jsonrpc', rpc(v1, call('GetExtendedAgentCard'))],
    ['extended card of 0.3 by call', '/jsonrpc', rpc({}, call('agent/getAuthenticatedExtendedCard'))],
    ['no JSON', '/jsonrpc', rpc(v1, '{"jsonrpc"')],
    ['no call', '/jsonrpc', rpc(v1, '[]')],
    ['version of tomorrow', '/jsonrpc', rpc({ 'A2A-Version': '9.9' }, call('GetTask'))],
    ['version of tomorrow over HTTP', '/rest/tasks/nobody', { headers: { 'A2A-Version': '9.9' } }],
    ['unknown path', '/rest/no/such/path', { headers: v1 }],
    ['no JSON over HTTP', '/rest/message:send', rpc(v1, '{')],
    ['wrong verb', '/rest/message:send', { headers: v1 }],
    ['task of 0.3 over HTTP', '/rest/v1/tasks/nobody', {}],
  ];
  for (const [check, path, init] of questions)
    await ask(
      `plain ${check}`,
      () => raw(path, init),
      (answer) => answer,
    );
}

/** A method that no gRPC service has. */
async function unknownOverGrpc(target: string): Promise<unknown> {
  const client = new GrpcClient(target, credentials.createInsecure());
  try {
    return await new Promise((resolve) => {
      const bytes = (value: Buffer): Buffer => value;
      client.makeUnaryRequest('/lf.a2a.v1.A2AService/NoSuch', bytes, bytes, Buffer.alloc(0), (error, value) => {
        resolve(error === null ? value : { code: error.code, details: error.details });
      });
    });
  } finally {
    client.close();
  }
}

const factory = new ClientFactory(
  ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    cardResolver: new DefaultAgentCardResolver({ legacyCompat }),
    transports: [
      new JsonRpcTransportFactory({ legacyCompat }),
      new RestTransportFactory({ legacyCompat }),
      new GrpcTransportFactory({ legacyCompat }),
    ],
  }),
);
const card = await new DefaultAgentCardResolver({ legacyCompat }).resolve(base);
console.log(JSON.stringify({ addresses: card.supportedInterfaces.map(({ url }) => url) }));
say('card', AgentCard.toJSON(card));
let rpc: Client | null = null;
for (const one of card.supportedInterfaces) {
  const at = `${one.protocolBinding} ${one.protocolVersion}`;
  const client = await ask(
    `${at} client`,
    () => factory.createFromAgentCard({ ...card, supportedInterfaces: [one] }),
    () => 'made',
  );
  if (at === 'JSONRPC 1.0') rpc = client;
  if (client !== null) await everything(at, client, one.protocolBinding === 'GRPC' ? rpc : null);
}
await strange();
const grpc = card.supportedInterfaces.find(({ protocolBinding }) => protocolBinding === 'GRPC')?.url;
if (grpc !== undefined)
  await ask(
    'GRPC unknown method',
    () => unknownOverGrpc(grpc),
    (answer) => answer,
  );
console.log(JSON.stringify({ done: true }));
process.exit(0);

/**
 * A small A2A agent built with the official JavaScript SDK: JSON-RPC and HTTP+JSON on one port, gRPC on another, 1.0
 * and 0.3. `node toy-agent.ts <http port> <grpc port>`; it prints a line when it is ready. It behaves like
 * `toy_agent.py`: it echoes, works in steps, fails, or holds a task until it is canceled.
 */
import { once } from 'node:events';
import {
  type AgentCard,
  AgentCard as Cards,
  type Message,
  Message as Messages,
  Task,
  TaskArtifactUpdateEvent,
  TaskStatusUpdateEvent,
} from '@a2a-js/sdk';
import { createLegacyAwarePushNotificationSender } from '@a2a-js/sdk/compat/v0_3/server';
import { LegacyA2AService, legacyGrpcService } from '@a2a-js/sdk/compat/v0_3/server/grpc';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { A2AService, UserBuilder as GrpcUserBuilder, grpcService } from '@a2a-js/sdk/server/grpc';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import express from 'express';

const [httpPort = 0, grpcPort = 0] = process.argv.slice(2).map(Number);

function textOf(message: Message): string {
  const content = message.parts[0]?.content;
  return content?.$case === 'text' ? content.value : '';
}

/** Publishes the events of one task. */
class Telling {
  readonly #bus: ExecutionEventBus;
  readonly #ids: { readonly taskId: string; readonly contextId: string };

  constructor(bus: ExecutionEventBus, ids: { readonly taskId: string; readonly contextId: string }) {
    this.#bus = bus;
    this.#ids = { taskId: ids.taskId, contextId: ids.contextId };
  }

  submitted(userMessage: Message): void {
    const { taskId: id, contextId } = this.#ids;
    const history = [Messages.toJSON(userMessage)];
    const task = { id, contextId, status: { state: 'TASK_STATE_SUBMITTED' }, history };
    this.#bus.publish(AgentEvent.task(Task.fromJSON(task)));
  }

  status(state: string, text?: string): void {
    const message =
      text === undefined ? {} : { message: { messageId: state, role: 'ROLE_AGENT', parts: [{ text }], ...this.#ids } };
    const event = { ...this.#ids, status: { state: `TASK_STATE_${state}`, ...message } };
    this.#bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(event)));
  }

  artifact(text: string, lastChunk: boolean): void {
    const artifact = { artifactId: 'a1', name: 'answer', parts: [{ text }] };
    const event = { ...this.#ids, artifact, append: text !== 'one', lastChunk };
    this.#bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(event)));
  }
}

const held = new Map<string, { readonly telling: Telling; readonly over: () => void }>();

const toy: AgentExecutor = {
  execute: async (context: RequestContext, bus: ExecutionEventBus) => {
    const { userMessage, taskId, contextId } = context;
    const text = textOf(userMessage);
    const telling = new Telling(bus, { taskId, contextId });
    if (text.startsWith('echo')) {
      const reply = { messageId: 'reply', role: 'ROLE_AGENT', parts: [{ text: `echo: ${text}` }], contextId };
      bus.publish(AgentEvent.message(Messages.fromJSON(reply)));
      return bus.finished();
    }
    telling.submitted(userMessage);
    telling.status('WORKING', 'at it');
    if (text.startsWith('fail')) telling.status('FAILED', 'it failed');
    else if (text.startsWith('hold')) await new Promise<void>((over) => held.set(taskId, { telling, over }));
    else {
      telling.artifact('one', false);
      telling.artifact('two', true);
      telling.status('COMPLETED', 'done');
    }
    bus.finished();
  },
  cancelTask: async (taskId) => {
    const one = held.get(taskId);
    one?.telling.status('CANCELED');
    one?.over();
    held.delete(taskId);
  },
};

function card(name: string): AgentCard {
  const http = `http://127.0.0.1:${httpPort}`;
  const ways = [
    ['JSONRPC', `${http}/jsonrpc`],
    ['HTTP+JSON', `${http}/rest`],
    ['GRPC', `127.0.0.1:${grpcPort}`],
  ];
  return Cards.fromJSON({
    name,
    description: 'Says again what it hears.',
    version: '1.0.0',
    supportedInterfaces: ['1.0', '0.3'].flatMap((protocolVersion) =>
      ways.map(([protocolBinding, url]) => ({ protocolBinding, url, protocolVersion })),
    ),
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'echo', name: 'Echo', description: 'Repeats the text', tags: ['echo'] }],
  });
}

const webhooks = new InMemoryPushNotificationStore();
const requestHandler = new DefaultRequestHandler(
  card('Toy'),
  new InMemoryTaskStore(),
  toy,
  undefined,
  webhooks,
  createLegacyAwarePushNotificationSender(webhooks),
  async () => card('Toy for friends'),
);
const legacyCompat = { enabled: true };
const user = { userBuilder: UserBuilder.noAuthentication };
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }));
app.use('/jsonrpc', jsonRpcHandler({ requestHandler, legacyCompat, ...user }));
app.use('/rest', restHandler({ requestHandler, legacyCompat, ...user }));

const grpc = new Server();
const grpcUser = { userBuilder: GrpcUserBuilder.noAuthentication };
grpc.addService(A2AService, grpcService({ requestHandler, ...grpcUser }));
grpc.addService(LegacyA2AService, legacyGrpcService({ requestHandler, ...grpcUser }));
await new Promise<void>((resolve, reject) => {
  grpc.bindAsync(`127.0.0.1:${grpcPort}`, ServerCredentials.createInsecure(), (error) =>
    error === null ? resolve() : reject(error),
  );
});
await once(app.listen(httpPort, '127.0.0.1'), 'listening');
console.log('ready');

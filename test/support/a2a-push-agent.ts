/**
 * An A2A agent built with the official SDK that notifies webhooks: over JSON-RPC in 1.0 and 0.3, and over HTTP+JSON in
 * 1.0. The test advances its tasks.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { AgentCard, SendMessageRequest, Task, TaskPushNotificationConfig, TaskStatusUpdateEvent } from '@a2a-js/sdk';
import { createLegacyAwarePushNotificationSender, LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server';

function statusOf(taskId: string, contextId: string, text: string, state: string): TaskStatusUpdateEvent {
  const message = { messageId: `${taskId}-${text}`, role: 'ROLE_AGENT', parts: [{ text }] };
  return TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status: { state, message } });
}

/** Tasks that the test advances. */
class Steps implements AgentExecutor {
  readonly #tasks = new Map<string, { bus: ExecutionEventBus; contextId: string; over: () => void }>();

  readonly execute: AgentExecutor['execute'] = async ({ taskId, contextId }, bus) => {
    const { promise, resolve: over } = Promise.withResolvers<void>();
    this.#tasks.set(taskId, { bus, contextId, over });
    bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status: { state: 'TASK_STATE_WORKING' } })));
    await promise;
  };

  readonly cancelTask = async (): Promise<void> => {};

  say(taskId: string, text: string, isLast: boolean): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined) throw new Error(`no task ${taskId}`);
    const state = isLast ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_WORKING';
    task.bus.publish(AgentEvent.statusUpdate(statusOf(taskId, task.contextId, text, state)));
    if (!isLast) return;
    task.bus.finished();
    task.over();
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

export class A2aPushAgent {
  readonly server: Server;
  readonly port: number;
  /** Every registered webhook URL. */
  readonly webhooks = new Set<string>();
  readonly #steps = new Steps();
  readonly #handler: DefaultRequestHandler;
  readonly #card: Record<string, unknown>;

  private constructor(server: Server, port: number) {
    this.server = server;
    this.port = port;
    const base = `http://127.0.0.1:${port}`;
    this.#card = {
      name: 'Steps',
      description: 'Continues on request.',
      version: '1.0.0',
      supportedInterfaces: [
        { url: `${base}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url: `${base}/old`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
        { url: `${base}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      ],
      capabilities: { streaming: true, pushNotifications: true },
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [{ id: 'steps', name: 'Steps', description: 'Goes on', tags: ['steps'] }],
    };
    const store = new InMemoryPushNotificationStore();
    const { webhooks } = this;
    const noting = Object.assign(Object.create(store) as InMemoryPushNotificationStore, {
      save: async (...args: Parameters<InMemoryPushNotificationStore['save']>) => {
        webhooks.add(args[2].url);
        await store.save(...args);
      },
    });
    this.#handler = new DefaultRequestHandler(
      AgentCard.fromJSON(this.#card),
      new InMemoryTaskStore(),
      this.#steps,
      undefined,
      noting,
      createLegacyAwarePushNotificationSender(store),
    );
    server.on('request', (request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<A2aPushAgent> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return new A2aPushAgent(server, address.port);
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** Advances a task and notifies its webhooks. */
  say(taskId: string, text: string, isLast = false): void {
    this.#steps.say(taskId, text, isLast);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '' } = request;
    const json = (status: number, value: unknown, type = 'application/json'): void =>
      void response.writeHead(status, { 'content-type': type }).end(JSON.stringify(value));
    if (url === '/.well-known/agent-card.json') return json(200, this.#card);
    const body = await bodyOf(request);
    if (url === '/rpc') {
      const rpc = new JsonRpcTransportHandler(this.#handler);
      return json(200, await rpc.handle(body, new ServerCallContext({ requestedVersion: '1.0' })));
    }
    if (url === '/old') {
      const rpc = new LegacyJsonRpcTransportHandler(this.#handler);
      const call: unknown = JSON.parse(body);
      return json(200, await rpc.handle(call as never, new ServerCallContext({ requestedVersion: '0.3' })));
    }
    return this.#rest(request.method ?? '', url, body, (status, value) => json(status, value, 'application/a2a+json'));
  }

  async #rest(
    method: string,
    url: string,
    body: string,
    json: (status: number, value: unknown) => void,
  ): Promise<void> {
    const context = new ServerCallContext({ requestedVersion: '1.0' });
    const [, taskId = '', id = ''] = /^\/rest\/tasks\/([^/]+)\/pushNotificationConfigs\/?([^/?]*)/.exec(url) ?? [];
    if (url === '/rest/message:send') {
      const result = await this.#handler.sendMessage(SendMessageRequest.fromJSON(JSON.parse(body)), context);
      return json(200, 'parts' in result ? { message: {} } : { task: Task.toJSON(result) });
    }
    const asked = { tenant: '', taskId, id };
    if (method === 'POST') {
      const config = TaskPushNotificationConfig.fromJSON({ ...JSON.parse(body), taskId });
      const made = await this.#handler.createTaskPushNotificationConfig(config, context);
      return json(201, TaskPushNotificationConfig.toJSON(made));
    }
    if (method === 'DELETE') {
      await this.#handler.deleteTaskPushNotificationConfig(asked, context);
      return json(200, {});
    }
    const config = await this.#handler.getTaskPushNotificationConfig(asked, context);
    json(200, TaskPushNotificationConfig.toJSON(config));
  }
}

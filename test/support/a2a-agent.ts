/** A small A2A 1.0 agent built with the official SDK. It echoes, in one response or as an event stream. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { AgentCard, formatSSEEvent, Message, SSE_HEADERS, Task, TaskStatusUpdateEvent } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server';

/** The text of the first part of a message. */
export function textOf(message: Message | undefined): string {
  const content = message?.parts[0]?.content;
  return content?.$case === 'text' ? content.value : '';
}

/** A user message with a text. */
export function messageOf(text: string, messageId: string): Message {
  return Message.fromJSON({ messageId, role: 'ROLE_USER', parts: [{ text }] });
}

const echo: AgentExecutor = {
  execute: async ({ userMessage, taskId, contextId }, bus) => {
    const text = textOf(userMessage);
    const reply = { messageId: `re-${userMessage.messageId}`, role: 'ROLE_AGENT', parts: [{ text: `echo: ${text}` }] };
    if (!text.startsWith('stream')) {
      bus.publish(AgentEvent.message(Message.fromJSON({ ...reply, contextId })));
      return bus.finished();
    }
    bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status: { state: 'TASK_STATE_WORKING' } })));
    const status = { state: 'TASK_STATE_COMPLETED', message: reply };
    bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status })));
    bus.finished();
  },
  cancelTask: async () => {},
};

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

/** A 1.0 card with the agent's own address. */
export function cardOf(port: number): Record<string, unknown> {
  return {
    name: 'Echo',
    description: 'Says again what it hears.',
    version: '1.0.0',
    supportedInterfaces: [
      { url: `http://127.0.0.1:${port}/a2a/jsonrpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    ],
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'echo', name: 'Echo', description: 'Repeats the text', tags: ['echo'] }],
  };
}

export class A2aAgent {
  readonly server: Server;
  readonly port: number;
  /** Replacements for its card, by path. Null: none. */
  readonly shown = new Map<string, string | null>();
  /** Callers of its methods, as named by the local daemon. */
  readonly callers: string[] = [];
  readonly #rpc: JsonRpcTransportHandler;

  private constructor(server: Server, port: number) {
    this.server = server;
    this.port = port;
    const card = AgentCard.fromJSON(cardOf(port));
    const extended = { ...card, name: 'Echo for friends' };
    const handler = new DefaultRequestHandler(
      card,
      new InMemoryTaskStore(),
      echo,
      undefined,
      undefined,
      undefined,
      async () => extended,
    );
    this.#rpc = new JsonRpcTransportHandler(handler);
    server.on('request', (request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<A2aAgent> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return new A2aAgent(server, address.port);
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '' } = request;
    const shown = this.shown.get(url);
    if (shown !== undefined) {
      if (shown?.startsWith('http') === true || shown?.startsWith('/') === true)
        return void response.writeHead(302, { location: shown }).end();
      return void response.writeHead(shown === null ? 404 : 200, { etag: '"1"' }).end(shown ?? '');
    }
    if (url === '/.well-known/agent-card.json') return void response.end(JSON.stringify(cardOf(this.port)));
    if (url !== '/a2a/jsonrpc' || request.method !== 'POST') return void response.writeHead(404).end();
    this.callers.push(String(request.headers['svc-caller-aid']));
    const requestedVersion = String(request.headers['a2a-version'] ?? '0.3');
    const answer = await this.#rpc.handle(await bodyOf(request), new ServerCallContext({ requestedVersion }));
    if (!(Symbol.asyncIterator in answer))
      return void response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    response.writeHead(200, SSE_HEADERS);
    for await (const event of answer) response.write(formatSSEEvent(event));
    response.end();
  }
}

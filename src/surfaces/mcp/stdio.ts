/** MCP over stdin and stdout, for the client that started this process. */

import type { Readable, Writable } from 'node:stream';
import { isJSONRPCRequest, ProtocolError, ProtocolErrorCode, type Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Log } from '../../foundation/log.ts';
import type { ToolTable } from '../../operations/tool-call.ts';
import { ToolCatalog } from './catalog.ts';
import { type AskChannel, type PermissionChat, PermissionPrompts, runChannel } from './channel.ts';
import type { DaemonLink } from './daemon-link.ts';
import { answerTo, MessageLines } from './message-reader.ts';
import { failure } from './results.ts';
import { bareServer, createMcpServer, type McpServerOptions } from './server.ts';
import { finishingInput, PendingRequests, StdioTransport } from './stdio-transport.ts';

// Responds to an MCP client if svcd cannot start: clients show protocol errors, but not why a process exited.

/** Responds to every request with the error. Resolves when the client disconnects. */
export async function serveFailure({ input, output }: StdioStreams, failure: SvcError): Promise<void> {
  output.on('error', () => {});
  const message = `svcd cannot start (${failure.code}): ${failure.message}`;
  const answer = (id: unknown): void => {
    const odd = { kind: 'request', id, code: ProtocolErrorCode.InternalError, why: message } as const;
    output.write(`${JSON.stringify(answerTo(odd))}\n`);
  };
  const lines = new MessageLines({ onOdd: ({ id, kind }) => kind !== 'response' && answer(id) });
  for await (const chunk of input) {
    lines.append(chunk);
    for (let next = lines.readMessage(); next !== null; next = lines.readMessage())
      if (isJSONRPCRequest(next)) answer(next.id);
  }
}

// The server of a stdio process next to a running daemon. It forwards every request.

function createProxyServer(options: McpServerOptions, link: DaemonLink): Server {
  const server = bareServer(options);
  server.setRequestHandler('tools/list', async (_request, { mcpReq: { signal } }) => {
    try {
      return await link.listTools(signal);
    } catch (error) {
      if (error instanceof SvcError)
        throw new ProtocolError(ProtocolErrorCode.InternalError, `${error.code}: ${error.message}`);
      throw error;
    }
  });
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq: { signal } }) => {
    try {
      return await link.callTool(params.name, params.arguments ?? {}, signal);
    } catch (error) {
      if (error instanceof SvcError) return failure(error);
      throw error;
    }
  });
  return server;
}

export interface StdioStreams {
  readonly input: Readable;
  /** The result of `claimStdout`. */
  readonly output: Writable;
}

export interface StdioSession {
  /** Resolves when the client disconnected and its requests are complete. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

/** @param channel set if the session gets the items that arrive */
function serve(
  { input, output, clock }: StdioStreams & { readonly clock: Clock },
  make: (signal: AbortSignal, transport: StdioTransport) => Server,
  channel: SessionChannel | undefined,
): StdioSession {
  const controller = new AbortController();
  const { promise, resolve } = Promise.withResolvers<void>();
  const ended = (): void => {
    controller.abort();
    resolve();
  };
  const pending = new PendingRequests();
  const finishing = finishingInput({ input, output }, pending, clock);
  finishing.once('close', ended);
  output.on('error', ended);
  const transport = new StdioTransport(finishing, output, pending);
  const channels: Promise<void>[] = [];
  const handle = serveStdio(
    ({ era }) => {
      const server = make(controller.signal, transport);
      if (channel !== undefined)
        withChannel(server, era, { ...channel, clock }, controller.signal, (work) => channels.push(work));
      return server;
    },
    { transport },
  );
  const close = async (): Promise<void> => {
    finishing.destroy();
    await handle.close();
    ended();
  };
  const closed = promise.then(() => Promise.all(channels)).then(() => {});
  return { closed, close };
}

interface SessionChannel {
  readonly ask: AskChannel;
  readonly permissions?: PermissionChat | undefined;
}

/**
 * The channel of a session; undefined without one.
 * @param call calls a tool
 */
function channelOf(
  { isChannel, permissions: peer }: McpServerOptions,
  ask: AskChannel | undefined,
  call: (tool: string, args: Record<string, string>) => Promise<unknown>,
): SessionChannel | undefined {
  if (isChannel !== true || ask === undefined) return undefined;
  if (peer === undefined) return { ask };
  return { ask, permissions: { peer, say: (text) => call('chat_send', { peer, text }) } };
}

/**
 * Runs the channel of a connection when its client is ready. A connection to find out the revision gets no items.
 * @param onRun gets the end of the channel, which confirms the last item
 */
function withChannel(
  server: Server,
  era: 'legacy' | 'modern',
  { permissions, ...parts }: SessionChannel & { readonly clock: Clock },
  signal: AbortSignal,
  onRun: (work: Promise<void>) => void,
): void {
  const prompts = permissions && new PermissionPrompts(server, permissions);
  const closed = new AbortController();
  // oxlint-disable-next-line prefer-add-event-listener -- a server of the SDK is no EventTarget
  server.onclose = () => closed.abort();
  const run = (): void => onRun(runChannel(server, { ...parts, prompts }, AbortSignal.any([signal, closed.signal])));
  if (era === 'legacy') server.oninitialized = run;
  else parts.clock.after(0, run);
}

const LOCAL = {
  origin: 'local',
  requireToken: () => {},
  signal: new AbortController().signal,
  setStatus: () => {},
} as const;

/** Serves the tools of this process, which is the node. */
export function serveTools(
  options: McpServerOptions,
  dependencies: StdioStreams & {
    readonly tools: ToolTable;
    readonly channel?: AskChannel;
    readonly clock: Clock;
    readonly log: Log;
  },
): StdioSession {
  const { tools, log, channel } = dependencies;
  const catalog = new ToolCatalog(tools);
  return serve(
    dependencies,
    (signal, transport) => {
      const onAnswered = transport.onAnswered.bind(transport);
      const context = { origin: 'local', requireToken: () => {}, signal, onAnswered } as const;
      return createMcpServer(options, { catalog, log, context });
    },
    channelOf(options, channel, (tool, args) => tools.call(tool, args, LOCAL)),
  );
}

/** Serves the tools of a daemon in another process. */
export function serveProxy(
  options: McpServerOptions,
  dependencies: StdioStreams & { readonly link: DaemonLink; readonly clock: Clock },
): StdioSession {
  const { link } = dependencies;
  const ask: AskChannel = (request, signal) => link.nextItem(request, signal);
  const session = serve(
    dependencies,
    () => createProxyServer(options, link),
    channelOf(options, ask, (tool, args) => link.callTool(tool, args, new AbortController().signal)),
  );
  return { ...session, closed: session.closed.then(() => link.close()) };
}

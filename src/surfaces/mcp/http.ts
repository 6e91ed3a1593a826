/** MCP over Streamable HTTP. Each request has its own server, so a restart breaks no session. */
import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolErrorCode,
  type Server,
  SUPPORTED_PROTOCOL_VERSIONS,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { parseMessage, refusedMember, twinIn } from '../../foundation/rpc-message.ts';
import type { StreamExchange } from '../../operations/handlers/exchange.ts';
import type { ToolTable } from '../../operations/tool-call.ts';
import { limitBodyTime } from '../rest/gate.ts';
import { JSON_BODY_LIMIT_BYTES, readBytes } from '../rest/json-body.ts';
import { ToolCatalog } from './catalog.ts';
import type { AskChannel } from './channel.ts';
import { withoutNulls } from './message-reader.ts';
import { createMcpServer } from './server.ts';
import { sendWebResponse, webRequest } from './web-exchange.ts';

/** Largest number of open subscription streams. */
const MAX_SUBSCRIPTIONS = 64;

export interface McpHttpOptions {
  /** Version of svcd. */
  readonly version: string;
}

export interface McpHttpDependencies extends NodeParts {
  readonly tools: ToolTable;
  /** Set if stdio processes may ask for the items of the channel. */
  readonly channel?: AskChannel;
}

/** The JSON-RPC error for a body without a valid request. */
function sendError({ response }: StreamExchange, message: string, code: number = ProtocolErrorCode.ParseError): void {
  const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } });
  response.writeHead(400, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body);
}

/** A request of a 2025 revision. */
interface LegacyRequest {
  readonly exchange: StreamExchange;
  readonly web: Request;
  readonly body: unknown;
  readonly server: Server;
  /** Respond with an event stream, for messages before the result. */
  readonly isStreamed: boolean;
}

/**
 * Responds in one piece, or with an event stream. A stream costs a third more, so it is used only for messages before the
 * result.
 */
async function serveLegacy({ exchange, web, body, server, isStreamed }: LegacyRequest): Promise<void> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !isStreamed });
  await server.connect(transport);
  try {
    const answer = await transport.handleRequest(web, { parsedBody: body });
    await sendWebResponse(answer, exchange.response, exchange.context);
  } finally {
    await server.close();
  }
}

/** True if the header names no 2025 revision, so that the message need not be parsed twice. */
function isModernClaim({ headers }: Request): boolean {
  const claimed = headers.get('mcp-protocol-version');
  return claimed !== null && !SUPPORTED_PROTOCOL_VERSIONS.includes(claimed);
}

/** The handler of a route. */
export type HttpHandler = (exchange: StreamExchange) => Promise<void>;

/** Creates the handler of the MCP routes. */
export function createHttpHandler(options: McpHttpOptions, dependencies: McpHttpDependencies): HttpHandler {
  const { tools, log, channel } = dependencies;
  const catalog = new ToolCatalog(tools);
  return serveHttp(({ context, input }) => {
    const profiles = typeof input['profile'] === 'string' ? input['profile'] : undefined;
    return createMcpServer({ ...options, profiles }, { catalog, context, log, channel });
  }, dependencies);
}

/** Calls that clients of a 2025 revision can cancel. */
export interface CancellableCalls {
  /**
   * Looks at a message of a client before it is served.
   * @returns what applies to this message only, until `done` is called
   */
  received(exchange: StreamExchange, message: unknown): ReceivedCall;
}

export interface ReceivedCall {
  /** Aborts when the client cancels the call. */
  readonly signal?: AbortSignal;
  /** The client wants progress messages. */
  readonly isStreamed: boolean;
  readonly done: () => void;
}

/**
 * Serves MCP over HTTP.
 * @param serverFor creates the server of one request; `cancelled` aborts when the client cancels it by a message
 * @param calls set if results take long enough for progress and cancellation
 */
export function serveHttp(
  serverFor: (exchange: StreamExchange, cancelled?: AbortSignal) => Server,
  { clock, log }: Pick<McpHttpDependencies, 'clock' | 'log'>,
  calls?: CancellableCalls,
): HttpHandler {
  const exchanges = new WeakMap<Request, StreamExchange>();
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const exchange = requestInfo === undefined ? undefined : exchanges.get(requestInfo);
      if (exchange === undefined) throw new Error('an MCP request bypassed the gate');
      return serverFor(exchange);
    },
    {
      maxSubscriptions: MAX_SUBSCRIPTIONS,
      onerror: (err) => log.debug({ err }, 'an MCP request was refused'),
    },
  );
  return async (exchange) => {
    const { request, response } = exchange;
    if (request.method !== 'POST')
      throw new SvcError('method_not_allowed', {
        message: 'MCP requires POST: there are no sessions.',
        details: { allow: 'POST' },
      });
    limitBodyTime(request, response, clock);
    let body: unknown;
    try {
      const bytes = await readBytes(request, JSON_BODY_LIMIT_BYTES);
      // The tools take numbers, whose largest ones are inexact.
      body = bytes.length === 0 ? undefined : withoutNulls(parseMessage(bytes, Number));
    } catch (error) {
      if (error instanceof SvcError && error.code === 'invalid_json') return sendError(exchange, error.message);
      throw error;
    }
    if (body === undefined) return sendError(exchange, 'The request body is empty.');
    const twin = [body]
      .flat()
      .map(twinIn)
      .find((name) => name !== undefined);
    if (twin !== undefined) return sendError(exchange, refusedMember(twin), ProtocolErrorCode.InvalidRequest);
    const web = webRequest(exchange);
    exchanges.set(web, exchange);
    if (isModernClaim(web) || !(await isLegacyRequest(web, body)))
      return await sendWebResponse(await handler.fetch(web, { parsedBody: body }), response, exchange.context);
    const { signal, isStreamed = false, done } = calls?.received(exchange, body) ?? {};
    try {
      await serveLegacy({ exchange, web, body, server: serverFor(exchange, signal), isStreamed });
    } finally {
      done?.();
    }
  };
}

/** MCP over Streamable HTTP. Each request has its own server, so a restart breaks no session. */
import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolErrorCode,
  type Server,
  SUPPORTED_PROTOCOL_VERSIONS,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Log } from '../../foundation/log.ts';
import type { StreamExchange } from '../../operations/handlers/exchange.ts';
import type { ToolTable } from '../../operations/tool-call.ts';
import { limitBodyTime } from '../rest/gate.ts';
import { JSON_BODY_LIMIT_BYTES, parseJsonBody, readBytes } from '../rest/json-body.ts';
import { ToolCatalog } from './catalog.ts';
import { createMcpServer } from './server.ts';
import { sendWebResponse, webRequest } from './web-exchange.ts';

/** Largest number of open subscription streams. */
const MAX_SUBSCRIPTIONS = 64;

export interface McpHttpOptions {
  /** Version of svcd. */
  readonly version: string;
}

export interface McpHttpDependencies {
  readonly tools: ToolTable;
  readonly clock: Clock;
  readonly log: Log;
}

/** The JSON-RPC error for a body without a request. */
function sendParseError({ response }: StreamExchange, message: string): void {
  const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: ProtocolErrorCode.ParseError, message } });
  response.writeHead(400, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body);
}

/**
 * Responds to a request of a 2025 revision in one piece. The SDK would open an event stream, which costs a third more,
 * and no tool sends anything before its result.
 */
async function serveLegacy(server: Server, request: Request, parsedBody: unknown): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    return await transport.handleRequest(request, { parsedBody });
  } finally {
    await server.close();
  }
}

/** True if the header names no 2025 revision, so that the message need not be parsed twice. */
function isModernClaim({ headers }: Request): boolean {
  const claimed = headers.get('mcp-protocol-version');
  return claimed !== null && !SUPPORTED_PROTOCOL_VERSIONS.includes(claimed);
}

/** Creates the handler of the MCP routes. */
export function createHttpHandler(
  options: McpHttpOptions,
  dependencies: McpHttpDependencies,
): (exchange: StreamExchange) => Promise<void> {
  const { tools, clock, log } = dependencies;
  const catalog = new ToolCatalog(tools);
  const exchanges = new WeakMap<Request, StreamExchange>();
  const serverFor = ({ context, input }: StreamExchange): Server => {
    const profiles = typeof input['profile'] === 'string' ? input['profile'] : undefined;
    return createMcpServer({ ...options, profiles }, { catalog, context, log });
  };
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
      body = parseJsonBody(await readBytes(request, JSON_BODY_LIMIT_BYTES));
    } catch (error) {
      if (error instanceof SvcError && error.code === 'invalid_json') return sendParseError(exchange, error.message);
      throw error;
    }
    if (body === undefined) return sendParseError(exchange, 'The request body is empty.');
    const web = webRequest(exchange);
    exchanges.set(web, exchange);
    const legacy = !isModernClaim(web) && (await isLegacyRequest(web, body));
    const answer = legacy
      ? await serveLegacy(serverFor(exchange), web, body)
      : await handler.fetch(web, { parsedBody: body });
    await sendWebResponse(answer, response, exchange.context);
  };
}

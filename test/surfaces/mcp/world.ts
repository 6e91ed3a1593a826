/** A REST server with the MCP routes over the real tool table and test handlers, and clients for it. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { systemClock } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { bindStreams } from '../../../src/operations/handlers/exchange.ts';
import { operations } from '../../../src/operations/index.ts';
import { mcpStreams } from '../../../src/operations/mcp.ts';
import type { BoundOperation, CallContext } from '../../../src/operations/operation.ts';
import { ToolTable } from '../../../src/operations/tool-call.ts';
import { mcpHandlers } from '../../../src/surfaces/mcp/stream.ts';
import { startWorld, type WorldOptions } from '../rest/support.ts';

type Run = (input: Readonly<Record<string, unknown>>, context: CallContext) => unknown;

/** Every declaration with a handler: the given one, or one that returns nothing. */
export function bindAll(handlers: Readonly<Record<string, Run>> = {}): BoundOperation[] {
  return Object.values(operations).map((declaration) => ({
    declaration,
    run: async (input, context) => handlers[declaration.name]?.(input, context) ?? {},
  }));
}

export interface McpWorldOptions extends WorldOptions {
  readonly handlers?: Readonly<Record<string, Run>>;
  readonly pending?: Readonly<Record<string, unknown>>;
}

export async function startMcpWorld(t: Parameters<typeof startWorld>[0], options: McpWorldOptions = {}) {
  const { handlers, pending = {}, ...rest } = options;
  const tools = new ToolTable({ operations: bindAll(handlers), pending: () => pending });
  const streams = bindStreams(
    mcpStreams,
    mcpHandlers({ version: '1.2.3' }, { tools, clock: systemClock, log: silentLog }),
  );
  return startWorld(t, { ...rest, operations: [], streams });
}

export type Era = 'legacy' | 'modern';
export const ERAS = ['legacy', 'modern'] as const satisfies readonly Era[];

/** The newest revision of the protocol. */
export const MODERN = '2026-07-28';

/** A client of one era. It closes at the end of the test. */
export async function connectClient(
  t: { after(task: () => Promise<void>): void },
  era: Era,
  url: string,
  headers: Record<string, string> = {},
): Promise<Client> {
  const mode = era === 'legacy' ? 'legacy' : { pin: MODERN };
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  t.after(() => client.close());
  return client;
}

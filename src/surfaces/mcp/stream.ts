/** The routes of the MCP server. */
import type { StreamExchange, StreamHandlers } from '../../operations/handlers/exchange.ts';
import type { mcpStreams } from '../../operations/mcp.ts';
import type { McpHttpDependencies, McpHttpOptions } from './http.ts';

/** `/mcp/` and `/mcp`. The first request loads the SDK, because that takes 100 ms. */
export function mcpHandlers(
  options: McpHttpOptions,
  dependencies: McpHttpDependencies,
): StreamHandlers<typeof mcpStreams> {
  let loading: Promise<(exchange: StreamExchange) => Promise<void>> | undefined;
  const handle = async (exchange: StreamExchange): Promise<void> => {
    loading ??= import('./http.ts').then(({ createHttpHandler }) => createHttpHandler(options, dependencies));
    await (await loading)(exchange);
  };
  return { mcp: handle, mcpBare: handle };
}

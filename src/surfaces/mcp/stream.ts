/** The routes of the MCP server. */
import * as declarations from '../../operations/mcp.ts';
import type { BoundStream, Exchange } from '../../operations/stream.ts';
import type { McpHttpDependencies, McpHttpOptions } from './http.ts';

/** `/mcp/` and `/mcp`. The SDK is loaded by the first request: it would cost every start 100 ms. */
export function mcpStreams(options: McpHttpOptions, dependencies: McpHttpDependencies): BoundStream[] {
  let loading: Promise<(exchange: Exchange) => Promise<void>> | undefined;
  const load = async () => (await import('./http.ts')).createHttpHandler(options, dependencies);
  const handle = async (exchange: Exchange): Promise<void> => {
    loading ??= load();
    await (await loading)(exchange);
  };
  return [declarations.mcp, declarations.mcpBare].map((declaration) => ({ declaration, handle }));
}

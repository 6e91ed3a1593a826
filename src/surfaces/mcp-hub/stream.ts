/** The route of the hub. */
import type { StreamHandlers } from '../../operations/handlers/exchange.ts';
import type { hubStreams } from '../../operations/hub.ts';
import type { HttpHandler } from '../mcp/http.ts';
import type { HubHttpDependencies } from './http.ts';

/** `/mcp/hub`. The first request loads the SDK, because that takes 100 ms. */
export function hubStreamHandlers(
  version: string,
  dependencies: HubHttpDependencies,
): StreamHandlers<typeof hubStreams> {
  let loading: Promise<HttpHandler> | undefined;
  return {
    mcpHub: async (exchange) => {
      loading ??= import('./http.ts').then(({ createHubHandler }) => createHubHandler(version, dependencies));
      await (await loading)(exchange);
    },
  };
}

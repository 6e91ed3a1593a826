/** The server of a stdio process next to a running daemon. It forwards every request. */
import { ProtocolError, ProtocolErrorCode, type Server } from '@modelcontextprotocol/server';
import { SvcError } from '../../foundation/errors.ts';
import type { DaemonLink } from './daemon-link.ts';
import { failure } from './results.ts';
import { bareServer, type McpServerOptions } from './server.ts';

export function createProxyServer({ version }: Pick<McpServerOptions, 'version'>, link: DaemonLink): Server {
  const server = bareServer(version);
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

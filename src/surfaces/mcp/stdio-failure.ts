/** Responds to an MCP client if svcd cannot start: clients show protocol errors, but not why a process exited. */
import { createInterface } from 'node:readline';
import { isJSONRPCRequest, ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import type { StdioStreams } from './stdio.ts';

function requestIn(line: string): unknown {
  try {
    const message: unknown = JSON.parse(line);
    return isObject(message) && isJSONRPCRequest(message) ? message.id : undefined;
  } catch {
    return undefined;
  }
}

/** Responds to every request with the error. Resolves when the client disconnects. */
export async function serveFailure({ input, output }: StdioStreams, failure: SvcError): Promise<void> {
  output.on('error', () => {});
  const message = `svcd cannot start (${failure.code}): ${failure.message}`;
  for await (const line of createInterface({ input })) {
    const id = requestIn(line);
    if (id === undefined) continue;
    output.write(
      `${JSON.stringify({ jsonrpc: '2.0', id, error: { code: ProtocolErrorCode.InternalError, message } })}\n`,
    );
  }
}

/** Answers an MCP client whose svcd cannot start: a client shows an error of the protocol, and of a dead process nothing. */
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

/** Gives every request the error; settles when the client has gone. */
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

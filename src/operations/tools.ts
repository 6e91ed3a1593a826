/** Calling the tools of the MCP server over plain HTTP. */
import { Type } from 'typebox';
import { declare } from './operation.ts';
import { AnyObject, closed, NONE } from './schemas.ts';

/** Longest name of a tool, characters. */
const MAX_TOOL_NAME = 128;

export const toolOperations = declare({
  toolCall: {
    summary: 'Calls a tool; an error of the tool keeps its code and message, with status 422.',
    method: 'POST',
    path: '/mcp/call',
    params: NONE,
    query: NONE,
    body: closed({
      tool: Type.String({ minLength: 1, maxLength: MAX_TOOL_NAME }),
      args: Type.Optional(AnyObject),
    }),
    output: AnyObject,
    permission: 'write',
    heartbeat: false,
    errors: ['not_found', 'tool_error'],
    tag: 'MCP',
  },
});

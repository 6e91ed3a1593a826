/** Calling the tools of the MCP server over plain HTTP. */
import { Type } from 'typebox';
import { declare } from './declare.ts';
import { AnyObject, closed } from './schemas.ts';

/** Longest name of a tool, characters. */
const MAX_TOOL_NAME = 128;

const COMMON = { tag: 'MCP' };

/** Status of an answer in which a tool reports an error. */
export const TOOL_ERROR_STATUS = 422;

export const toolOperations = declare(COMMON, {
  toolCall: {
    summary: 'Calls a tool; an error of the tool keeps its code and message, with status 422.',
    route: 'POST /mcp/call',
    body: closed({
      tool: Type.String({ minLength: 1, maxLength: MAX_TOOL_NAME }),
      args: Type.Optional(AnyObject),
    }),
    output: AnyObject,
    errors: ['not_found', 'tool_error'],
    toolErrorStatus: TOOL_ERROR_STATUS,
  },
});

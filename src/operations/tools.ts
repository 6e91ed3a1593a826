/** Calls MCP tools over plain HTTP. */
import { Type } from 'typebox';
import { MAX_TOOL_NAME_CHARS } from '../foundation/domain/access.ts';
import { declare } from './declare.ts';
import { AnyObject, closed } from './schemas.ts';

const COMMON = { tag: 'MCP' };

/** Status of a response in which a tool reports an error. */
export const TOOL_ERROR_STATUS = 422;

export const toolOperations = declare(COMMON, {
  toolCall: {
    summary: 'Calls a tool. Tool errors keep their code and message, and have status 422.',
    route: 'POST /mcp/call',
    body: closed({
      tool: Type.String({ minLength: 1, maxLength: MAX_TOOL_NAME_CHARS }),
      args: Type.Optional(AnyObject),
    }),
    output: AnyObject,
    errors: ['not_found', 'tool_error'],
    toolErrorStatus: TOOL_ERROR_STATUS,
  },
});

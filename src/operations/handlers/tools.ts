/** The handler of `POST /mcp/call`. */
import { SvcError } from '../../foundation/errors.ts';
import type { mcpOperations } from '../mcp.ts';
import type { CallContext, Handlers } from '../operation.ts';
import type { ToolTable } from '../tool-call.ts';
import { TOOL_ERROR_STATUS, type toolOperations } from '../tools.ts';

// The handler of the operation on programs that use svcd over MCP.

/** A program and its configuration for svcd. */
export interface McpHost {
  readonly name: string;
  readonly title: string;
  /** Path of its configuration. */
  readonly file: string;
  readonly isHere: boolean;
  /** Null if its configuration cannot be read. */
  readonly hasSvcd: boolean | null;
}

export function mcpHostHandlers(hosts: () => readonly McpHost[]): Handlers<typeof mcpOperations> {
  return {
    mcpHosts: () => ({
      hosts: hosts().map(({ name, title, file, isHere, hasSvcd }) => ({
        name,
        title,
        file,
        is_here: isHere,
        has_svcd: hasSvcd,
      })),
    }),
  };
}

/** A tool has one status of success, so the status that the operation sets is ignored. */
function contextOf(context: CallContext): CallContext {
  const { origin, signal } = context;
  return {
    origin,
    signal,
    requireToken: () => context.requireToken(),
    setStatus: () => {},
    ...(context.onAnswered === undefined ? {} : { onAnswered: (settled) => context.onAnswered?.(settled) }),
    onTool: (name) => context.onTool?.(name),
  };
}

export function toolHandlers({
  tools,
}: {
  readonly tools: Pick<ToolTable, 'has' | 'call'>;
}): Handlers<typeof toolOperations> {
  return {
    toolCall: async ({ tool, args = {} }, context) => {
      if (!tools.has(tool))
        throw new SvcError('not_found', {
          thing: 'tool',
          message: 'Unknown tool. The MCP request tools/list shows all tools.',
        });
      try {
        return (await tools.call(tool, args, contextOf(context))) as Record<string, unknown>;
      } catch (error) {
        if (!(error instanceof SvcError) || error.code === 'internal') throw error;
        const { code, message, details } = error;
        throw new SvcError(code, {
          message,
          status: TOOL_ERROR_STATUS,
          cause: error,
          ...(details === undefined ? {} : { details }),
        });
      }
    },
  };
}

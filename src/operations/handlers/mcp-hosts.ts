/** The handler of the operation on programs that use svcd over MCP. */
import type { mcpOperations } from '../mcp.ts';
import type { Handlers } from '../operation.ts';

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

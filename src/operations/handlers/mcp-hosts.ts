/** The handler of the operation on the programs that use svcd over MCP. */
import type { mcpOperations } from '../mcp.ts';
import type { Handlers } from '../operation.ts';

/** A program, and what it knows of svcd. */
export interface McpHost {
  readonly name: string;
  readonly title: string;
  /** Its configuration. */
  readonly file: string;
  readonly isHere: boolean;
  /** Null where its configuration cannot be read. */
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

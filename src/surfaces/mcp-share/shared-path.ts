/** Where a shared server is at its agent, whatever its own path. */
export const MCP_PATH = '/mcp';

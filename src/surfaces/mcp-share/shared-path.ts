/** Path of a shared server at its agent. The path of the original server may differ. */
export const MCP_PATH = '/mcp';

/** Finds the MCP clients on this machine that are configured to use svcd. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { McpHost } from '../operations/handlers/mcp-hosts.ts';
import { isMcpClient, type Machine, MCP_CLIENTS, type McpClientName, serverIn } from '../surfaces/mcp-hosts/hosts.ts';

/** Largest configuration file to read, in bytes. */
const MAX_HOST_FILE_BYTES = 16 * 2 ** 20;

/** Null if the file is not a JSON object or cannot be read. */
function namesSvcd(client: McpClientName, file: string): boolean | null {
  try {
    if (statSync(file).size > MAX_HOST_FILE_BYTES) return null;
    const entry = serverIn(client, readFileSync(file, 'utf8'), 'svcd');
    return entry === null ? null : entry !== undefined;
  } catch {
    return null;
  }
}

/** Checks the configuration of each known client. Changes nothing. */
export function mcpHosts(machine: Machine): readonly McpHost[] {
  return Object.keys(MCP_CLIENTS)
    .filter(isMcpClient)
    .map((name) => {
      const { title, file: place } = MCP_CLIENTS[name];
      const file = place(machine);
      const folder = dirname(file);
      const isThere = existsSync(file);
      return {
        name,
        title,
        file,
        // A client whose directory is the home directory cannot be detected this way.
        isHere: isThere || (folder !== machine.home && existsSync(folder)),
        hasSvcd: isThere ? namesSvcd(name, file) : false,
      };
    });
}

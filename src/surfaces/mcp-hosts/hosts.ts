/** The MCP clients that `svcd mcp` and `svc mcp use` know: where their configuration is, and what a server looks like in it. */
import path from 'node:path';
import { SvcError } from '../../foundation/errors.ts';
import { isObject, readJson } from '../../foundation/json.ts';

/** What the places of the files depend on. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** How a client starts a server. Absolute paths: programs of a desktop do not have the PATH of a shell. */
export interface ClientLaunch {
  readonly command: string;
  readonly args: readonly string[];
}

interface McpClient {
  readonly title: string;
  /** The member of the file that holds the servers. */
  readonly servers: 'mcpServers' | 'servers';
  file(machine: Machine): string;
}

function rulesOf({ platform }: Machine): typeof path.posix {
  return platform === 'win32' ? path.win32 : path.posix;
}

/** A file of the user's home. */
function home(...parts: string[]): McpClient['file'] {
  return (machine) => rulesOf(machine).join(machine.home, ...parts);
}

/** A file where programs of a desktop keep their settings. */
function settings(...parts: string[]): McpClient['file'] {
  return (machine) => {
    const { platform, home, environment } = machine;
    const { join } = rulesOf(machine);
    if (platform === 'win32') return join(environment['APPDATA'] || join(home, 'AppData', 'Roaming'), ...parts);
    if (platform === 'darwin') return join(home, 'Library', 'Application Support', ...parts);
    return join(environment['XDG_CONFIG_HOME'] || join(home, '.config'), ...parts);
  };
}

export const MCP_CLIENTS = {
  'claude-code': { title: 'Claude Code', servers: 'mcpServers', file: home('.claude.json') },
  'claude-desktop': {
    title: 'Claude Desktop',
    servers: 'mcpServers',
    file: settings('Claude', 'claude_desktop_config.json'),
  },
  cursor: { title: 'Cursor', servers: 'mcpServers', file: home('.cursor', 'mcp.json') },
  vscode: { title: 'VS Code', servers: 'servers', file: settings('Code', 'User', 'mcp.json') },
  windsurf: { title: 'Windsurf', servers: 'mcpServers', file: home('.codeium', 'windsurf', 'mcp_config.json') },
  'gemini-cli': { title: 'Gemini CLI', servers: 'mcpServers', file: home('.gemini', 'settings.json') },
} as const satisfies Readonly<Record<string, McpClient>>;

export type McpClientName = keyof typeof MCP_CLIENTS;

/** True for the name of a client that is known. */
export function isMcpClient(name: string): name is McpClientName {
  return Object.hasOwn(MCP_CLIENTS, name);
}

/** A server in the configuration of a client. */
export interface ServerEntry {
  /** What it is called there; one of this name is replaced. */
  readonly name: string;
  readonly launch: ClientLaunch;
  /** The command that shows what to add by hand. */
  readonly shownBy: string;
}

/** svcd itself in the configuration of a client. */
export function svcdEntry(client: McpClientName, launch: ClientLaunch): ServerEntry {
  return { name: 'svcd', launch, shownBy: `svcd mcp print ${client}` };
}

/**
 * The configuration with a server in it, everything else as it was.
 * @param text what the file holds; empty where there is none
 * @throws SvcError `config_invalid` where it is no plain JSON, such as with comments
 */
export function withServer(client: McpClientName, text: string, { name, launch, shownBy }: ServerEntry): string {
  const { servers, title } = MCP_CLIENTS[client];
  const config = text.trim() === '' ? {} : readJson(text);
  const present = isObject(config) ? (config[servers] ?? {}) : undefined;
  if (!isObject(config) || !isObject(present))
    throw new SvcError('config_invalid', {
      message: `The configuration of ${title} is no plain JSON (has it comments?), so it is left alone. "${shownBy}" shows what to add.`,
    });
  const { command, args } = launch;
  const entry = { ...(servers === 'servers' ? { type: 'stdio' } : {}), command, args };
  return `${JSON.stringify({ ...config, [servers]: { ...present, [name]: entry } }, null, 2)}\n`;
}

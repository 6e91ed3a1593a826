/** `svcd mcp print|add`: adds svcd to the configuration of MCP clients. */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Argument, Command } from 'commander';
import type { McpHost } from '../operations/handlers/tools.ts';
import { exampleHelp } from '../surfaces/cli/command-group.ts';
import {
  addServer,
  type ClientLaunch,
  isMcpClient,
  type Machine,
  MCP_CLIENTS,
  type McpClientName,
  serverIn,
  svcdEntry,
  withServer,
} from '../surfaces/mcp-hosts/hosts.ts';

// Finds the MCP clients on this machine that are configured to use svcd.

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

export interface McpCommandDependencies {
  readonly machine: Machine;
  /** How a client starts svcd. Evaluated when a command runs. */
  readonly launch: () => ClientLaunch;
  readonly print: (text: string) => void;
}

/** Adds svcd to the configuration of a client, and keeps its other entries. */
function add(client: string, dryRun: boolean, { machine, launch, print }: McpCommandDependencies): void {
  if (isMcpClient(client)) print(addServer(client, svcdEntry(client, launch()), machine, dryRun));
}

/** The command with its subcommands. */
export function mcpCommand(dependencies: McpCommandDependencies): Command {
  const { launch, print } = dependencies;
  const names = Object.keys(MCP_CLIENTS);
  return new Command('mcp')
    .description('configure MCP clients to use svcd')
    .addHelpText('after', exampleHelp('svcd mcp print cursor', 'svcd mcp add claude-code'))
    .addCommand(
      new Command('print')
        .description('print the configuration for a client')
        .addHelpText('after', exampleHelp('svcd mcp print cursor'))
        .addArgument(new Argument('[client]', 'client name').choices(names).default('claude-desktop'))
        .action((client: string) => {
          if (isMcpClient(client)) print(withServer(client, '', svcdEntry(client, launch())));
        }),
    )
    .addCommand(
      new Command('add')
        .description('add svcd to the configuration of a client, with a backup of the previous file')
        .addHelpText('after', exampleHelp('svcd mcp add claude-code --dry-run', 'svcd mcp add claude-code'))
        .addArgument(new Argument('<client>', 'client name').choices(names))
        .option('--dry-run', 'show the changes without writing them')
        .action((client: string, { dryRun = false }: { dryRun?: boolean }) => add(client, dryRun, dependencies)),
    );
}

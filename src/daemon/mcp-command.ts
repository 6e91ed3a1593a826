/** `svcd mcp print|add|remove`: adds svcd to the configuration of MCP clients. `svc mcp` has the same commands. */

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { Argument, Command, InvalidArgumentError } from 'commander';
import { readForeignFile } from '../foundation/foreign-file.ts';
import { parseAid } from '../foundation/identity/aid.ts';
import type { McpHost } from '../operations/handlers/tools.ts';
import { exampleHelp, REMOVING } from '../surfaces/cli/command-group.ts';
import {
  addServer,
  CHANNEL_ABOUT,
  type ClientLaunch,
  hubEntry,
  isMcpClient,
  MAX_HOST_FILE_BYTES,
  type Machine,
  MCP_CLIENTS,
  type McpClientName,
  PERMISSIONS_ABOUT,
  removedEntry,
  removeServer,
  serverIn,
  svcdEntry,
  withServer,
} from '../surfaces/mcp-hosts/hosts.ts';

// Finds the MCP clients on this machine that are configured to use svcd.

/** Null if the file cannot be parsed or read. */
function namesSvcd(client: McpClientName, file: string): boolean | null {
  try {
    const entry = serverIn(client, readForeignFile(file, MAX_HOST_FILE_BYTES).text, 'svcd');
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
  /** How a client starts the hub. */
  readonly hubLaunch: () => ClientLaunch;
  readonly print: (text: string) => void;
}

interface EntryOptions {
  readonly hub?: boolean;
  readonly channel?: boolean;
  readonly permissions?: string;
  readonly dryRun?: boolean;
  readonly name?: string;
}

/** The entry of svcd itself, or of the hub. */
function entryOf(client: McpClientName, options: EntryOptions, { launch, hubLaunch }: McpCommandDependencies) {
  return options.hub === true
    ? hubEntry(client, hubLaunch())
    : svcdEntry(client, launch(), options.channel, options.permissions);
}

/** Adds svcd to the configuration of a client, and keeps its other entries. */
function add(client: string, options: EntryOptions, parts: McpCommandDependencies): void {
  const { machine, print } = parts;
  if (isMcpClient(client))
    print(addServer(client, entryOf(client, options, parts), machine, options.dryRun === true).text);
}

/** Removes svcd, or another entry that starts it, and keeps the other entries. */
function remove(
  client: string,
  { dryRun = false, hub = false, name }: EntryOptions,
  parts: McpCommandDependencies,
): void {
  const { machine, print } = parts;
  if (isMcpClient(client)) print(removeServer(client, removedEntry(hub, name), machine, dryRun).text);
}

const HUB_OPTION = ['--hub', 'the tools of other agents, behind three tools, instead of the tools of svcd'] as const;

const CHANNEL_OPTION = ['--channel', CHANNEL_ABOUT] as const;
const PERMISSIONS_OPTION = ['--permissions <aid>', PERMISSIONS_ABOUT] as const;

/** The agent that decides about permission prompts. @throws InvalidArgumentError */
export function readAid(text: string): string {
  try {
    return parseAid(text);
  } catch {
    throw new InvalidArgumentError('Give the AID of your other agent.');
  }
}

/** The command with its subcommands. */
export function mcpCommand(dependencies: McpCommandDependencies): Command {
  const { print } = dependencies;
  const names = Object.keys(MCP_CLIENTS);
  return new Command('mcp')
    .description('configure MCP clients to use svcd')
    .addHelpText('after', exampleHelp('svcd mcp print cursor', 'svcd mcp add claude-code'))
    .addCommand(
      new Command('print')
        .description('print the configuration for a client')
        .addHelpText('after', exampleHelp('svcd mcp print cursor'))
        .addArgument(new Argument('[client]', 'client name').choices(names).default('claude-desktop'))
        .option(...HUB_OPTION)
        .option(...CHANNEL_OPTION)
        .option(...PERMISSIONS_OPTION, readAid)
        .action((client: string, options: EntryOptions) => {
          if (isMcpClient(client)) print(withServer(client, '', entryOf(client, options, dependencies)));
        }),
    )
    .addCommand(
      new Command('add')
        .description('add svcd to the configuration of a client, with a backup of the previous file')
        .addHelpText('after', exampleHelp('svcd mcp add claude-code --dry-run', 'svcd mcp add claude-code'))
        .addArgument(new Argument('<client>', 'client name').choices(names))
        .option(...HUB_OPTION)
        .option(...CHANNEL_OPTION)
        .option(...PERMISSIONS_OPTION, readAid)
        .option('--dry-run', 'show the changes without writing them')
        .action((client: string, options: EntryOptions) => add(client, options, dependencies)),
    )
    .addCommand(
      new Command('rm')
        .aliases(REMOVING)
        .description('remove svcd from the configuration of a client, with a backup of the previous file')
        .addHelpText('after', exampleHelp('svcd mcp rm claude-code', 'svcd mcp rm cursor --name notes'))
        .addArgument(new Argument('<client>', 'client name').choices(names))
        .option('--hub', 'remove the hub instead')
        .option('--name <name>', 'another entry, such as one of "svc mcp use --into"')
        .option('--dry-run', 'show the changes without writing them')
        .action((client: string, options: EntryOptions) => remove(client, options, dependencies)),
    );
}

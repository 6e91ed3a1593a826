/** `svcd mcp print|add`: adds svcd to the configuration of MCP clients. */
import { Argument, Command } from 'commander';
import { exampleHelp } from '../surfaces/cli/command-group.ts';
import {
  addServer,
  type ClientLaunch,
  isMcpClient,
  type Machine,
  MCP_CLIENTS,
  svcdEntry,
  withServer,
} from '../surfaces/mcp-hosts/hosts.ts';

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

/** `svcd mcp print|add`: svcd in the configuration of MCP clients. */
import { Argument, Command } from 'commander';
import { exampleHelp } from '../surfaces/cli/examples.ts';
import { addServer } from '../surfaces/mcp-hosts/add.ts';
import {
  type ClientLaunch,
  isMcpClient,
  type Machine,
  MCP_CLIENTS,
  svcdEntry,
  withServer,
} from '../surfaces/mcp-hosts/hosts.ts';

export interface McpCommandDependencies {
  readonly machine: Machine;
  /** How a client starts svcd; read when a command runs. */
  readonly launch: () => ClientLaunch;
  readonly print: (text: string) => void;
}

/** Adds svcd to the configuration of a client, and keeps what was there beside it. */
function add(client: string, dryRun: boolean, { machine, launch, print }: McpCommandDependencies): void {
  if (isMcpClient(client)) print(addServer(client, svcdEntry(client, launch()), machine, dryRun));
}

/** The command with its two parts. */
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
        .addArgument(new Argument('[client]', 'which client').choices(names).default('claude-desktop'))
        .action((client: string) => {
          if (isMcpClient(client)) print(withServer(client, '', svcdEntry(client, launch())));
        }),
    )
    .addCommand(
      new Command('add')
        .description('write svcd into the configuration of a client; the file before is kept beside it')
        .addHelpText('after', exampleHelp('svcd mcp add claude-code --dry-run', 'svcd mcp add claude-code'))
        .addArgument(new Argument('<client>', 'which client').choices(names))
        .option('--dry-run', 'only say what would be written')
        .action((client: string, { dryRun = false }: { dryRun?: boolean }) => add(client, dryRun, dependencies)),
    );
}

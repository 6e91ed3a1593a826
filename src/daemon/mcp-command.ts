/** `svcd mcp print|add`: svcd in the configuration of MCP clients. */
import { constants, copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { Argument, Command } from 'commander';
import { writeFileAtomic } from '../foundation/atomic-file.ts';
import { PRIVATE_DIRECTORY_MODE } from '../foundation/file-modes.ts';
import { examples } from '../surfaces/cli/examples.ts';
import { type ClientLaunch, isMcpClient, type Machine, MCP_CLIENTS, withSvcd } from './mcp-clients.ts';

export interface McpCommandDependencies {
  readonly machine: Machine;
  /** How a client starts svcd; read when a command runs. */
  readonly launch: () => ClientLaunch;
  readonly print: (text: string) => void;
}

/** A file as it is, behind links. */
function read(path: string): { readonly file: string; readonly text: string } {
  if (!existsSync(path)) return { file: path, text: '' };
  const file = realpathSync(path);
  return { file, text: readFileSync(file, 'utf8') };
}

/** Copies a file to a name beside it that is free: what an earlier command kept stays. Returns where. */
function keepBeside(file: string): string {
  for (let n = 1; ; n++) {
    const backup = `${file}.before-svcd${n === 1 ? '' : `-${n}`}`;
    try {
      copyFileSync(file, backup, constants.COPYFILE_EXCL);
      return backup;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
  }
}

/** Adds svcd to the configuration of a client, and keeps what was there beside it. */
function add(client: string, dryRun: boolean, { machine, launch, print }: McpCommandDependencies): void {
  if (!isMcpClient(client)) return;
  const { file, text } = read(MCP_CLIENTS[client].file(machine));
  const changed = withSvcd(client, text, launch());
  if (changed === text) return print(`${file} has it already.\n`);
  if (dryRun) return print(`Would write ${file}:\n${withSvcd(client, '', launch())}(and keep what else is in it)\n`);
  mkdirSync(dirname(file), { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
  const backup = text === '' ? '' : `; the file before is ${keepBeside(file)}`;
  writeFileAtomic(file, changed);
  print(`Added svcd to ${file}${backup}.\nRestart ${MCP_CLIENTS[client].title} to use it.\n`);
}

/** The command with its two parts. */
export function mcpCommand(dependencies: McpCommandDependencies): Command {
  const { launch, print } = dependencies;
  const names = Object.keys(MCP_CLIENTS);
  return new Command('mcp')
    .description('configure MCP clients to use svcd')
    .addHelpText('after', examples('svcd mcp print cursor', 'svcd mcp add claude-code'))
    .addCommand(
      new Command('print')
        .description('print the configuration for a client')
        .addHelpText('after', examples('svcd mcp print cursor'))
        .addArgument(new Argument('[client]', 'which client').choices(names).default('claude-desktop'))
        .action((client: string) => {
          if (isMcpClient(client)) print(withSvcd(client, '', launch()));
        }),
    )
    .addCommand(
      new Command('add')
        .description('write svcd into the configuration of a client; the file before is kept beside it')
        .addHelpText('after', examples('svcd mcp add claude-code --dry-run', 'svcd mcp add claude-code'))
        .addArgument(new Argument('<client>', 'which client').choices(names))
        .option('--dry-run', 'only say what would be written')
        .action((client: string, { dryRun = false }: { dryRun?: boolean }) => add(client, dryRun, dependencies)),
    );
}

/** The command line of `svcd`. */
import { existsSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { CONFIG_FILE, homeDirectory } from '../foundation/data-dir/paths.ts';
import { namedDataDir } from '../foundation/environment.ts';
import { EXIT, SvcError } from '../foundation/errors.ts';
import { parseJoinTarget } from '../foundation/invitation.ts';
import { ownScript } from '../foundation/package-file.ts';
import { MCP_PROFILES, PROFILES_PATTERN } from '../operations/mcp.ts';
import { completionCommands } from '../surfaces/cli/commands/completion.ts';
import { SILENT_ALIASES } from '../surfaces/cli/words.ts';
import { hubLaunch, svcdLaunch } from '../surfaces/mcp-hosts/launch.ts';
import { mcpCommand, readAid } from './mcp-command.ts';
import { type ServiceMachine, serviceCommand } from './service/command.ts';
import { updateCommand } from './update-command.ts';

// Exit codes of the `svcd` command on failure, the same as for `svc`.

/** Throws usage errors instead of exiting, in this command and all subcommands. By default commander exits with 1. */
export function throwUsageErrors(command: Command): Command {
  command.exitOverride().configureHelp(SILENT_ALIASES);
  command.configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'svcd: ')) });
  for (const one of command.commands) throwUsageErrors(one);
  return command;
}

/** The exit code for a thrown value. Help and version output count as success. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
  return error instanceof SvcError ? error.exit : EXIT.failed;
}

type Flag = 'network' | 'listen_addr' | 'api_addr' | 'fallback_host' | 'bootstrap' | 'open_browser';

export interface DaemonArguments {
  /** Absolute path. */
  readonly dataDir: string;
  /** Absolute path of config.toml. At its default location it may be missing. */
  readonly configFile: string;
  /** Configuration keys set by flags. */
  readonly flags: { readonly [K in Flag]?: string | undefined };
  /** An invitation, or the address of a node, to join through. */
  readonly join?: string;
  /** Serve MCP on stdin and stdout with the tools of these profiles. */
  readonly mcpStdio?: {
    readonly profiles: string | undefined;
    readonly isChannel?: boolean | undefined;
    readonly permissions?: string | undefined;
  };
  /** A user reads the output: a few lines replace the log. */
  readonly onTerminal?: true;
  /** Run the daemon in a child process and replace it by newer releases, as a system service does. */
  readonly supervise?: true;
}

interface Options {
  readonly dataDir?: string;
  readonly config?: string;
  readonly listen?: string;
  readonly apiAddr?: string;
  readonly fallbackHost?: string;
  readonly bootstrap?: string;
  readonly join?: string;
  readonly openBrowser: boolean;
  readonly mcpStdio?: boolean;
  readonly mcpProfile?: string;
  readonly mcpChannel?: boolean;
  readonly mcpPermissions?: string;
}

const EXAMPLES = `
Examples:
  svcd
  svcd --bootstrap node.example.org:4121
  svcd --join node.example.org
  svcd --data-dir ./second --listen :4131 --api-addr 127.0.0.1:2131

Every configuration key can be set in config.toml in the data directory, or as SVCD_<KEY> in the environment.`;

/** The program. `run` is called with the arguments for starting the daemon. */
export function daemonProgram(
  version: string,
  defaultDataDir: () => string,
  run: (args: DaemonArguments) => Promise<void>,
): Command {
  const program = new Command('svcd');
  const named = (): string | undefined => namedDataDir(process.env, program.opts<Options>().dataDir);
  const print = (text: string): void => void process.stdout.write(text);
  program
    .description('Gives AI agents a permanent address and makes them reachable from anywhere.')
    .option(
      '--data-dir <dir>',
      `directory for keys, configuration and database (SVCD_DATA_DIR; default: ${shownDefault(defaultDataDir)})`,
    )
    .option('--config <file>', 'configuration file (default: config.toml in the data directory)')
    .option('--listen <addr>', 'UDP address of the record network, host:port or :port (default :4121)')
    .option('--api-addr <addr>', 'address of the API (default 127.0.0.1:2121)')
    .option('--fallback-host <host>', 'host name or address to publish if none can be detected')
    .option('--bootstrap <list>', 'nodes to join through: host, host:port or <node aid>@host:port, separated by commas')
    .option(
      '--join <invitation>',
      'join the network of an invitation from "svc invite", or through the address of a node, and remember it',
      readJoin,
    )
    .option('--mcp-stdio', 'serve MCP on stdin and stdout, through the running daemon or as a node')
    .option(
      '--mcp-profile <names>',
      `with --mcp-stdio, the tools to show: one or more of ${MCP_PROFILES.join(', ')}, separated by commas; default full`,
      readProfiles,
    )
    .option(
      '--mcp-channel',
      'with --mcp-stdio, pass on what arrives to the session, as a channel of Claude Code (preview)',
    )
    .option(
      '--mcp-permissions <aid>',
      'with --mcp-channel, ask this agent by chat for permissions of the session',
      readAid,
    )
    .option('--no-open-browser', 'do not open the web panel at startup')
    .version(version, '-V, --version')
    .allowExcessArguments(false)
    .showHelpAfterError('(see svcd --help; commands for a running daemon: svc --help)')
    .addHelpText('after', EXAMPLES)
    .action((options: Options) => run(readOptions(options, defaultDataDir)))
    .addCommand(
      mcpCommand({
        machine: {
          platform: process.platform,
          environment: process.env,
          get home() {
            return homeDirectory();
          },
        },
        launch: () => {
          const options = program.opts<Options>();
          return svcdLaunch(process.env, {
            dataDir: named(),
            options: givenOptions(options),
            profile: options.mcpProfile,
          });
        },
        hubLaunch: () => hubLaunch(named(), program.opts<Options>().apiAddr),
        print,
      }),
    )
    .addCommand(updateCommand({ dataDir: () => resolve(named() ?? defaultDataDir()), environment: process.env, print }))
    .addCommand(
      serviceCommand({
        machine: thisMachine(),
        dataDir: named,
        options: () => givenOptions(program.opts<Options>()),
        defaultDataDir,
        print,
        supervise: () => run({ ...readOptions(program.opts<Options>(), defaultDataDir), supervise: true }),
      }),
    );
  completionCommands(program, { print });
  return program;
}

/** Accepts these service options with one dash too: `-data-dir`, `-user`. */
export function withTwoDashes(args: readonly string[]): string[] {
  return args.map((arg) => (/^-(?:data-dir|user)(?:=|$)/.test(arg) ? `-${arg}` : arg));
}

/** For the help, which must also work for a user without a home directory. */
function shownDefault(defaultDataDir: () => string): string {
  try {
    return defaultDataDir();
  } catch {
    return 'none, because this user has no home directory';
  }
}

function thisMachine(): ServiceMachine {
  return {
    platform: process.platform,
    environment: process.env,
    get home() {
      return homeDirectory();
    },
    temporary: tmpdir(),
    uid: process.getuid?.() ?? -1,
    // Determined only when needed: in a container a user may have no name.
    userName: () => `${process.env['USERDOMAIN'] ?? ''}\\${userInfo().username}`,
    node: process.execPath,
    program: ownScript(),
    // The check of sd_booted(3).
    hasSystemd: () => existsSync('/run/systemd/system'),
  };
}

/** The options that start a daemon with these arguments, without opening a browser. */
export function daemonOptions({ dataDir, configFile, flags, join }: DaemonArguments): string[] {
  const { listen_addr, api_addr, fallback_host, bootstrap } = flags;
  const named = {
    '--listen': listen_addr,
    '--api-addr': api_addr,
    '--fallback-host': fallback_host,
    '--bootstrap': bootstrap,
    '--join': join,
  };
  const given = Object.entries(named).flatMap(([option, value]) => (value === undefined ? [] : [option, value]));
  return ['--data-dir', dataDir, '--config', configFile, ...given, '--no-open-browser'];
}

/** The given options except the data directory, with absolute paths, so that they work from any directory. */
function givenOptions({ config, listen, apiAddr, fallbackHost, bootstrap, join }: Options): string[] {
  const given = {
    '--config': config === undefined ? undefined : resolve(config),
    '--listen': listen,
    '--api-addr': apiAddr,
    '--fallback-host': fallbackHost,
    '--bootstrap': bootstrap,
    '--join': join,
  };
  return Object.entries(given).flatMap(([option, value]) => (value === undefined ? [] : [option, value]));
}

function readProfiles(text: string): string {
  if (new RegExp(PROFILES_PATTERN).test(text)) return text;
  throw new InvalidArgumentError(`Choose from ${MCP_PROFILES.join(', ')}.`);
}

/** Checks the text before anything starts. */
function readJoin(text: string): string {
  try {
    parseJoinTarget(text);
    return text;
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : '');
  }
}

/**
 * Path of the configuration file. The default file may be missing; then all settings have defaults. A file named with
 * --config must exist, because defaults would silently mean another network and address.
 * @throws SvcError `config_invalid` if it does not exist
 */
function configFilePath(dataDir: string, named: string | undefined): string {
  const usual = join(dataDir, CONFIG_FILE);
  const file = named === undefined ? usual : resolve(named);
  if (file !== usual && !existsSync(file))
    throw new SvcError('config_invalid', {
      message: `The configuration file ${file} does not exist. Correct --config, or omit it to use ${usual}.`,
    });
  return file;
}

function readOptions(options: Options, defaultDataDir: () => string): DaemonArguments {
  const { listen: listen_addr, apiAddr: api_addr, fallbackHost: fallback_host, bootstrap, join, openBrowser } = options;
  const network = join === undefined ? undefined : parseJoinTarget(join).invitation?.network;
  const dataDir = resolve(namedDataDir(process.env, options.dataDir) ?? defaultDataDir());
  return {
    dataDir,
    configFile: configFilePath(dataDir, options.config),
    flags: {
      network,
      listen_addr,
      api_addr,
      fallback_host,
      bootstrap,
      open_browser: openBrowser ? undefined : 'false',
    },
    ...(join === undefined ? {} : { join }),
    ...(options.mcpStdio === true
      ? {
          mcpStdio: {
            profiles: options.mcpProfile,
            isChannel: options.mcpChannel,
            permissions: options.mcpPermissions,
          },
        }
      : {}),
  };
}

/** The commands with which MCP clients start svcd and the hub. */
import { dirname, join, resolve } from 'node:path';
import { CONFIG_KEYS, environmentName, SECRET_KEYS } from '../../foundation/config/schema.ts';
import { isSingleFile, ownScript } from '../../foundation/package-file.ts';
import { HOST_PROFILE } from '../../operations/mcp.ts';
import type { ClientLaunch } from './hosts.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Configuration keys from the environment without secrets, which must not be copied into files of other programs. */
function environmentOf(environment: Environment): Record<string, string> {
  const names = CONFIG_KEYS.filter((key) => !SECRET_KEYS.has(key)).map(environmentName);
  return Object.fromEntries(names.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])));
}

/** `svc` and `svcd` are next to each other. */
function programBeside(name: 'svc' | 'svcd'): string {
  return isSingleFile ? name : join(dirname(ownScript()), name);
}

export interface SvcdLaunchOptions {
  /** Undefined: the default. */
  readonly dataDir: string | undefined;
  /** Further options of svcd. */
  readonly options?: readonly string[];
  readonly profile?: string | undefined;
}

/** Starts svcd with these options and the current environment. */
export function svcdLaunch(
  environment: Environment,
  { dataDir, options = [], profile }: SvcdLaunchOptions,
): ClientLaunch {
  const [command = 'node'] = process.argv;
  const directory = dataDir === undefined ? [] : ['--data-dir', resolve(dataDir)];
  const shown = ['--mcp-profile', profile ?? HOST_PROFILE];
  return {
    command,
    args: [programBeside('svcd'), '--mcp-stdio', ...directory, ...options, ...shown],
    env: environmentOf(environment),
  };
}

/** Starts the hub of the running daemon. @param api its address, if it is not found through its data directory */
export function hubLaunch(dataDir: string | undefined, api: string | undefined): ClientLaunch {
  const [command = 'node'] = process.argv;
  const args = [programBeside('svc'), 'mcp', 'hub', '--stdio'];
  if (api !== undefined) return { command, args: [...args, '--api', api] };
  return { command, args, env: dataDir === undefined ? {} : { SVCD_DATA_DIR: resolve(dataDir) } };
}

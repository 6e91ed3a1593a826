/** `svcd service …`: installs and controls svcd as a system service or user service, and runs the supervisor. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { Command } from 'commander';
import { SvcError } from '../../foundation/errors.ts';
import { exampleHelp } from '../../surfaces/cli/command-group.ts';
import { launchdService, SYSTEM_DATA_DIR, systemdService, windowsService } from './definitions.ts';
import { describe, execute, type ServiceManager, type Step } from './plan.ts';

/** Properties of the machine that the plans depend on. */
export interface ServiceMachine {
  readonly platform: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly temporary: string;
  /** User ID; -1 on Windows. */
  readonly uid: number;
  /** `DOMAIN\name` of the user. Used on Windows only. */
  readonly userName: () => string;
  /** The running Node and its program. */
  readonly node: string;
  readonly program: string;
  /** Whether systemd is the init system. */
  readonly hasSystemd: () => boolean;
}

export interface ServiceCommandDependencies {
  readonly machine: ServiceMachine;
  /** The data directory from the command line, or undefined. */
  readonly dataDir: () => string | undefined;
  /** Other daemon options from the command line. */
  readonly options: () => readonly string[];
  readonly defaultDataDir: () => string;
  readonly print: (text: string) => void;
  /** Runs the daemon as a service until it stops. */
  readonly supervise: () => Promise<void>;
}

const MANUAL_SETUP = 'Run "svcd" in a terminal, or let your service manager run: svcd --data-dir <dir> service run';

const COMMANDS = {
  install: 'start svcd now, and whenever the machine starts',
  uninstall: 'stop svcd and remove the service; the data is kept',
  start: 'start the service',
  stop: 'stop the service until it is started again or the machine restarts',
  status: 'show whether the service is running',
} as const;

const EXAMPLES = exampleHelp(
  'sudo svcd service install     # for the machine, with its own user',
  'svcd service install --user   # for you, while you are logged in',
  'svcd service install --user --dry-run',
  'svcd --data-dir /srv/svcd service install',
);

/**
 * The data directory of the service and its owner. A system service with a given data directory runs as the owner of
 * the directory.
 */
function place(user: boolean, { machine, dataDir, defaultDataDir }: ServiceCommandDependencies) {
  const rules = machine.platform === 'win32' ? path.win32 : path.posix;
  const named = dataDir();
  if (named !== undefined) {
    const directory = rules.resolve(named);
    const owner = user || machine.platform !== 'linux' ? null : ownerOf(directory);
    return { directory, owner };
  }
  if (user || machine.platform === 'darwin') return { directory: defaultDataDir(), owner: null };
  if (machine.platform === 'linux') return { directory: SYSTEM_DATA_DIR, owner: null };
  return { directory: rules.join(machine.environment['PROGRAMDATA'] ?? 'C:\\ProgramData', 'svcd'), owner: null };
}

function ownerOf(directory: string): number {
  const uid = statSync(directory, { throwIfNoEntry: false })?.uid;
  if (uid !== undefined && uid !== 0) return uid;
  throw new SvcError('config_invalid', {
    message: `Create ${directory} first, owned by the user that svcd should run as (not root). The service runs as the owner of its data.`,
  });
}

function managerOf(user: boolean, owner: number | null, machine: ServiceMachine): ServiceManager {
  const { platform, home, uid, userName, temporary, environment } = machine;
  switch (platform) {
    case 'linux':
      return systemdService({
        user,
        owner,
        configHome: environment['XDG_CONFIG_HOME'] || path.posix.join(home, '.config'),
      });
    case 'darwin':
      if (uid === 0)
        throw new SvcError('config_invalid', {
          message: 'Run this command as yourself, without sudo, because it installs a user service.',
        });
      return launchdService({ home, uid });
    case 'win32':
      return windowsService({ user, userName: userName(), temporary });
    default:
      throw new SvcError('config_invalid', {
        message: `svcd does not support a service manager on ${platform}. ${MANUAL_SETUP}`,
      });
  }
}

/** A path that survives Node updates, if PATH has one, instead of the directory of one version. */
function stableNode({ node, platform, environment }: ServiceMachine): string {
  if (platform === 'win32') return node;
  const directories = (environment['PATH'] ?? '').split(':');
  const lasting = directories.filter((one) => path.posix.isAbsolute(one) && !one.includes('/node_modules/'));
  const candidates = lasting.map((directory) => path.posix.join(directory, 'node')).filter((file) => existsSync(file));
  return candidates.find((file) => realpathSync(file) === realpathSync(node)) ?? node;
}

function plan(name: keyof typeof COMMANDS, user: boolean, dependencies: ServiceCommandDependencies): readonly Step[] {
  const { machine } = dependencies;
  if (name !== 'install') return managerOf(user, null, machine)[name];
  const { directory, owner } = place(user, dependencies);
  const launch = {
    node: stableNode(machine),
    program: machine.program,
    dataDir: directory,
    options: dependencies.options(),
  };
  return managerOf(user, owner, machine).install(launch);
}

/** The command with its subcommands. */
export function serviceCommand(dependencies: ServiceCommandDependencies): Command {
  const { machine, print, supervise } = dependencies;
  const service = new Command('service')
    .description('run svcd as a service of this machine: systemd, launchd or the Task Scheduler')
    .addHelpText('after', EXAMPLES);
  for (const [name, description] of Object.entries(COMMANDS) as [keyof typeof COMMANDS, string][]) {
    const command = service
      .command(name)
      .description(description)
      .addHelpText('after', name === 'install' ? EXAMPLES : exampleHelp(`svcd service ${name}`));
    if (machine.platform !== 'darwin') command.option('--user', 'a service of this user, not of the system');
    command
      .option('--dry-run', 'show the files and commands without executing them')
      .action(({ user = false, dryRun = false }: { user?: boolean; dryRun?: boolean }) => {
        const steps = plan(name, user, dependencies);
        if (dryRun) return print(steps.map(describe).join(''));
        if (machine.platform === 'linux' && !machine.hasSystemd())
          throw new SvcError('not_found', { message: `systemd is not running on this machine. ${MANUAL_SETUP}` });
        const code = execute(steps);
        if (name === 'status') process.exitCode = code;
        else print(`${name}: done.\n`);
      });
  }
  service
    .command('run')
    .description('run the daemon and replace it with newer releases; the service uses this command')
    .addHelpText('after', exampleHelp('svcd --data-dir /srv/svcd service run'))
    .action(() => supervise());
  return service;
}

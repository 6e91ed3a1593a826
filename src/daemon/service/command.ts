/** `svcd service …`: svcd as a service of the system or of one user, and what such a service runs. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { Command } from 'commander';
import { SvcError } from '../../foundation/errors.ts';
import { exampleHelp } from '../../surfaces/cli/examples.ts';
import { launchdService } from './launchd.ts';
import { carryOut, describe, type ServiceManager, type Step } from './plan.ts';
import { SYSTEM_DATA_DIR, systemdService } from './systemd.ts';
import { windowsService } from './windows.ts';

/** What the plans depend on. */
export interface ServiceMachine {
  readonly platform: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly temporary: string;
  /** Id of the user; -1 on Windows. */
  readonly uid: number;
  /** `DOMAIN\name` of the user; asked on Windows only. */
  readonly userName: () => string;
  /** The running Node and the program that it runs. */
  readonly node: string;
  readonly program: string;
  /** Whether systemd runs this machine. */
  readonly hasSystemd: () => boolean;
}

export interface ServiceCommandDependencies {
  readonly machine: ServiceMachine;
  /** The data directory that was named; undefined where none was. */
  readonly dataDir: () => string | undefined;
  /** Further options of the daemon that were given. */
  readonly options: () => readonly string[];
  readonly defaultDataDir: () => string;
  readonly print: (text: string) => void;
  /** Runs the daemon as a service does, until it ends. */
  readonly supervise: () => Promise<void>;
}

const BY_HAND = 'Have your service manager run: svcd --data-dir <dir> service run';

const COMMANDS = {
  install: 'make svcd start with the machine, and start it now',
  uninstall: 'stop it, and take it away; the data stays',
  start: 'start it',
  stop: 'stop it until it is started again, or the machine is',
  status: 'show whether it runs',
} as const;

const EXAMPLES = exampleHelp(
  'sudo svcd service install     # for the machine, as a user of its own',
  'svcd service install --user   # for you, while you are logged on',
  'svcd service install --user --dry-run',
  'svcd --data-dir /srv/svcd service install',
);

/**
 * Where the service keeps its data, and who owns it: a directory of the system service that was
 * named belongs to the user that it shall run as.
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
    message: `Make ${directory} first, and give it to the user that svcd shall run as (not root): the service runs as the owner of its data.`,
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
        throw new SvcError('config_invalid', { message: 'Run this as yourself, without sudo: the service is yours.' });
      return launchdService({ home, uid });
    case 'win32':
      return windowsService({ user, userName: userName(), temporary });
    default:
      throw new SvcError('config_invalid', { message: `svcd knows no service manager on ${platform}. ${BY_HAND}` });
  }
}

/** A path that stays when Node is brought up to date, where the PATH has one: not the folder of one version. */
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

/** The command with its parts. */
export function serviceCommand(dependencies: ServiceCommandDependencies): Command {
  const { machine, print, supervise } = dependencies;
  const service = new Command('service')
    .description('svcd as a service of this machine: systemd, launchd or the Task Scheduler')
    .addHelpText('after', EXAMPLES);
  for (const [name, description] of Object.entries(COMMANDS) as [keyof typeof COMMANDS, string][]) {
    const command = service
      .command(name)
      .description(description)
      .addHelpText('after', name === 'install' ? EXAMPLES : exampleHelp(`svcd service ${name}`));
    if (machine.platform !== 'darwin') command.option('--user', 'a service of this user, not of the system');
    command
      .option('--dry-run', 'only say what would be written and run')
      .action(({ user = false, dryRun = false }: { user?: boolean; dryRun?: boolean }) => {
        const steps = plan(name, user, dependencies);
        if (dryRun) return print(steps.map(describe).join(''));
        if (machine.platform === 'linux' && !machine.hasSystemd())
          throw new SvcError('not_found', { message: `systemd does not run this machine. ${BY_HAND}` });
        const code = carryOut(steps);
        if (name === 'status') process.exitCode = code;
        else print(`${name}: done.\n`);
      });
  }
  service
    .command('run')
    .description('run the daemon, and let it put newer releases in its place: what the service starts')
    .addHelpText('after', exampleHelp('svcd --data-dir /srv/svcd service run'))
    .action(() => supervise());
  return service;
}

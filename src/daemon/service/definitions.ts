/** The definitions of the service: launchd, systemd, and the Task Scheduler of Windows. */
import path from 'node:path';
import { launchdFile, SERVICE_NAME, systemdUnitFile } from '../../foundation/data-dir/paths.ts';
import { SvcError } from '../../foundation/errors.ts';
import {
  checkedPath,
  launchWords,
  run,
  runOptional,
  type ServiceLaunch,
  type ServiceManager,
  type Step,
} from './plan.ts';

/** Escapes a text for XML content. Callers reject control characters. */
function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

// The service on Windows: a task of the Task Scheduler. A Windows service must talk to the Service Control Manager
// and needs a special program. The scheduler runs any program, even if no user is logged in, and restarts it after a
// failure.

/** Well-known security IDs: LocalService, administrators, the system. */
const LOCAL_SERVICE = 'S-1-5-19';
const ADMINISTRATORS = 'S-1-5-32-544';
const SYSTEM = 'S-1-5-18';

interface WindowsOptions {
  /** A task of the installing user that runs from logon to logoff, instead of a task that starts with the machine. */
  readonly user: boolean;
  /** `DOMAIN\name` of that user. */
  readonly userName: string;
  /** Temporary file from which the scheduler reads the definition. */
  readonly temporary: string;
}

/** One word of a command line, quoted for CommandLineToArgvW. A path contains no double quote. */
function windowsWord(word: string): string {
  return `"${word.replace(/\\+$/, (backslashes) => backslashes + backslashes)}"`;
}

/** The definition in the scheduler's format: UTF-16 with a byte order mark. */
export function windowsTask(launch: ServiceLaunch, { user, userName }: WindowsOptions): Uint8Array {
  // The scheduler expands `%NAME%` and offers no way to escape it.
  const forbidden = /["%<>|?*]/;
  const [command, ...words] = launchWords(launch, path.win32, forbidden);
  const principal = user
    ? `<UserId>${xmlText(userName)}</UserId>\n      <LogonType>InteractiveToken</LogonType>`
    : `<UserId>${LOCAL_SERVICE}</UserId>`;
  const trigger = user
    ? `<LogonTrigger>\n      <UserId>${xmlText(userName)}</UserId>\n    </LogonTrigger>`
    : '<BootTrigger/>';
  const text = `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>svcd: a permanent address for AI agents, reachable from anywhere</Description>
  </RegistrationInfo>
  <Triggers>
    ${trigger}
  </Triggers>
  <Principals>
    <Principal id="svcd">
      ${principal}
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>255</Count>
    </RestartOnFailure>
    <Hidden>true</Hidden>
  </Settings>
  <Actions Context="svcd">
    <Exec>
      <Command>${xmlText(command)}</Command>
      <Arguments>${xmlText(words.map(windowsWord).join(' '))}</Arguments>
    </Exec>
  </Actions>
</Task>
`;
  return Buffer.from(`\uFEFF${text.replaceAll('\n', '\r\n')}`, 'utf16le');
}

/** The service under the Task Scheduler. */
export function windowsService(options: WindowsOptions): ServiceManager {
  const file = path.win32.join(options.temporary, `${SERVICE_NAME}-task.xml`);
  const task = (what: string) => ['schtasks', what, '/TN', SERVICE_NAME] as const;
  // Restricts access to the directory, which contains keys. By default everybody can read it.
  const closed = (dataDir: string): Step[] => {
    const full = [LOCAL_SERVICE, ADMINISTRATORS, SYSTEM].map((id) => `*${id}:(OI)(CI)F`);
    return [{ kind: 'directory', directory: dataDir }, run('icacls', dataDir, '/inheritance:r', '/grant:r', ...full)];
  };
  return {
    install: (launch) => [
      { kind: 'write', file, content: windowsTask(launch, options) },
      run(...task('/Create'), '/XML', file, '/F'),
      { kind: 'remove', file },
      ...(options.user ? [] : closed(launch.dataDir)),
      run(...task('/Run')),
    ],
    uninstall: [runOptional(...task('/End')), run(...task('/Delete'), '/F')],
    start: [run(...task('/Run'))],
    stop: [run(...task('/End'))],
    status: [runOptional(...task('/Query'), '/V', '/FO', 'LIST')],
  };
}

// The service on Linux: a systemd unit of the system or of one user.

const UNIT = `${SERVICE_NAME}.service`;
/** Default data directory of the system service. */
export const SYSTEM_DATA_DIR = `/var/lib/${SERVICE_NAME}`;
/** Directories that services of other users cannot read. */
const HOMES = ['/home', '/root', '/run/user'];

interface SystemdOptions {
  /** Install a service of the current user instead of the system. */
  readonly user: boolean;
  /** `$XDG_CONFIG_HOME` of that user, or its default. */
  readonly configHome: string;
  /** Owner of the data directory of a system service; null if systemd creates user and directory. */
  readonly owner: number | null;
}

/**
 * One word of a command line in a unit file, quoted as in systemd.syntax(7). The `:` before the command turns off `$`.
 */
function systemdWord(word: string): string {
  return `"${word.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%')}"`;
}

/** Options that need no namespaces, so that they also work in a user service. */
const HARDENING = [
  'UMask=0077',
  'NoNewPrivileges=yes',
  'LockPersonality=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'SystemCallArchitectures=native',
  'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK',
];

const SYSTEM_HARDENING = [
  // Nodes in networks that allow only HTTPS reach this one at TCP port 443.
  'AmbientCapabilities=CAP_NET_BIND_SERVICE',
  'CapabilityBoundingSet=CAP_NET_BIND_SERVICE',
  'ProtectSystem=strict',
  'ProtectHome=yes',
  'PrivateTmp=yes',
  'PrivateDevices=yes',
  'ProtectClock=yes',
  'ProtectControlGroups=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
  'ProtectProc=invisible',
  'RestrictNamespaces=yes',
  'SystemCallFilter=@system-service',
  'SystemCallErrorNumber=EPERM',
];

function identityLines({ owner }: SystemdOptions, dataDir: string): string[] {
  if (owner === null) return ['DynamicUser=yes', `StateDirectory=${SERVICE_NAME}`, 'StateDirectoryMode=0700'];
  return [`User=${owner}`, `ReadWritePaths=${systemdWord(dataDir)}`];
}

/** @throws SvcError `config_invalid` if a path is not allowed in a unit, or if the service could not read it */
export function systemdUnit(launch: ServiceLaunch, options: SystemdOptions): string {
  const words = launchWords(launch, path.posix);
  const { node, program, dataDir } = launch;
  for (const file of options.user ? [] : [node, program, dataDir]) {
    if (HOMES.some((home) => file === home || file.startsWith(`${home}/`)))
      throw new SvcError('config_invalid', {
        message: `A system service cannot read ${file}, because it is in a home directory. Install Node and svcd for all users, or use --user for a user service.`,
      });
  }
  const identity = options.user ? [] : [...identityLines(options, dataDir), ...SYSTEM_HARDENING];
  return [
    '[Unit]',
    'Description=svcd: a permanent address for AI agents, reachable from anywhere',
    // The user manager does not have this target.
    ...(options.user ? [] : ['Wants=network-online.target', 'After=network-online.target']),
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=:${words.map(systemdWord).join(' ')}`,
    'Restart=on-failure',
    'RestartSec=5',
    // Wrong usage or configuration. A restart does not help.
    'RestartPreventExitStatus=2',
    'KillMode=mixed',
    'TimeoutStopSec=30',
    'LimitNOFILE=65536',
    ...identity,
    ...HARDENING,
    '',
    '[Install]',
    `WantedBy=${options.user ? 'default' : 'multi-user'}.target`,
    '',
  ].join('\n');
}

/** The service under systemd. */
export function systemdService(options: SystemdOptions): ServiceManager {
  const { user, configHome } = options;
  const file = systemdUnitFile(user ? configHome : null);
  const systemctl = ['systemctl', ...(user ? ['--user'] : [])] as const;
  return {
    install: (launch) => [
      { kind: 'write', file, content: systemdUnit(launch, options) },
      run(...systemctl, 'daemon-reload'),
      run(...systemctl, 'enable', UNIT),
      // A running service adopts the new definition.
      run(...systemctl, 'restart', UNIT),
    ],
    uninstall: [
      runOptional(...systemctl, 'disable', '--now', UNIT),
      { kind: 'remove', file },
      run(...systemctl, 'daemon-reload'),
    ],
    start: [run(...systemctl, 'start', UNIT)],
    stop: [run(...systemctl, 'stop', UNIT)],
    status: [runOptional(...systemctl, 'status', '--no-pager', UNIT)],
  };
}

// The service on macOS: a launchd agent of the user who installs it.

export interface LaunchdOptions {
  readonly home: string;
  /** User ID. */
  readonly uid: number;
}

/** @throws SvcError `config_invalid` if a property list cannot contain a path */
export function launchdPlist(launch: ServiceLaunch, { home }: LaunchdOptions): string {
  const words = launchWords(launch, path.posix);
  const log = checkedPath('The log file', path.posix.join(home, 'Library/Logs', `${SERVICE_NAME}.log`), path.posix);
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${SERVICE_NAME}</string>
  <key>ProgramArguments</key>
  <array>
${words.map((word) => `    <string>${xmlText(word)}</string>`).join('\n')}
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>5</integer>
  <key>ExitTimeOut</key>
  <integer>30</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardOutPath</key>
  <string>${xmlText(log)}</string>
  <key>StandardErrorPath</key>
  <string>${xmlText(log)}</string>
</dict>
</plist>
`;
}

/** The service under launchd. */
export function launchdService(options: LaunchdOptions): ServiceManager {
  const file = launchdFile(options.home);
  const domain = `gui/${options.uid}`;
  const service = `${domain}/${SERVICE_NAME}`;
  const bootout = runOptional('launchctl', 'bootout', service);
  return {
    install: (launch) => [
      { kind: 'write', file, content: launchdPlist(launch, options) },
      bootout,
      run('launchctl', 'bootstrap', domain, file),
    ],
    uninstall: [bootout, { kind: 'remove', file }],
    start: [run('launchctl', 'kickstart', service)],
    // A requested stop counts as success, so KeepAlive does not restart it.
    stop: [run('launchctl', 'kill', 'SIGTERM', service)],
    status: [runOptional('launchctl', 'print', service)],
  };
}

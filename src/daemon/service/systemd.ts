/** The service on Linux: a systemd unit of the system or of one user. */
import path from 'node:path';
import { SvcError } from '../../foundation/errors.ts';
import { launchWords, run, runOptional, SERVICE_NAME, type ServiceLaunch, type ServiceManager } from './plan.ts';

const UNIT = `${SERVICE_NAME}.service`;
/** Default data directory of the system service. */
export const SYSTEM_DATA_DIR = `/var/lib/${SERVICE_NAME}`;
/** Directories that services of other users cannot read. */
const HOMES = ['/home', '/root', '/run/user'];

export interface SystemdOptions {
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
export function systemdWord(word: string): string {
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
  'CapabilityBoundingSet=',
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
  const file = path.posix.join(user ? path.posix.join(configHome, 'systemd/user') : '/etc/systemd/system', UNIT);
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

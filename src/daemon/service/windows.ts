/**
 * The service on Windows: a task of the Task Scheduler. A Windows service must talk to the Service Control Manager and
 * needs a special program. The scheduler runs any program, even if no user is logged in, and restarts it after a
 * failure.
 */
import path from 'node:path';
import {
  launchWords,
  run,
  runOptional,
  SERVICE_NAME,
  type ServiceLaunch,
  type ServiceManager,
  type Step,
} from './plan.ts';
import { xmlText } from './xml.ts';

/** Well-known security IDs: LocalService, administrators, the system. */
const LOCAL_SERVICE = 'S-1-5-19';
const ADMINISTRATORS = 'S-1-5-32-544';
const SYSTEM = 'S-1-5-18';

export interface WindowsOptions {
  /** A task of the installing user that runs from logon to logoff, instead of a task that starts with the machine. */
  readonly user: boolean;
  /** `DOMAIN\name` of that user. */
  readonly userName: string;
  /** Temporary file from which the scheduler reads the definition. */
  readonly temporary: string;
}

/** One word of a command line, quoted for CommandLineToArgvW. A path contains no double quote. */
export function windowsWord(word: string): string {
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

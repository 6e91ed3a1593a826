/** The service on macOS: a launchd agent of the user who installs it. */
import path from 'node:path';
import {
  checkedPath,
  launchWords,
  run,
  runOptional,
  SERVICE_NAME,
  type ServiceLaunch,
  type ServiceManager,
} from './plan.ts';
import { xmlText } from './xml.ts';

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
  const file = path.posix.join(options.home, 'Library/LaunchAgents', `${SERVICE_NAME}.plist`);
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

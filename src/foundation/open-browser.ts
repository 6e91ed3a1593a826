/** Opens a page in the browser of the user at this machine. */
import { spawn } from 'node:child_process';

type Environment = Readonly<Record<string, string | undefined>>;

const isSet = (environment: Environment, name: string): boolean => (environment[name] ?? '') !== '';

/**
 * The command that opens a page; null if there is no desktop or the user works from another machine.
 * @param target a URL or the path of a file
 */
export function browserCommand(
  target: string,
  platform: NodeJS.Platform,
  environment: Environment,
): readonly [string, ...string[]] | null {
  if (isSet(environment, 'SSH_CONNECTION')) return null;
  if (platform === 'darwin') return ['open', target];
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler', target];
  return isSet(environment, 'DISPLAY') || isSet(environment, 'WAYLAND_DISPLAY') ? ['xdg-open', target] : null;
}

/** Opens a page. @returns false if that is impossible; true does not guarantee that the browser shows it */
export async function openInBrowser(target: string, environment: Environment): Promise<boolean> {
  const command = browserCommand(target, process.platform, environment);
  if (command === null) return false;
  const [program, ...args] = command;
  const child = spawn(program, args, { stdio: 'ignore', detached: true });
  child.unref();
  return new Promise((resolve) => {
    child.once('spawn', () => resolve(true));
    child.on('error', () => resolve(false));
  });
}

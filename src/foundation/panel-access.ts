/** How a person gets into the panel: session tokens, the file that opens the page, and the browser. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { PANEL_FILE } from './data-dir/paths.ts';
import { writeFileAtomic } from './files.ts';

/** Random bytes of a session token. */
export const PANEL_TOKEN_BYTES = 32;
/** Distinguishes session tokens from the API token. */
export const PANEL_TOKEN_PREFIX = 'svcp_';
const FORM = /^svcp_[\w-]{43}$/;

/** True if a text has the form of a panel session token, expired or not. */
export function isPanelToken(text: string): boolean {
  return FORM.test(text);
}

// A file that opens the panel in a browser. The address contains a code, and other users of the machine can see
// program arguments, so it is not passed as one.

function attribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}

/**
 * Writes the file into the data directory, readable by its owner only. The daemon removes it when the code expires.
 * @returns its path
 * @throws SvcError `not_writable`
 */
export function writePanelFile(dataDir: string, url: string): string {
  const file = join(dataDir, PANEL_FILE);
  const to = attribute(url);
  writeFileAtomic(
    file,
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${to}">
<title>svcd</title>
</head>
<body><a href="${to}">The panel of svcd</a></body>
</html>
`,
  );
  return file;
}

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

/** Opens a page in the browser of the user at this machine. @returns false if that is impossible; true does not guarantee that the browser shows it */
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

/** Finds programs as the system does, and starts the scripts of Windows so that no shell interprets their arguments. */
import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';
import { SvcError } from './errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Extensions that svcd can start on Windows. Files with other extensions of `PATHEXT` need a program that reads them. */
const STARTABLE: readonly string[] = ['.com', '.exe', '.bat', '.cmd', '.ps1'];
const DEFAULT_PATHEXT = '.COM;.EXE;.BAT;.CMD';

/**
 * A variable of an environment. Windows ignores the case of its name ("Path"), but a copy of `process.env` does not.
 * @param name in upper case
 */
export function variableOf(environment: Environment, name: string, platform: string): string | undefined {
  if (platform !== 'win32') return environment[name];
  const own = Object.keys(environment).find((one) => one.toUpperCase() === name);
  return own === undefined ? undefined : environment[own];
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The file names under which Windows knows a program. */
function windowsNames(name: string, environment: Environment): string[] {
  const listed = (variableOf(environment, 'PATHEXT', 'win32') || DEFAULT_PATHEXT).toLowerCase().split(';');
  const extensions = new Set([...listed.filter((one) => STARTABLE.includes(one)), '.ps1']);
  const whole = STARTABLE.includes(path.win32.extname(name).toLowerCase()) ? [name] : [];
  return [...whole, ...[...extensions].map((extension) => `${name}${extension}`)];
}

/**
 * The absolute path of a program, or null.
 * @param isThere whether a path is that of a program
 */
export function findProgram(
  name: string,
  environment: Environment,
  platform: string = process.platform,
  isThere: (file: string) => boolean = isProgram,
): string | null {
  const isWindows = platform === 'win32';
  const rules = isWindows ? path.win32 : path.posix;
  const isPath = (isWindows ? /[\\/:]/ : /\//).test(name);
  const listed = (variableOf(environment, 'PATH', platform) ?? '').split(rules.delimiter);
  // Windows allows quotes around a folder.
  const folders = isWindows ? listed.map((one) => one.replaceAll('"', '')) : listed;
  const places = isPath ? [''] : folders.filter((one) => rules.isAbsolute(one));
  const names = isWindows ? windowsNames(name, environment) : [name];
  const candidates = places.flatMap((place) => names.map((one) => rules.resolve(rules.join(place, one))));
  return candidates.find(isThere) ?? null;
}

/** A program for `spawn`. */
export interface Startable {
  readonly file: string;
  readonly args: readonly string[];
  /** The arguments are parts of the command line, with their quotes. Windows only. */
  readonly windowsVerbatimArguments?: boolean;
}

/** Characters that need no quotes in the arguments of a batch file. */
const BARE = /^[A-Za-z0-9#$*+\-./:?@\\_\u{a0}-\u{10ffff}]*$/u;

/**
 * An argument of a batch file. `cmd` expands variables even between quotes; `%cd:~,%` is an empty text that separates
 * the percent sign from the name that follows.
 */
function batchArgument(text: string): string {
  const escaped = text.replaceAll(/(\\*)"/g, '$1$1""').replaceAll('%', '%%cd:~,%');
  if (text !== '' && BARE.test(text) && !text.endsWith('\\')) return escaped;
  return `"${escaped.replace(/\\+$/, '$&$&')}"`;
}

function cmdOf(environment: Environment): string {
  return variableOf(environment, 'COMSPEC', 'win32') || 'cmd.exe';
}

/**
 * How to start a command. Windows starts `.exe` files only, so batch files and scripts get their interpreter.
 * @throws SvcError `invalid_request` for an argument that a batch file cannot receive
 */
export function startable(
  [file = '', ...args]: readonly string[],
  environment: Environment,
  platform: string = process.platform,
): Startable {
  const extension = platform === 'win32' ? path.win32.extname(file).toLowerCase() : '';
  if (extension === '.ps1')
    return { file: 'powershell.exe', args: ['-NoProfile', '-ExecutionPolicy', 'Bypass', '-File', file, ...args] };
  if (extension !== '.bat' && extension !== '.cmd') return { file, args };
  if (args.some((one) => /[\r\n]/.test(one)))
    throw new SvcError('invalid_request', {
      message: `${file} cannot receive an argument with a line break. Pass it in a file, or run the program behind the batch file.`,
    });
  const line = [`"${file}"`, ...args.map(batchArgument)].join(' ');
  return {
    file: cmdOf(environment),
    args: ['/e:ON', '/v:OFF', '/d', '/c', `"${line}"`],
    windowsVerbatimArguments: true,
  };
}

/** How to run a text of the owner in the shell of the system: `/bin/sh`, or `cmd` on Windows. */
export function shellCommand(text: string, environment: Environment, platform: string = process.platform): Startable {
  if (platform !== 'win32') return { file: '/bin/sh', args: ['-c', text] };
  return { file: cmdOf(environment), args: ['/d', '/s', '/c', `"${text}"`], windowsVerbatimArguments: true };
}

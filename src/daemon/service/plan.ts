/** The steps of a service command as data. A dry run prints them, a real run executes them. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { SERVICE_NAME } from '../../foundation/data-dir/paths.ts';
import { SvcError } from '../../foundation/errors.ts';

export type Step =
  | { readonly kind: 'write'; readonly file: string; readonly content: string | Uint8Array }
  | { readonly kind: 'remove'; readonly file: string }
  | { readonly kind: 'directory'; readonly directory: string }
  | {
      readonly kind: 'run';
      readonly command: readonly [string, ...string[]];
      /** Continue if the step fails: stopping a stopped service is not an error. */
      readonly mayFail?: boolean;
    };

/** The program that the service starts. All paths are absolute. */
export interface ServiceLaunch {
  readonly node: string;
  /** Path of `svcd`. In a single file, which is also Node, it is the word `svcd`. */
  readonly program: string;
  readonly dataDir: string;
  /** Other options of the daemon. */
  readonly options?: readonly string[];
}

/** Runs a program and requires success. */
export function run(...command: [string, ...string[]]): Step {
  return { kind: 'run', command };
}

/** Runs a program and ignores failures. */
export function runOptional(...command: [string, ...string[]]): Step {
  return { kind: 'run', command, mayFail: true };
}

/** The service on one operating system: a plan for every command. */
export interface ServiceManager {
  install(launch: ServiceLaunch): readonly Step[];
  readonly uninstall: readonly Step[];
  readonly start: readonly Step[];
  readonly stop: readonly Step[];
  readonly status: readonly Step[];
}

const CONTROL = /\p{Cc}/u;

/**
 * Checks a path for a service definition. Escaping is up to the caller.
 * @throws SvcError `config_invalid`
 */
export function checkedPath(name: string, value: string, rules: typeof path.posix, forbidden?: RegExp): string {
  if (!rules.isAbsolute(value)) throw new SvcError('config_invalid', { message: `${name} must be an absolute path.` });
  return checkedWord(name, value, forbidden);
}

function checkedWord(name: string, value: string, forbidden?: RegExp): string {
  if (CONTROL.test(value) || forbidden?.test(value) === true)
    throw new SvcError('config_invalid', {
      message: `${name} contains a character that is not allowed in a service definition: ${JSON.stringify(value)}.`,
    });
  return value;
}

/**
 * The command that the service manager runs: Node and its arguments.
 * @throws SvcError `config_invalid` as `checkedPath`
 */
export function launchWords(
  { node, program, dataDir, options = [] }: ServiceLaunch,
  rules: typeof path.posix,
  forbidden?: RegExp,
): [string, ...string[]] {
  return [
    checkedPath('The path of Node', node, rules, forbidden),
    program === SERVICE_NAME ? program : checkedPath('The path of svcd', program, rules, forbidden),
    'service',
    'run',
    '--data-dir',
    checkedPath('The data directory', dataDir, rules, forbidden),
    ...options.map((word) => checkedWord('An option', word, forbidden)),
  ];
}

/** A step as text that a user can follow. */
export function describe(step: Step): string {
  switch (step.kind) {
    case 'write':
      return `write ${step.file}:\n${asText(step.content).replaceAll('\r\n', '\n').replace(/^/gm, '    ').trimEnd()}\n`;
    case 'remove':
      return `remove ${step.file}\n`;
    case 'directory':
      return `create the directory ${step.directory}\n`;
    case 'run':
      return `run ${step.command.map(quoted).join(' ')}\n`;
  }
}

function asText(content: string | Uint8Array): string {
  return typeof content === 'string' ? content : new TextDecoder('utf-16le').decode(content);
}

function quoted(word: string): string {
  return /^[\w@%+=:,./\\-]+$/.test(word) ? word : JSON.stringify(word);
}

function runStep({ command, mayFail = false }: Extract<Step, { kind: 'run' }>): number {
  const [program, ...args] = command;
  const { status, error } = spawnSync(program, args, { stdio: 'inherit' });
  if (error !== undefined)
    throw new SvcError('not_found', { message: `Cannot run ${program}: ${error.message}.`, cause: error });
  const code = status ?? 1;
  if (code !== 0 && !mayFail)
    throw new SvcError('internal', { message: `"${command.join(' ')}" failed with ${code}.` });
  return code;
}

function fileStep(step: Exclude<Step, { kind: 'run' }>): void {
  const file = step.kind === 'directory' ? step.directory : step.file;
  try {
    if (step.kind === 'remove') rmSync(file, { force: true });
    else mkdirSync(step.kind === 'directory' ? file : path.dirname(file), { recursive: true, mode: 0o755 });
    if (step.kind === 'write') writeFileSync(file, step.content, { mode: 0o644 });
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new SvcError('not_writable', {
      message: `Cannot change ${file} (${reason}). A system service needs administrator rights; use --user for a user service.`,
      cause: error,
    });
  }
}

/**
 * Executes a plan.
 * @returns exit code of the last program, which `status` reports
 * @throws SvcError `not_writable` if a file cannot be written, `not_found` if a program is missing, `internal` if a
 *   program fails
 */
export function execute(steps: readonly Step[]): number {
  let code = 0;
  for (const step of steps) {
    if (step.kind === 'run') code = runStep(step);
    else fileStep(step);
  }
  return code;
}

/** Runs the real `svc` as a process with pipes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestDaemon } from './daemon.ts';

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `svc <args>` against a daemon. `input` is its standard input. */
export async function svc(daemon: TestDaemon | null, args: readonly string[], input = ''): Promise<CliResult> {
  const api = daemon === null ? {} : { SVC_API: daemon.api };
  const child = spawn(process.execPath, ['bin/svc', ...args], { env: { ...process.env, ...api } });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  child.stdin.end(input);
  const [code]: unknown[] = await once(child, 'close');
  return { code: typeof code === 'number' ? code : null, ...output };
}

/** Runs a command that must succeed. @returns its standard output without the last line break */
export async function svcOk(daemon: TestDaemon, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await svc(daemon, args);
  if (code !== 0) throw new Error(`svc ${args.join(' ')}: exit code ${code}\n${stderr}`);
  return stdout.replace(/\n$/, '');
}

/** Runs a command with --json that must succeed. @returns its parsed output */
export async function svcJson<T>(daemon: TestDaemon, ...args: readonly string[]): Promise<T> {
  return JSON.parse(await svcOk(daemon, '--json', ...args)) as T;
}

/** Runs the real `svc` as a process with pipes. */
import type { TestDaemon } from './daemon.ts';
import { type Output, run } from './programs.ts';

/** Runs `svc <args>` against a daemon. `input` is its standard input. */
export async function svc(daemon: TestDaemon | null, args: readonly string[], input = ''): Promise<Output> {
  const env = daemon === null ? {} : { SVC_API: daemon.api };
  return await run(process.execPath, ['bin/svc', ...args], { input, env });
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

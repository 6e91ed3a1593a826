/** Runs `svc` in the process of the test, without the start of a process. */
import { PassThrough, type Writable } from 'node:stream';
import { runCli } from '../../src/surfaces/cli/program.ts';
import type { Output } from './programs.ts';

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input. */
  readonly input?: string;
  /** All three standard streams are terminals. */
  readonly terminal?: boolean;
  readonly dataDir?: string;
  readonly version?: string;
  /** Replaces the default stdout, which accepts everything. */
  readonly stdout?: Writable;
  readonly stderr?: Writable;
}

/** Runs `svc <args>` to its end. */
export async function runSvc(args: readonly string[], options: RunOptions = {}): Promise<Output> {
  const { env = {}, input = '', terminal = false, dataDir = '/nonexistent', version = '0' } = options;
  const isTTY = terminal ? { isTTY: true as const } : {};
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()].map((stream) =>
    Object.assign(stream, isTTY),
  ) as [PassThrough, PassThrough, PassThrough];
  const output = { stdout: '', stderr: '' };
  stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  stdin.end(input);
  const streams = { stdin, stdout: options.stdout ?? stdout, stderr: options.stderr ?? stderr };
  const code = await runCli(args, { ...streams, env }, { version, dataDir });
  // The last output is read on a later turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  return { code, ...output };
}

/** Runs `svc` within the test's own process: as the real one, without the start of a process. */
import { PassThrough, type Writable } from 'node:stream';
import { runCli } from '../../src/surfaces/cli/program.ts';
import type { CliResult } from './cli.ts';

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Goes to standard input. */
  readonly input?: string;
  /** Stdout and stderr are terminals, and stdin too. */
  readonly terminal?: boolean;
  readonly dataDir?: string;
  readonly version?: string;
  /** In place of a stdout that takes everything. */
  readonly stdout?: Writable;
  readonly stderr?: Writable;
}

/** Runs `svc <args>` to its end. */
export async function runSvc(args: readonly string[], options: RunOptions = {}): Promise<CliResult> {
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
  // What was written last is read on a later turn.
  await new Promise((resolve) => setImmediate(resolve));
  return { code, ...output };
}

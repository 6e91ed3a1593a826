/** The `svc` command. */
import { Socket } from 'node:net';
import { defaultDataDir } from '../../foundation/data-dir/paths.ts';
import { SvcError } from '../../foundation/errors.ts';
import { VERSION } from '../../foundation/version.ts';
import { FileOutput } from './output.ts';
import { runCli } from './program.ts';
import { wasInterrupted } from './signals.ts';

/** Loopback names. */
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/** File descriptor of standard output. */
const STDOUT = 1;

const { stderr, env } = process;
// Node wraps terminals, pipes and sockets in sockets. Everything else is a file or a device.
const isFile = !(process.stdout instanceof Socket);
const stdout = isFile ? new FileOutput(STDOUT) : process.stdout;

// NODE_USE_ENV_PROXY is for other machines, not for the local daemon.
const { no_proxy: lower, NO_PROXY: upper } = env;
const direct = [lower ?? upper ?? '', ...LOOPBACK].filter((host) => host !== '').join(',');
Object.assign(env, { no_proxy: direct, NO_PROXY: direct });

/** The error is reported by the commands that need the directory. */
function dataDirOrError(): string | SvcError {
  try {
    return defaultDataDir();
  } catch (error) {
    if (error instanceof SvcError) return error;
    throw error;
  }
}

process.exitCode = await runCli(
  process.argv.slice(2),
  {
    // Most commands read no input, and creating the stream takes a tenth of their time.
    get stdin() {
      return process.stdin;
    },
    stdout,
    stderr,
    env,
  },
  { version: VERSION, dataDir: dataDirOrError() },
);
// Work that an interrupted command has abandoned, such as a request to the daemon, would keep the process running.
if (wasInterrupted()) process.exit();

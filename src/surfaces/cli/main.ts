/** The `svc` command. */
import { Socket } from 'node:net';
import { defaultDataDir } from '../../foundation/data-dir/paths.ts';
import { SvcError } from '../../foundation/errors.ts';
import { VERSION } from '../../foundation/version.ts';
import { FileOutput } from './output.ts';
import { runCli } from './program.ts';

/** Names of this machine. */
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/** Descriptor of standard output. */
const STDOUT = 1;

const { stderr, env } = process;
// Terminals, pipes and sockets are sockets to Node; everything else is a file or a device.
const isFile = !(process.stdout instanceof Socket);
const stdout = isFile ? new FileOutput(STDOUT) : process.stdout;

// A proxy of the environment (NODE_USE_ENV_PROXY) is for other machines, not for the daemon of this one.
const { no_proxy: lower, NO_PROXY: upper } = env;
const direct = [lower ?? upper ?? '', ...LOOPBACK].filter((host) => host !== '').join(',');
Object.assign(env, { no_proxy: direct, NO_PROXY: direct });

/** The commands that need it say what is wrong with it. */
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
    // Most commands read nothing, and making the stream takes a tenth of their time.
    get stdin() {
      return process.stdin;
    },
    stdout,
    stderr,
    env,
  },
  { version: VERSION, dataDir: dataDirOrError() },
);

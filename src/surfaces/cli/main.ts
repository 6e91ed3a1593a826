/** The `svc` command. */
import { defaultDataDir } from '../../foundation/data-dir/paths.ts';
import { SvcError } from '../../foundation/errors.ts';
import { VERSION } from '../../foundation/version.ts';
import { runCli } from './program.ts';

const { stdout, stderr, env } = process;
// A reader that has seen enough, such as `head`, closes the pipe: that is no failure.
stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
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

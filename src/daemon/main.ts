/** The `svcd` command: starts the daemon, and stops it cleanly on a signal. */
import { CommanderError } from 'commander';
import type { Supervisor } from '../capabilities/update/types.ts';
import { defaultDataDir } from '../foundation/data-dir/paths.ts';
import { detach } from '../foundation/detached.ts';
import { SvcError } from '../foundation/errors.ts';
import { ownScript } from '../foundation/package-file.ts';
import { VERSION } from '../foundation/version.ts';
import { safeText } from '../surfaces/cli/text.ts';
import { understoodWords } from '../surfaces/cli/words.ts';
import {
  type DaemonArguments,
  daemonOptions,
  daemonProgram,
  exitCodeOf,
  throwUsageErrors,
  withTwoDashes,
} from './args.ts';
import { handleUnhandledErrors, resetOnCrash } from './crash.ts';
import { Daemon } from './daemon.ts';
import { type ProcessControl, STOP_TIMEOUT_MS } from './life.ts';
import { onSupervisorStop, supervisorOf } from './service/managed.ts';
import { superviseDaemon } from './service/supervisor.ts';
import { onStopSignal } from './signals.ts';
import { startLines, svcCommand } from './start-lines.ts';

async function start(
  args: DaemonArguments,
  supervisor: Supervisor | null = null,
  stop?: ProcessControl['stop'],
): Promise<Daemon> {
  resetOnCrash(process);
  const daemon = await Daemon.start(args, process.env, supervisor, stop);
  handleUnhandledErrors(process, daemon.log);
  return daemon;
}

async function run(args: DaemonArguments): Promise<void> {
  if (args.mcpStdio !== undefined) {
    // The MCP SDK adds 100 ms to the start, so it is loaded only if needed.
    const { runMcpStdio } = await import('./mcp-stdio.ts');
    await runMcpStdio(args, process.env, () => start(args));
    process.exit(0);
  }
  if (args.supervise === true) {
    const program = ownScript();
    process.exit(await superviseDaemon(args.dataDir, program, daemonOptions(args)));
  }
  const supervisor = supervisorOf(process);
  const asked = Promise.withResolvers<string>();
  const stop = (reason: string): void => {
    setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
    asked.resolve(reason);
  };
  // Registered before the start, so that a signal during the start also stops it cleanly.
  onStopSignal(process, stop);
  if (supervisor !== null) onSupervisorStop(process, () => stop('supervisor'));
  const onTerminal = supervisor === null && process.stdout.isTTY && process.stderr.isTTY;
  const daemon = await start(onTerminal ? { ...args, onTerminal } : args, supervisor, stop);
  if (onTerminal) {
    const { api_addr: api } = daemon.addresses();
    const isDefault = args.dataDir === defaultDataDir();
    process.stdout.write(
      startLines({ api, dataDir: args.dataDir, svc: svcCommand(isDefault ? null : api), isNew: !daemon.hasAgents }),
    );
  }
  detach(
    asked.promise.then((reason) =>
      daemon.stop(reason).then(
        () => process.exit(0),
        () => process.exit(1),
      ),
    ),
  );
  // Reports the addresses to a supervisor with an IPC channel. The channel does not keep the process running, and a closed
  // channel is not an error.
  process.send?.({ type: 'ready', ...daemon.addresses() }, () => {});
  process.channel?.unref();
}

function fail(error: unknown): void {
  // Commander has already printed the error.
  if (error instanceof CommanderError) process.exit(exitCodeOf(error));
  const message = error instanceof Error ? error.message : 'unknown error';
  process.stderr.write(`svcd: ${safeText(message)}\n`);
  if (!(error instanceof SvcError) && error instanceof Error && error.stack !== undefined)
    process.stderr.write(`${safeText(error.stack)}\n`);
  process.exit(exitCodeOf(error));
}

const program = throwUsageErrors(daemonProgram(VERSION, defaultDataDir, run));
try {
  const { words } = understoodWords(program, withTwoDashes(process.argv.slice(2)));
  await program.parseAsync(words, { from: 'user' });
} catch (error) {
  fail(error);
}

/** The command line: global options, the commands, and how a failure ends. */
import { Command, CommanderError } from 'commander';
import { EXIT, SvcError } from '../../foundation/errors.ts';
import { inPlainWords, whatNext } from './advice.ts';
import { CommandGroup } from './command-group.ts';
import { partsFor } from './command-parts.ts';
import { completionCommands } from './commands/completion.ts';
import { CliContext, type ContextOf, type GlobalOptions, type Via } from './context.ts';
import { examples } from './examples.ts';
import type { CliIo } from './io.ts';
import { OutputWatch } from './output.ts';
import { PIPED_SECRETS } from './piped-secret.ts';
import { Unsuccessful } from './shown.ts';
import { safeJson, safeText } from './text.ts';
import { variableRemarks } from './variables.ts';
import { readVia } from './via.ts';

export interface ProgramOptions {
  readonly version: string;
  /** Where a daemon of this user keeps its data unless it was told otherwise; the error where there is no such place. */
  readonly dataDir: string | SvcError;
  /** Errors of usage are not written for people: `runCli` reports them as JSON. */
  readonly json?: boolean;
}

const EXIT_CODES =
  '\n\nExit codes: 0 success, 1 failed, 2 wrong usage, 3 daemon not reachable, 4 refused, 5 not found.\n';

const EXAMPLES = examples(
  'svc register --service-tcp 127.0.0.1:8080 --save-master master.key',
  'svc publish lang.translate --brief "Translates between 40 languages"',
  'svc search lang.translate',
  'svc get aid1… /health',
  'svc status --json',
);

/**
 * Builds the program; nothing runs yet.
 * @param args what stands behind `svc`: where it names a command, the others are left out
 */
export async function buildProgram(io: CliIo, options: ProgramOptions, args: readonly string[] = []): Promise<Command> {
  const program = new Command('svc');
  program
    .description('Drives the svcd daemon on this machine.')
    .option('--api <url>', 'where the daemon answers (SVC_API; default: the one of this user)')
    .option('--token <token>', 'API token (SVC_TOKEN keeps it out of the process list)')
    .option('--json', 'print JSON for machines')
    .option('--quiet', 'print only the one essential value')
    .option('--full', 'show AIDs and ids whole in lists; --json does it always')
    .option('--via <aid>', 'drive the node of this AID through the daemon here (see svc admin --help)')
    .option('--via-as <aid>', 'ask it as this agent; as the node here where it is left out')
    .option('--via-password', 'ask for its password (SVC_VIA_PASSWORD where nobody is there to ask)')
    .version(options.version, '-V, --version')
    .addHelpText('after', EXAMPLES + EXIT_CODES + PIPED_SECRETS)
    .addHelpText('afterAll', ({ command }) =>
      command === program ? '' : '\nOptions of every command, such as --json, --quiet and --api: svc --help',
    )
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void (options.json === true || io.stderr.write(text)),
      outputError: (text, write) => write(text.replace(/^error: /, 'svc: ')),
    })
    .exitOverride();
  let via: Via | undefined;
  const contextOf: ContextOf = (command) =>
    new CliContext(io, command.optsWithGlobals<GlobalOptions>(), options.dataDir, via);
  program.hook('preAction', async (_program, command) => {
    via = await readVia(contextOf(command), command.optsWithGlobals<GlobalOptions>());
  });
  const svc = new CommandGroup(program, contextOf, 'svc');
  for (const part of partsFor(args)) {
    program.commandsGroup(part.heading);
    await part.add(svc, options);
  }
  completionCommands(program, {
    print: (text) => void io.stdout.write(text),
    known: async (place) => {
      const { knownAt } = await import('./completion/known.ts');
      const { api, token } = place.given;
      const stated = { ...(api === undefined ? {} : { api }), ...(token === undefined ? {} : { token }) };
      return knownAt(place, new CliContext(io, stated, options.dataDir));
    },
  });
  pointToHelp(program, 'svc');
  return program.helpCommand('help [command]', 'show the help of a command');
}

/** Lets each command name its own help where it is used wrongly. */
function pointToHelp(command: Command, path: string): void {
  command.showHelpAfterError(`(see ${path} --help)`);
  for (const one of command.commands) pointToHelp(one, `${path} ${one.name()}`);
}

/** Commands that are not of `svc` but of the daemon. */
const DAEMON_COMMANDS: ReadonlySet<string> = new Set(['service', 'start', 'run']);

/** What helps beside what the parser has said. */
function usageRemark(io: CliIo, { code }: CommanderError, args: readonly string[]): void {
  const command = args.find((arg) => !arg.startsWith('-')) ?? '';
  if (code !== 'commander.unknownCommand' || !DAEMON_COMMANDS.has(command)) return;
  const meant = command === 'start' || command === 'run' ? 'svcd' : `svcd ${command}`;
  io.stderr.write(`That is a command of the daemon: ${meant}\n`);
}

/** Wrong usage as an error of ours. */
function usageError({ code, message }: CommanderError): SvcError {
  return new SvcError('invalid_request', {
    message: code === 'commander.help' ? 'A command is missing: see --help.' : message.replace(/^error: /, ''),
  });
}

function report(io: CliIo, error: SvcError, json: boolean): void {
  const { code, message, details = {} } = error;
  if (json) return void io.stderr.write(`${safeJson({ error: code, message, details })}\n`);
  io.stderr.write(`svc: ${safeText(inPlainWords(error))}\n`);
  const next = whatNext(error);
  if (next !== undefined) io.stderr.write(`     ${next}\n`);
}

/**
 * Runs a command line and waits until its output is written.
 * @param args what stands behind `svc`
 * @returns the exit code
 */
export async function runCli(args: readonly string[], io: CliIo, options: ProgramOptions): Promise<number> {
  const output = new OutputWatch(io);
  const code = await runCommand(args, output.io, options, output);
  const failure = await output.failure();
  if (failure === undefined || code !== 0) return code;
  report(io, failure, args.includes('--json'));
  return failure.exit;
}

async function runCommand(
  args: readonly string[],
  io: CliIo,
  options: ProgramOptions,
  output: OutputWatch,
): Promise<number> {
  const json = args.includes('--json');
  if (!json && !args.includes('--quiet')) for (const remark of variableRemarks(io)) io.stderr.write(`${remark}\n`);
  try {
    const program = await buildProgram(io, { ...options, json }, args);
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      if (json) report(io, usageError(error), json);
      else usageRemark(io, error, args);
      return EXIT.usage;
    }
    if (error instanceof Unsuccessful) {
      if (!json && error.message !== '') io.stderr.write(`svc: ${safeText(error.message)}\n`);
      return error.exit;
    }
    // Without an output the command was told to end.
    if (error instanceof SvcError && error.code === 'cancelled' && output.isGone) return 0;
    if (error instanceof SvcError) {
      report(io, error, json);
      return error.exit;
    }
    // Answers are not validated one by one: another version, or another server, may lack what a command shows.
    if (error instanceof TypeError) {
      const message = `What answers there is not svcd, or another version of it: its answer cannot be shown (${error.message}).`;
      report(io, new SvcError('daemon_unreachable', { message, cause: error }), json);
      return EXIT.unreachable;
    }
    io.stderr.write(`svc: ${error instanceof Error ? safeText(error.message) : 'unknown failure'}\n`);
    return EXIT.failed;
  }
}

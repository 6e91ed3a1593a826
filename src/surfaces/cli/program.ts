/** The command line: global options, the commands, and error handling. */
import { Command, CommanderError, Option } from 'commander';
import { closestWord } from '../../foundation/closest-word.ts';
import { CLIENT_VARIABLES, clientEnvironment, PROGRAM_VARIABLES } from '../../foundation/environment.ts';
import { EXIT, SvcError } from '../../foundation/errors.ts';
import { VIA_HEADERS } from '../../operations/via-headers.ts';
import { commandFilesFor } from './command-files.ts';
import { CommandGroup, exampleHelp } from './command-group.ts';
import { completionCommands } from './commands/completion.ts';
import { CliContext, type ContextOf, type GlobalOptions, PIPED_SECRETS, type Via } from './context.ts';
import { explainError, nextStepHint } from './error-hints.ts';
import type { CliIo } from './input.ts';
import { AS_OPTION } from './options.ts';
import { CommandFailure, OutputWatch } from './output.ts';
import { commandWord, safeJson, safeText } from './text.ts';
import { SILENT_ALIASES, understoodWords } from './words.ts';

// `--via`: sends commands to a remote node through the local daemon.

/**
 * The password to present, from the prompt, the environment, or standard input.
 * @throws SvcError `invalid_request` if a password was requested and is empty
 */
async function readPassword(local: CliContext, via: string, ask: boolean): Promise<string | undefined> {
  const { env, stdin } = local.io;
  const kept = env['SVC_VIA_PASSWORD'] || undefined;
  if (!ask || (stdin.isTTY !== true && kept !== undefined)) return kept;
  const typed = await local.readSecret(`password of ${via}: `);
  if (typed !== '') return typed;
  const message = 'The password is empty. Type it, pipe it, or set SVC_VIA_PASSWORD.';
  throw new SvcError('invalid_request', { message });
}

/**
 * The target of a command. Undefined for the local daemon.
 * @param local the context of the local daemon, whose address book has the labels
 * @param acts the command acts for an agent of the target, so `--as` does not name the local agent that asks
 */
export async function readVia(local: CliContext, options: GlobalOptions, acts = false): Promise<Via | undefined> {
  const { via, viaAs, viaPassword, as } = options;
  if (via === undefined) return undefined;
  const aid = await local.aid(via);
  const asking = viaAs ?? (acts ? undefined : as) ?? local.inUse?.aid;
  const password = await readPassword(local, via, viaPassword === true);
  return {
    aid,
    headers: {
      ...(password === undefined ? {} : { [VIA_HEADERS.accessToken]: password }),
      ...(asking === undefined ? {} : { [VIA_HEADERS.localAid]: await local.aid(asking) }),
    },
  };
}

/** The option that names the acting agent. */
const AS_LONG = '--as';

// Environment variables of `svc`, and hints about mistyped ones.

const KNOWN_VARIABLES: ReadonlySet<string> = new Set([...CLIENT_VARIABLES, ...PROGRAM_VARIABLES]);

/** A hint for each variable that is probably mistyped. */
function variableHints({ env }: CliIo): string[] {
  const strange = Object.keys(env).filter((name) => name.startsWith('SVC_') && !KNOWN_VARIABLES.has(name));
  return strange.flatMap((name) => {
    const meant = closestWord(name, CLIENT_VARIABLES);
    return meant === undefined ? [] : [`svc: ${name} is unknown. Did you mean ${meant}?`];
  });
}

export interface ProgramOptions {
  readonly version: string;
  /** Default data directory of this user's daemon, or the error if there is none. */
  readonly dataDir: string | SvcError;
  /** Usage errors are not printed for people: `runCli` reports them as JSON. */
  readonly json?: boolean;
}

const EXIT_CODES =
  '\n\nExit codes: 0 success, 1 failure, 2 wrong usage, 3 daemon not reachable, 4 refused, 5 not found.\n';

const EXAMPLES = exampleHelp(
  'svc register --service-tcp 127.0.0.1:8080 --save-master master.key',
  'svc publish lang.translate --brief "Translates between 40 languages"',
  'svc search lang.translate',
  'svc get aid1… /health',
  'svc status --json',
);

/**
 * Builds the program without running anything.
 * @param args the words after `svc`; if they name a command, only that command is loaded
 */
export async function buildProgram(io: CliIo, options: ProgramOptions, args: readonly string[] = []): Promise<Command> {
  const program = new Command('svc');
  program
    .description('Controls the svcd daemon on this machine.')
    .option('--api <url>', 'address of the daemon (SVC_API; default: the daemon of SVCD_DATA_DIR, or of this user)')
    .option('--token <token>', 'API token (SVC_TOKEN keeps it out of the process list)')
    .option('--send-token', 'send the API token even if the daemon does not prove that it knows it')
    .option('--json', 'print JSON')
    .option('--quiet', 'print only the essential value')
    .option('--full', 'show complete AIDs and IDs in lists; --json always does')
    .option(AS_OPTION, 'the local agent that acts, by AID or label; default: the agent of "svc use"')
    .option('--via <aid>', 'administer the node with this AID through the local daemon (see svc admin --help)')
    .addOption(new Option('--via-as <aid>', 'with --via, the local agent that sends the requests').hideHelp())
    .option('--via-password', 'with --via, prompt for the password of the node (or set SVC_VIA_PASSWORD)')
    .version(options.version, '-V, --version')
    .addHelpText('after', EXAMPLES + EXIT_CODES + PIPED_SECRETS)
    .addHelpText('afterAll', ({ command }) =>
      command === program ? '' : '\nGlobal options, such as --json, --quiet and --api: svc --help',
    )
    .configureHelp(SILENT_ALIASES)
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
    const acts = command.options.some(({ long }) => long === AS_LONG);
    via = await readVia(contextOf(command), command.optsWithGlobals<GlobalOptions>(), acts);
  });
  const svc = new CommandGroup(program, contextOf, 'svc');
  for (const part of commandFilesFor(args)) {
    program.commandsGroup(part.heading);
    await part.add(svc, options);
  }
  completionCommands(program, {
    print: (text) => void io.stdout.write(text),
    known: async (place) => {
      const { daemonCandidates: knownAt } = await import('./completion/daemon-candidates.ts');
      const { api, token } = place.given;
      const stated = { ...(api === undefined ? {} : { api }), ...(token === undefined ? {} : { token }) };
      return knownAt(place, new CliContext(io, stated, options.dataDir));
    },
  });
  pointToHelp(program, 'svc');
  return program.helpCommand('help [command]', 'show the help of a command');
}

/** Makes usage errors of each command point to its own help. */
function pointToHelp(command: Command, path: string): void {
  command.showHelpAfterError(`(see ${path} --help)`);
  for (const one of command.commands) pointToHelp(one, `${path} ${one.name()}`);
}

/** A hint in addition to the message of the parser. */
function usageRemark(io: CliIo, { code, message }: CommanderError): void {
  if (code === 'commander.unknownOption' && message.includes("'--data-dir"))
    io.stderr.write('To use the daemon of a data directory: SVCD_DATA_DIR=<dir> svc …\n');
}

/** Converts a usage error to a SvcError. */
function usageError({ code, message }: CommanderError): SvcError {
  return new SvcError('invalid_request', {
    message: code === 'commander.help' ? 'Missing command. See --help.' : message.replace(/^error: /, ''),
  });
}

function report(io: CliIo, error: SvcError, json: boolean, args: readonly string[] = []): void {
  const { code, message, details = {} } = error;
  if (json) return void io.stderr.write(`${safeJson({ error: code, message, details })}\n`);
  io.stderr.write(`svc: ${safeText(explainError(error))}\n`);
  const next = nextStepHint(error, args);
  if (next !== undefined) io.stderr.write(`     ${next}\n`);
}

/**
 * Runs a command line and waits until its output is written.
 * @param args the words after `svc`
 * @returns the exit code
 */
export async function runCli(args: readonly string[], io: CliIo, options: ProgramOptions): Promise<number> {
  const output = new OutputWatch(io);
  const code = await runCommand(args, io, options, output);
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
  if (!json && !args.includes('--quiet')) for (const remark of variableHints(io)) io.stderr.write(`${remark}\n`);
  try {
    const program = await buildProgram(output.ioWith(clientEnvironment(io.env)), { ...options, json }, args);
    const { words, isReordered } = understoodWords(program, args);
    if (isReordered && !json && !args.includes('--quiet'))
      io.stderr.write(`svc: The arguments are in another order. Read as: svc ${words.map(commandWord).join(' ')}\n`);
    await program.parseAsync(words, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      if (json) report(io, usageError(error), json);
      else usageRemark(io, error);
      return EXIT.usage;
    }
    if (error instanceof CommandFailure) {
      if (!json && error.message !== '') io.stderr.write(`svc: ${safeText(error.message)}\n`);
      return error.exit;
    }
    // A closed output stopped the command.
    if (error instanceof SvcError && error.code === 'cancelled' && output.isGone) return 0;
    if (error instanceof SvcError) {
      report(io, error, json, args);
      return error.exit;
    }
    // Responses are not validated: another version or another server may omit what a command shows.
    if (error instanceof TypeError) {
      const message = `The server is not svcd, or has another version: its response cannot be shown (${error.message}).`;
      report(io, new SvcError('daemon_unreachable', { message, cause: error }), json);
      return EXIT.unreachable;
    }
    const message = error instanceof Error ? error.message : 'unknown failure';
    report(io, new SvcError('internal', { message, cause: error }), json);
    return EXIT.failed;
  }
}

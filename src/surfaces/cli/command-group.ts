/**
 * Commands as data: arguments, the operation to call, and output formats. This file does once
 * what all commands have in common: find the acting agent, resolve labels, show progress, and print the response in the
 * requested format.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import { SvcError } from '../../foundation/errors.ts';
import type { Inputs, OperationName } from './client.ts';
import type { CliContext, ContextOf } from './context.ts';
import { promptYes } from './input.ts';
import { type AnyCallSpec, type CallSpec, operationCommand } from './operation-command.ts';
import {
  ACTING_AGENT,
  actingArgument,
  acts,
  addOptions,
  type CommandOptions,
  type ParsedOptions,
  parseOptions,
  seconds,
} from './options.ts';
import { type OutputFormats, render, show } from './output.ts';
import { safeText } from './text.ts';
import { showsList } from './words.ts';

// Examples at the end of a command's help. A test parses each example.

/** Sample arguments by name. All others are AIDs. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  delivery: '7',
  entry: '4be1…',
  group: '9f2c…',
  id: '3',
  label: 'bob',
  object: '9f2c…',
  service: 'lang.translate',
};

/**
 * The text for `addHelpText('after', …)`.
 * @param lines command lines; a comment may follow after `#`
 */
export function exampleHelp(...lines: readonly string[]): string {
  return `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}

/** A command line with only the required arguments. @param path the words before the command's name */
function sampleCommandLine(command: Command, path: string): string {
  const needed = command.registeredArguments.filter(({ required }) => required);
  return [path, command.name(), ...needed.map((one) => ARGUMENTS[one.name()] ?? 'aid1…')].join(' ');
}

// Refreshes a response until interrupted: `--watch`.

/** Default refresh interval, milliseconds. */
const EVERY_MS = 2000;

/** Moves the cursor to the top left and clears the screen. */
const CLEAR = '\u001b[H\u001b[2J';

const WATCH_OPTIONS = {
  '--watch': 'refresh until interrupted',
  '--every <seconds>': seconds(`refresh interval with --watch; default ${EVERY_MS / 1000}`, {
    minMs: 100,
    maxMs: 3_600_000,
  }),
} as const;

/**
 * Refreshes until the command is interrupted. A terminal shows the latest response, a pipe receives each change. Waits
 * for a daemon that goes away.
 * @throws errors of the first request, and later ones unless the daemon is unreachable
 */
async function refreshUntilInterrupted(
  context: CliContext,
  look: () => Promise<string | Uint8Array>,
  everyMs: number = EVERY_MS,
): Promise<void> {
  const { stdout, signal } = context.io;
  const isOver = (): boolean => signal?.aborted === true;
  let before: string | undefined;
  while (!isOver()) {
    const text = await look().catch((error: unknown) => {
      if (before === undefined || !(error instanceof SvcError) || error.code !== 'daemon_unreachable') throw error;
      return `${error.message} Retrying.\n`;
    });
    if (stdout.isTTY === true) stdout.write(`${CLEAR}${String(text)}`);
    else if (String(text) !== before) stdout.write(text);
    before = String(text);
    await pause(everyMs, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
}

// Confirmation of destructive commands.

export interface Confirmation {
  /** The question, such as `Delete the agent …?`. */
  readonly question: string;
  /** How to restore what is destroyed, or that it cannot be restored. */
  readonly consequence: string;
  /** Without a terminal, the command does not need the confirmation: scripts use it. */
  readonly onlyAtTerminal?: true;
}

/** The option that answers yes. */
const YES_OPTION = { '-y, --yes': 'do not ask' } as const;

/**
 * Waits until the user agrees.
 * @throws SvcError `invalid_request` without a terminal, `cancelled` if the answer is no
 */
export async function confirmOrThrow(context: CliContext, confirmation: Confirmation): Promise<void> {
  const { question, consequence: back, onlyAtTerminal } = confirmation;
  if (!context.interactive && onlyAtTerminal) return;
  if (!context.interactive)
    throw new SvcError('invalid_request', {
      message: `Nothing was done: this needs a confirmation, and there is no terminal to ask. ${back} Use -y to confirm.`,
    });
  context.info(back);
  if (!(await promptYes(context.io, safeText(question))))
    throw new SvcError('cancelled', { message: 'Nothing was done.' });
}

/** Aliases of `rm` in scripts. */
export const REMOVING: readonly string[] = ['del', 'remove', 'forget', 'close', 'withdraw', 'end'];

const LISTING: readonly string[] = ['list', 'ls'];

/** Aliases of commands that scripts and users of other programs type. The help omits them. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  list: ['ls'],
  rm: REMOVING,
  get: ['show'],
  show: LISTING,
  status: LISTING,
  send: ['post'],
  contacts: LISTING,
  sessions: LISTING,
  requests: LISTING,
};

interface CommandTexts {
  /** Example command lines. Without them: the command with sample arguments. */
  readonly examples?: readonly string[];
  /** Progress text, such as `Publishing`. */
  readonly progress?: string;
}

interface CommandSpec<T> extends CommandTexts {
  /** Options, and arguments that need a description. */
  readonly options?: T;
}

interface Destructive<W> {
  /** Parsed values that the command sets itself. */
  readonly sets?: object;
  /**
   * The destructive effect. The user must confirm it first, with `-y` if there is no terminal.
   * @throws SvcError if there is nothing to destroy
   */
  confirmation?(typed: W, context: CliContext): Confirmation | Promise<Confirmation>;
}

/** A command that needs more than one call. */
interface CommandWork<A, W> {
  /** The result is shown unless it is undefined. */
  run(context: CliContext, typed: W): Promise<A | undefined>;
}

type Values = Readonly<Record<string, unknown>>;
type Work = (context: CliContext, typed: Values) => Promise<unknown>;

/** A command with subcommands, such as `svc tunnel` and `svc` itself. `G` holds the options that all of them share. */
export class CommandGroup<G = unknown> {
  readonly #command: Command;
  readonly #contextOf: ContextOf;
  readonly #path: string;
  readonly #takes: CommandOptions;

  /** @param path the words that lead to it, such as `svc tunnel` */
  constructor(command: Command, contextOf: ContextOf, path: string, takes: CommandOptions = {}) {
    this.#command = command;
    this.#contextOf = contextOf;
    this.#path = path;
    this.#takes = takes;
  }

  /**
   * The same group, whose further commands act for a local agent.
   * @param argument the usage of a first argument that also names it, with its description
   */
  acting(argument?: '<aid>' | '<agent>' | '<local>', about = 'the local agent'): CommandGroup<typeof ACTING_AGENT> {
    const takes = argument === undefined ? ACTING_AGENT : { [argument]: { ...actingArgument(about), member: 'aid' } };
    return new CommandGroup(this.#command, this.#contextOf, this.#path, takes);
  }

  /** Adds a command group. @param itself what it does without a subcommand; by default it shows its help */
  group<A, const T extends CommandOptions>(
    name: string,
    about: string,
    lines: readonly string[],
    itself?: CommandSpec<T> & CommandWork<A, ParsedOptions<'', T>> & OutputFormats<A, ParsedOptions<'', T>>,
  ): CommandGroup;
  group(
    name: string,
    about: string,
    lines: readonly string[],
    itself?: CommandSpec<CommandOptions> & CommandWork<unknown, Values> & OutputFormats<unknown, Values>,
  ): CommandGroup {
    const command = this.#command.command(name).description(about);
    command.addHelpText('after', exampleHelp(...lines));
    if (itself !== undefined) showsList(command);
    if (itself !== undefined)
      this.#act(command, itself.options ?? {}, itself, (context, typed) => itself.run(context, typed));
    return new CommandGroup(command, this.#contextOf, `${this.#path} ${name}`);
  }

  /**
   * Adds a command that calls one operation. Its arguments and options are members of the input of the operation.
   * @param usage command word, arguments, then options, such as `read <group> --after <seq>`: see `operationCommand`
   */
  call<N extends OperationName>(
    operation: N,
    usage: string,
    about: string,
    spec: CallSpec<N> & CommandTexts & Destructive<Inputs[N]>,
  ): void;
  call(
    operation: OperationName,
    usage: string,
    about: string,
    spec: AnyCallSpec & CommandTexts & Destructive<Values>,
  ): void {
    const { name, command } = operationCommand(operation, usage, spec, acts(this.#takes));
    this.#add(name, about, command, (context, typed) => {
      const answer = context.progress(spec.progress, context.call(operation, typed));
      return spec.own === true ? context.withLocalAgentHint(answer) : answer;
    });
  }

  /**
   * Adds a command that needs more than one call.
   * @param usage name and arguments, such as `send <group> [text]`
   */
  run<const U extends string, const T extends CommandOptions, A>(
    usage: U,
    about: string,
    spec: CommandSpec<T> &
      Destructive<ParsedOptions<U, G & T>> &
      CommandWork<A, ParsedOptions<U, G & T>> &
      OutputFormats<A, ParsedOptions<U, G & T>>,
  ): void;
  run(
    usage: string,
    about: string,
    spec: CommandSpec<CommandOptions> &
      Destructive<Values> &
      CommandWork<unknown, Values> &
      OutputFormats<unknown, Values>,
  ): void {
    this.#add(usage, about, spec, (context, typed) => context.progress(spec.progress, spec.run(context, typed)));
  }

  #add(
    usage: string,
    about: string,
    spec: CommandSpec<CommandOptions> & Destructive<Values> & OutputFormats<unknown, Values>,
    work: Work,
  ): void {
    const command = this.#command.command(usage).description(about);
    if (this.#command.parent !== null) command.aliases(OTHER_NAMES[command.name()] ?? []);
    this.#act(
      command,
      { ...this.#takes, ...spec.options, ...(spec.confirmation === undefined ? {} : YES_OPTION) },
      spec,
      work,
    );
    command.addHelpText('after', exampleHelp(...(spec.examples ?? [sampleCommandLine(command, this.#path)])));
  }

  #act(
    command: Command,
    takes: CommandOptions,
    shown: Destructive<Values> & OutputFormats<unknown, Values>,
    work: Work,
  ): void {
    if (shown.watch === true) showsList(command);
    addOptions(command, shown.watch === true ? { ...takes, ...WATCH_OPTIONS } : takes);
    command.action(async () => {
      const context = this.#contextOf(command);
      const { as, via } = context.options;
      // With --via it names the agent that sends the requests.
      if (as !== undefined && via === undefined && !acts(takes))
        throw new SvcError('invalid_request', { message: 'No agent acts in this command. Omit --as.' });
      const { yes, ...rest } = { ...(await parseOptions(command, takes, context)), ...shown.sets };
      // `-y` agrees in advance.
      const loss = yes === true ? undefined : await shown.confirmation?.(rest, context);
      if (loss !== undefined) await confirmOrThrow(context, loss);
      const typed = shown.confirmation === undefined && yes !== undefined ? { ...rest, yes } : rest;
      // A group that lists passes these options on to its list command.
      const { watch, every } = command.optsWithGlobals<{ watch?: true; every?: number }>();
      if (shown.watch === true && watch === true)
        return refreshUntilInterrupted(
          context,
          async () => render(context, await work(context, typed), typed, shown),
          every,
        );
      const answer = await work(context, typed);
      if (answer !== undefined) await show(context, answer, typed, shown);
    });
  }
}

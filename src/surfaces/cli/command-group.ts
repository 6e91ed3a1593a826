/**
 * Commands as data: arguments, the operation to call, and output formats. This file does once
 * what all commands have in common: find the acting agent, resolve labels, show progress, and print the response in the
 * requested format.
 */
import type { Command } from 'commander';
import type { AnswerOf, Inputs, OperationName } from './client.ts';
import { type Confirmation, confirmOrThrow, YES_OPTION } from './confirmation.ts';
import type { CliContext, ContextOf } from './context.ts';
import { exampleHelp, sampleCommandLine } from './examples.ts';
import { ACTING_AGENT, addOptions, type CommandOptions, type ParsedOptions, parseOptions } from './options.ts';
import { type OutputFormats, render, show } from './output-formats.ts';
import { refreshUntilInterrupted, WATCH_OPTIONS } from './watch.ts';

/** Aliases of commands that users of other programs type. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  list: ['ls'],
  del: ['rm'],
  get: ['show'],
  close: ['rm'],
  forget: ['rm'],
  status: ['list', 'ls'],
  send: ['post'],
  contacts: ['list', 'ls'],
};

interface CommandSpec<T> {
  /** Example command lines. Without them: the command with sample arguments. */
  readonly examples?: readonly string[];
  /** Options, and arguments that need a description. */
  readonly options?: T;
  /** Progress text, such as `Publishing`. */
  readonly progress?: string;
}

interface Destructive<W> {
  /** The destructive effect. The user must confirm it first, with `-y` if there is no terminal. */
  confirmation?(typed: W): Confirmation;
}

interface InputBuilder<W, I> {
  /** Builds the input of the operation. It may contain labels in place of AIDs. */
  input(typed: W, context: CliContext): I | Promise<I>;
}

/** The parsed arguments need no conversion if they are the input. */
type Input<W, I> = [W, keyof W] extends [I, keyof I] ? Partial<InputBuilder<W, I>> : InputBuilder<W, I>;

interface OperationCall<N> {
  readonly operation: N;
  /** The agent must be registered here. If it is not, the error names the command that lists the agents. */
  readonly own?: true;
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

  /** The same group, whose further commands act for a local agent. */
  acting(): CommandGroup<typeof ACTING_AGENT> {
    return new CommandGroup(this.#command, this.#contextOf, this.#path, ACTING_AGENT);
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
    if (itself !== undefined)
      this.#act(command, itself.options ?? {}, itself, (context, typed) => itself.run(context, typed));
    return new CommandGroup(command, this.#contextOf, `${this.#path} ${name}`);
  }

  /**
   * Adds a command that calls one operation.
   * @param usage name and arguments, such as `send <group> [text]`
   */
  call<const U extends string, const T extends CommandOptions, N extends OperationName>(
    usage: U,
    about: string,
    said: CommandSpec<T> &
      OperationCall<N> &
      Destructive<ParsedOptions<U, G & T>> &
      Input<ParsedOptions<U, G & T>, Inputs[N]> &
      OutputFormats<AnswerOf<N>, ParsedOptions<U, G & T>>,
  ): void;
  call(
    usage: string,
    about: string,
    said: CommandSpec<CommandOptions> &
      OperationCall<OperationName> &
      Destructive<Values> &
      Partial<InputBuilder<Values, Values>> &
      OutputFormats<unknown, Values>,
  ): void {
    this.#add(usage, about, said, async (context, typed) => {
      const input = said.input === undefined ? typed : await said.input(typed, context);
      const answer = context.progress(said.progress, context.call(said.operation, input));
      return said.own === true ? context.withLocalAgentHint(answer) : answer;
    });
  }

  /**
   * Adds a command that needs more than one call.
   * @param usage as for `call`
   */
  run<const U extends string, const T extends CommandOptions, A>(
    usage: U,
    about: string,
    said: CommandSpec<T> &
      Destructive<ParsedOptions<U, G & T>> &
      CommandWork<A, ParsedOptions<U, G & T>> &
      OutputFormats<A, ParsedOptions<U, G & T>>,
  ): void;
  run(
    usage: string,
    about: string,
    said: CommandSpec<CommandOptions> &
      Destructive<Values> &
      CommandWork<unknown, Values> &
      OutputFormats<unknown, Values>,
  ): void {
    this.#add(usage, about, said, (context, typed) => context.progress(said.progress, said.run(context, typed)));
  }

  #add(
    usage: string,
    about: string,
    said: CommandSpec<CommandOptions> & Destructive<Values> & OutputFormats<unknown, Values>,
    work: Work,
  ): void {
    const command = this.#command.command(usage).description(about);
    if (this.#command.parent !== null) command.aliases(OTHER_NAMES[command.name()] ?? []);
    this.#act(
      command,
      { ...this.#takes, ...said.options, ...(said.confirmation === undefined ? {} : YES_OPTION) },
      said,
      work,
    );
    command.addHelpText('after', exampleHelp(...(said.examples ?? [sampleCommandLine(command, this.#path)])));
  }

  #act(
    command: Command,
    takes: CommandOptions,
    shown: Destructive<Values> & OutputFormats<unknown, Values>,
    work: Work,
  ): void {
    addOptions(command, shown.watch === true ? { ...takes, ...WATCH_OPTIONS } : takes);
    command.action(async () => {
      const context = this.#contextOf(command);
      const { yes, ...rest } = await parseOptions(command, takes, context);
      const loss = shown.confirmation?.(rest);
      if (loss !== undefined) await confirmOrThrow(context, loss, yes === true);
      const typed = loss === undefined && yes !== undefined ? { ...rest, yes } : rest;
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

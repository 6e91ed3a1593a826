/**
 * Commands said as data: what is typed and what it means, the operation that is called, and how its
 * answer is shown. What all commands do alike happens here, once: the agent that acts is found,
 * labels become AIDs, waiting is shown, and the answer printed in the form that was asked for.
 */
import type { Command } from 'commander';
import type { AnswerOf, Inputs, OperationName } from './client.ts';
import type { CliContext, ContextOf } from './context.ts';
import { exampleOf, examples } from './examples.ts';
import { agree, type Loss, YES } from './loss.ts';
import { printed, type Shown, show } from './shown.ts';
import { ACTING, addTakes, type Takes, type Typed, typedFor } from './takes.ts';
import { WATCH, watched } from './watch.ts';

/** Names of commands in groups that people type who know them from elsewhere. */
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

interface Said<T> {
  /** Command lines; its name with arguments that could stand there where they are left out. */
  readonly examples?: readonly string[];
  /** Options, and arguments of which more is to be said. */
  readonly takes?: T;
  /** What goes on while a person waits: `Publishing`. */
  readonly progress?: string;
}

interface Losing<W> {
  /** What is lost for good: somebody has to agree to it first, with `-y` where nobody can be asked. */
  loses?(typed: W): Loss;
}

interface Making<W, I> {
  /** The input of the operation; labels may stand for AIDs in it. */
  input(typed: W, context: CliContext): I | Promise<I>;
}

/** Where what is typed is the input as it stands, nothing is to be said of it. */
type Input<W, I> = [W, keyof W] extends [I, keyof I] ? Partial<Making<W, I>> : Making<W, I>;

interface Calling<N> {
  readonly operation: N;
  /** The agent has to be registered here: where it is not, the error says how to find those that are. */
  readonly own?: true;
}

/** Work that is more than one call. */
interface Working<A, W> {
  /** What it gives is shown, unless it is undefined. */
  run(context: CliContext, typed: W): Promise<A | undefined>;
}

type Values = Readonly<Record<string, unknown>>;
type Work = (context: CliContext, typed: Values) => Promise<unknown>;

/** A command that others stand below: `svc tunnel`, and `svc` itself. `G` is what all of those take. */
export class CommandGroup<G = unknown> {
  readonly #command: Command;
  readonly #contextOf: ContextOf;
  readonly #path: string;
  readonly #takes: Takes;

  /** @param path what is typed to come to it: `svc tunnel` */
  constructor(command: Command, contextOf: ContextOf, path: string, takes: Takes = {}) {
    this.#command = command;
    this.#contextOf = contextOf;
    this.#path = path;
    this.#takes = takes;
  }

  /** The same group; the commands that are added by it act for a local agent. */
  acting(): CommandGroup<typeof ACTING> {
    return new CommandGroup(this.#command, this.#contextOf, this.#path, ACTING);
  }

  /** Adds a group of commands. @param itself what it does where none of them follows; left out: it shows its help */
  group<A, const T extends Takes>(
    name: string,
    about: string,
    lines: readonly string[],
    itself?: Said<T> & Working<A, Typed<'', T>> & Shown<A, Typed<'', T>>,
  ): CommandGroup;
  group(
    name: string,
    about: string,
    lines: readonly string[],
    itself?: Said<Takes> & Working<unknown, Values> & Shown<unknown, Values>,
  ): CommandGroup {
    const command = this.#command.command(name).description(about);
    command.addHelpText('after', examples(...lines));
    if (itself !== undefined)
      this.#act(command, itself.takes ?? {}, itself, (context, typed) => itself.run(context, typed));
    return new CommandGroup(command, this.#contextOf, `${this.#path} ${name}`);
  }

  /**
   * Adds a command that calls one operation.
   * @param usage name and arguments, as they are typed: `send <group> [text]`
   */
  call<const U extends string, const T extends Takes, N extends OperationName>(
    usage: U,
    about: string,
    said: Said<T> &
      Calling<N> &
      Losing<Typed<U, G & T>> &
      Input<Typed<U, G & T>, Inputs[N]> &
      Shown<AnswerOf<N>, Typed<U, G & T>>,
  ): void;
  call(
    usage: string,
    about: string,
    said: Said<Takes> &
      Calling<OperationName> &
      Losing<Values> &
      Partial<Making<Values, Values>> &
      Shown<unknown, Values>,
  ): void {
    this.#add(usage, about, said, async (context, typed) => {
      const input = said.input === undefined ? typed : await said.input(typed, context);
      const answer = context.progress(said.progress, context.call(said.operation, input));
      return said.own === true ? context.withOwn(answer) : answer;
    });
  }

  /**
   * Adds a command whose work is more than one call.
   * @param usage as of `call`
   */
  run<const U extends string, const T extends Takes, A>(
    usage: U,
    about: string,
    said: Said<T> & Losing<Typed<U, G & T>> & Working<A, Typed<U, G & T>> & Shown<A, Typed<U, G & T>>,
  ): void;
  run(
    usage: string,
    about: string,
    said: Said<Takes> & Losing<Values> & Working<unknown, Values> & Shown<unknown, Values>,
  ): void {
    this.#add(usage, about, said, (context, typed) => context.progress(said.progress, said.run(context, typed)));
  }

  #add(usage: string, about: string, said: Said<Takes> & Losing<Values> & Shown<unknown, Values>, work: Work): void {
    const command = this.#command.command(usage).description(about);
    // The names that other programs have for it.
    if (this.#command.parent !== null) command.aliases(OTHER_NAMES[command.name()] ?? []);
    this.#act(command, { ...this.#takes, ...said.takes, ...(said.loses === undefined ? {} : YES) }, said, work);
    command.addHelpText('after', examples(...(said.examples ?? [exampleOf(command, this.#path)])));
  }

  #act(command: Command, takes: Takes, shown: Losing<Values> & Shown<unknown, Values>, work: Work): void {
    addTakes(command, shown.watch === true ? { ...takes, ...WATCH } : takes);
    command.action(async () => {
      const context = this.#contextOf(command);
      const { yes, ...rest } = await typedFor(command, takes, context);
      const loss = shown.loses?.(rest);
      if (loss !== undefined) await agree(context, loss, yes === true);
      const typed = loss === undefined && yes !== undefined ? { ...rest, yes } : rest;
      // A group that lists takes it for the command below it, too.
      const { watch, every } = command.optsWithGlobals<{ watch?: true; every?: number }>();
      if (shown.watch === true && watch === true)
        return watched(context, async () => printed(context, await work(context, typed), typed, shown), every);
      const answer = await work(context, typed);
      if (answer !== undefined) await show(context, answer, typed, shown);
    });
  }
}

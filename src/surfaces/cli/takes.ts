/** What a command takes, said as data: its arguments and options as they are typed, and the values that come of them. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import type { CliContext } from './context.ts';

/** An argument or option that is more than a text or a switch; `T` is what the command gets of it. */
export interface Taken<T> {
  readonly about: string;
  /** Reads what was typed; `before` is what it was so far, for those that may be repeated. */
  read?(this: void, text: string, before: T): T;
  readonly choices?: readonly string[];
  /** What it is where nothing is typed. */
  readonly otherwise?: T;
  /** An option that must be given. */
  readonly required?: true;
  /** The variable of the environment that says it where the option is left out. */
  readonly variable?: string;
  /** Names of options that it does not go with. */
  readonly conflicts?: string[];
  /** Options that it switches on. */
  readonly implies?: Readonly<Record<string, true>>;
  /** It names the local agent that acts, and may be left out where there is only one. */
  readonly acts?: true;
}

/** By what is typed, `<aid>`, `[seq]` or `--limit <n>`: what it means, and how it is read where it is no mere text. */
export type Takes = Readonly<Record<string, string | Taken<unknown>>>;

type Snake<S extends string> = S extends `${infer A}-${infer B}` ? `${A}_${Snake<B>}` : S;
type FirstWord<S extends string> = S extends `${infer A} ${string}` ? A : S;
type Single<S extends string> = S extends `${infer A}...` ? A : S;

/** What is named by its id, and how the API calls that. */
const IDS = { entry: 'entry_id', group: 'group_id', object: 'object_id' } as const;
type IdOf<S> = S extends keyof typeof IDS ? (typeof IDS)[S] : S;

/** `aid` of `<aid>`, `local_port` of `--local-port <port>`, `relay` of `--no-relay`: as the API names its members. */
type NameOf<F> = F extends `<${infer N}>` | `[${infer N}]`
  ? IdOf<Snake<Single<N>>>
  : F extends `--no-${infer N}`
    ? Snake<FirstWord<N>>
    : F extends `${string}--${infer N}`
      ? IdOf<Snake<FirstWord<N>>>
      : never;

/** What comes of one whose text is not read in a way of its own. */
type TextOf<F> = F extends `<${string}...>` | `[${string}...]`
  ? string[]
  : F extends `<${string}`
    ? string
    : F extends `--no-${string}`
      ? boolean
      : F extends `${string}...>`
        ? string[] | undefined
        : F extends `[${string}` | `${string}<${string}`
          ? string | undefined
          : F extends `${string}[${string}`
            ? string | true | undefined
            : true | undefined;

type ValueOf<F, S> = S extends Taken<infer T> ? (F extends `<${string}` ? Exclude<T, undefined> : T) : TextOf<F>;

/** The arguments in a usage such as `send <group> [text]`. */
type ArgumentsIn<U> = U extends `${infer A} ${infer B}`
  ? ArgumentsIn<A> | ArgumentsIn<B>
  : Extract<U, `<${string}>` | `[${string}]`>;

/** What was typed, by name: the arguments of a usage, and what the command takes beside them. */
export type Typed<U, T> = { readonly [F in ArgumentsIn<U> as NameOf<F>]: TextOf<F> } & {
  readonly [F in keyof T as NameOf<F>]: ValueOf<F, T[F]>;
};

const actor: Taken<string> = { about: 'the local agent; may be left out where there is only one', acts: true };

/** The local agent that acts, for commands that act for one: they get its AID. */
export const ACTING = { '--aid <aid>': actor } as const;

/** A whole number. */
export function integer(about: string): Taken<number | undefined> {
  const read = (text: string): number => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isSafeInteger(value)) throw new InvalidArgumentError('It is not a whole number.');
    return value;
  };
  return { about, read };
}

/** A time in seconds, fractions allowed; the command gets milliseconds. */
export function seconds(
  about: string,
  { minMs, maxMs }: { readonly minMs: number; readonly maxMs: number },
): Taken<number | undefined> {
  const read = (text: string): number => {
    const ms = Math.round(Number(text) * 1000);
    if (text.trim() === '' || !(ms >= minMs && ms <= maxMs))
      throw new InvalidArgumentError(`It is not a number of seconds from ${minMs / 1000} to ${maxMs / 1000}.`);
    return ms;
  };
  return { about, read };
}

/** An option that may be repeated. */
export function repeated(about: string): Taken<string[] | undefined> {
  return { about, read: (text, before) => [...(before ?? []), text] };
}

/** Pages of a list that may be long. */
export const PAGE = {
  '--limit <count>': integer('at most so many'),
  '--cursor <cursor>': 'next_cursor of the page before',
};

/** Says that a list goes on. */
export function pageRemark({ next_cursor }: { readonly next_cursor?: string }): string | false {
  return next_cursor !== undefined && `More follow: --cursor '${next_cursor}'`;
}

/** One of a few words. */
export function choice<const C extends string>(...choices: readonly C[]): Taken<C> {
  return { about: '', choices };
}

/** An option that must be given. */
export function required(about: string): Taken<string> {
  return { about, required: true };
}

/** A secret that another agent asks for. @param about who asks */
export function accessToken(about: string): Taken<string | undefined> {
  const variable = 'SVC_ACCESS_TOKEN';
  return { about: `${about} (${variable} keeps it out of the process list)`, variable };
}

function takenOf(said: string | Taken<unknown>): Taken<unknown> {
  return typeof said === 'string' ? { about: said } : said;
}

/** Adds the arguments and options to a command. */
export function addTakes(command: Command, takes: Takes): void {
  for (const [flags, said] of Object.entries(takes)) {
    const { about, read, choices, otherwise, required, conflicts = [], implies = {} } = takenOf(said);
    const one = /^[<[]/.test(flags) ? new Argument(flags, about) : new Option(flags, about);
    if (read !== undefined) one.argParser(read);
    if (choices !== undefined) one.choices(choices);
    if (otherwise !== undefined) one.default(otherwise);
    if (one instanceof Argument) command.addArgument(one);
    else
      command.addOption(
        one
          .makeOptionMandatory(required === true)
          .conflicts(conflicts)
          .implies(implies),
      );
  }
}

/** `local_port` of `local-port` and of `localPort`, `group_id` of `group`. */
function memberName(name: string): string {
  const snake = name.replaceAll(/[A-Z]/g, '-$&').replaceAll('-', '_').toLowerCase();
  return Object.entries(IDS).find(([short]) => short === snake)?.[1] ?? snake;
}

/**
 * What was typed for a command that runs, by name.
 * @throws SvcError `local_aid_required`, `not_found`, `bad_aid` where it is not clear which agent acts
 */
export async function typedFor(command: Command, takes: Takes, context: CliContext) {
  const words: readonly unknown[] = command.processedArgs;
  const typed: Record<string, unknown> = {};
  for (const [i, one] of command.registeredArguments.entries()) typed[memberName(one.name())] = words[i];
  const own = new Set(
    Object.keys(takes).map((flags) => (/^[<[]/.test(flags) ? '' : new Option(flags).attributeName())),
  );
  for (const [name, value] of Object.entries<unknown>(command.opts()))
    if (own.has(name)) typed[memberName(name)] = value;
  // The daemon finds the only agent by itself, but does not know of a choice.
  if ('--local-aid <aid>' in takes) typed['local_aid'] ??= context.chosen?.aid;
  for (const [flags, said] of Object.entries(takes)) {
    const { variable, acts } = takenOf(said);
    if (variable === undefined && acts === undefined) continue;
    const name = memberName(new Option(flags).attributeName());
    const value = typed[name];
    if (variable !== undefined) typed[name] ??= context.io.env[variable];
    if (acts === true) typed[name] = await context.localAgent(typeof value === 'string' ? value : undefined);
  }
  return typed;
}

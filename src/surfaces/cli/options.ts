/** Arguments and options of commands as data, and the types of their parsed values. */
import { statSync } from 'node:fs';
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';

/** An argument or option that is neither plain text nor a switch. `T` is its parsed value. */
export interface ValueOption<T> {
  readonly about: string;
  /** Parses the text. `before` is the value so far, for repeatable options. */
  read?(this: void, text: string, before: T): T;
  readonly choices?: readonly string[];
  /** Default value. */
  readonly otherwise?: T;
  /** A required option. */
  readonly required?: true;
  /** Environment variable that replaces the option. */
  readonly variable?: string;
  /** Options that cannot be combined with it. */
  readonly conflicts?: string[];
  /** Options that it sets. */
  readonly implies?: Readonly<Record<string, true>>;
  /**
   * It names the local agent that acts. `--as` sets it, and the option itself is a hidden alias. Without a name:
   * - `required`: the agent in use, the only one, or the user's choice
   * - `called`: the agent in use. Otherwise undefined: the daemon finds the only one, and the client asks if there are
   *   several
   * - `named`: undefined
   */
  readonly acts?: 'required' | 'called' | 'named';
  /** An option of earlier scripts, which the help omits. */
  readonly hidden?: true;
  /** An optional argument that is required unless one of these options is given. */
  readonly unless?: readonly string[];
  /** Its name in the input of the operation, if the word has another one. A `--no-` option negates it. */
  readonly member?: string;
}

/** Options by their usage, such as `<aid>`, `[seq]` or `--limit <n>`: the help text, or a parser. */
export type CommandOptions = Readonly<Record<string, string | ValueOption<unknown>>>;

type Snake<S extends string> = S extends `${infer A}-${infer B}` ? `${A}_${Snake<B>}` : S;
type FirstWord<S extends string> = S extends `${infer A} ${string}` ? A : S;
type Single<S extends string> = S extends `${infer A}...` ? A : S;

/** `aid` from `<aid>`, `local_port` from `--local-port <port>`, `relay` from `--no-relay`: names as in the API. */
type NameOf<F> = F extends `<${infer N}>` | `[${infer N}]`
  ? Snake<Single<N>>
  : F extends `--no-${infer N}`
    ? Snake<FirstWord<N>>
    : F extends `${string}--${infer N}`
      ? Snake<FirstWord<N>>
      : never;

/** The type of an argument without a parser. */
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

type ValueOf<F, S> = S extends ValueOption<infer T> ? (F extends `<${string}` ? Exclude<T, undefined> : T) : TextOf<F>;

/** The arguments in a usage such as `send <group> [text]`. */
type ArgumentsIn<U> = U extends `${infer A} ${infer B}`
  ? ArgumentsIn<A> | ArgumentsIn<B>
  : Extract<U, `<${string}>` | `[${string}]`>;

/** The parsed values by name: the arguments of a usage, and the options. */
export type ParsedOptions<U, T> = { readonly [F in ArgumentsIn<U> as NameOf<F>]: TextOf<F> } & {
  readonly [F in keyof T as NameOf<F>]: ValueOf<F, T[F]>;
};

/** The usage of the option that names the acting agent. It is a global option. */
export const AS_OPTION = '--as <agent>';

const actor: ValueOption<string> = {
  about: 'the local agent that acts; default: the agent of "svc use", or the only agent',
  acts: 'required',
};

/** The option that names the local agent. Commands receive its AID. */
export const ACTING_AGENT = { '--aid <aid>': actor } as const;

const caller: ValueOption<string | undefined> = { about: actor.about, acts: 'called' };

/** The option that names the local agent for operations that find the only one themselves. */
export const CALLING_AGENT = { '--local-aid <aid>': caller } as const;

/** An option that names a local agent, without a default. */
export function namedAgent(about: string): ValueOption<string | undefined> {
  return { about, acts: 'named' };
}

/** A first argument that names the local agent. It may be omitted. */
export function actingArgument(about: string): ValueOption<string> {
  return { about: `${about}; may be omitted, see --as`, acts: 'required' };
}

/** The placeholder for an omitted acting agent in a command line. */
export const OMITTED_AGENT = '';

/** An integer. */
export function integer(about: string): ValueOption<number | undefined> {
  const read = (text: string): number => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isSafeInteger(value)) throw new InvalidArgumentError('Not an integer.');
    return value;
  };
  return { about, read };
}

/** A time in seconds, with fractions. The command receives milliseconds. */
export function seconds(
  about: string,
  { minMs, maxMs }: { readonly minMs: number; readonly maxMs: number },
): ValueOption<number | undefined> {
  const read = (text: string): number => {
    const ms = Math.round(Number(text) * 1000);
    if (text.trim() === '' || !(ms >= minMs && ms <= maxMs))
      throw new InvalidArgumentError(`Not a number of seconds from ${minMs / 1000} to ${maxMs / 1000}.`);
    return ms;
  };
  return { about, read };
}

/** A repeatable option. */
export function repeatable(about: string): ValueOption<string[] | undefined> {
  return { about, read: (text, before) => [...(before ?? []), text] };
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Converts `30m`, `12h`, `7d` or a date to ISO 8601. */
function parseExpiry(text: string): string {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const at = unit === undefined ? Date.parse(text) : Date.now() + Number(count) * (UNIT_MS[unit] ?? 0);
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) throw new InvalidArgumentError('Use 30m, 12h, 7d, or a date such as 2030-01-31.');
  return time.toISOString();
}

/** An expiry time. The command receives it in ISO 8601. */
export function expiry(about: string): ValueOption<string | undefined> {
  return { about, read: parseExpiry };
}

/** Pagination of lists. */
export const PAGE_OPTIONS = {
  '--limit <count>': integer('maximum number of items'),
  '--cursor <cursor>': 'next_cursor of the previous page',
};

/** The hint for the next page. */
export function nextPageHint({ next_cursor }: { readonly next_cursor?: string }): string | false {
  return next_cursor !== undefined && `More: --cursor '${next_cursor}'`;
}

/** One of several words. */
export function choice<const C extends string>(...choices: readonly C[]): ValueOption<C> {
  return { about: '', choices };
}

/** A required option. */
export function required(about: string): ValueOption<string> {
  return { about, required: true };
}

/** A secret that another agent requires. @param about who requires it */
export function accessToken(about: string): ValueOption<string | undefined> {
  const variable = 'SVC_ACCESS_TOKEN';
  return { about: `${about} (${variable} keeps it out of the process list)`, variable };
}

function toValueOption(option: string | ValueOption<unknown>): ValueOption<unknown> {
  return typeof option === 'string' ? { about: option } : option;
}

/** Properties of an argument that matter before parsing. */
export interface ArgumentRule {
  /** It names the acting agent. */
  readonly acts: boolean;
  /** It is required unless one of these options is given. */
  readonly unless?: readonly string[] | undefined;
  /** True if a text is certainly meant for it, false if it certainly is not. */
  readonly fits?: ((text: string) => boolean) | undefined;
}

const rules = new WeakMap<Argument, ArgumentRule>();

/** The rule of an argument. */
export function argumentRule(argument: Argument): ArgumentRule {
  return rules.get(argument) ?? { acts: false };
}

function isFile(text: string): boolean {
  try {
    return statSync(text).isFile();
  } catch {
    // The command reports why, such as a folder that this user may not read.
    return false;
  }
}

/** Tests by the name of an argument. */
const FITS: Readonly<Record<string, (text: string) => boolean>> = {
  file: isFile,
  path: (text) => text.startsWith('/'),
};

/** Adds arguments and options to a command. */
export function addOptions(command: Command, takes: CommandOptions): void {
  for (const [flags, option] of Object.entries(takes)) {
    const {
      about,
      read,
      choices,
      otherwise,
      required,
      conflicts = [],
      implies = {},
      acts,
      unless,
      hidden,
    } = toValueOption(option);
    const one = /^[<[]/.test(flags) ? new Argument(flags, about) : new Option(flags, about);
    if (read !== undefined) one.argParser(read);
    if (choices !== undefined) one.choices(choices);
    if (otherwise !== undefined) one.default(otherwise);
    // The program parses --as. Here it is for the help.
    if (acts !== undefined) command.addOption(new Option(AS_OPTION, one instanceof Argument ? actor.about : about));
    if (one instanceof Argument) {
      const fits = choices === undefined ? FITS[one.name()] : (text: string) => choices.includes(text);
      rules.set(one, { acts: acts !== undefined, unless, fits });
      command.addArgument(one);
    } else {
      command.addOption(
        one
          .makeOptionMandatory(required === true)
          .hideHelp(acts !== undefined || hidden === true)
          .conflicts(conflicts)
          .implies(implies),
      );
    }
  }
}

/** `local_port` from `local-port` and `localPort`. */
function memberName(name: string): string {
  return name.replaceAll(/[A-Z]/g, '-$&').replaceAll('-', '_').toLowerCase();
}

/**
 * The parsed values of a command line, by name.
 * @throws SvcError `local_aid_required`, `not_found`, `bad_aid` if the acting agent is not clear
 */
export async function parseOptions(command: Command, takes: CommandOptions, context: CliContext) {
  const words = new Map<string, unknown>(
    command.registeredArguments.map((one, i) => [one.name(), command.processedArgs[i]]),
  );
  const options = command.opts<Readonly<Record<string, unknown>>>();
  const typed: Record<string, unknown> = {};
  for (const [flags, option] of Object.entries(takes)) {
    const { variable, acts, member } = toValueOption(option);
    const isArgument = /^[<[]/.test(flags);
    const word = isArgument ? (/[\w-]+/.exec(flags)?.[0] ?? '') : new Option(flags).attributeName();
    const name = member ?? memberName(word);
    const value = isArgument ? words.get(word) : options[word];
    if (isArgument ? words.delete(word) : Object.hasOwn(options, word))
      typed[name] = member !== undefined && flags.startsWith('--no-') ? value !== true : value;
    if (variable !== undefined) typed[name] ??= context.io.env[variable];
    if (acts !== undefined) typed[name] = await actingAgent(context, acts, typed[name], context.options.as);
  }
  for (const [word, value] of words) typed[memberName(word)] = value;
  return typed;
}

/** True if a command acts for a local agent. */
export function acts(takes: CommandOptions): boolean {
  return Object.values(takes).some((option) => toValueOption(option).acts !== undefined);
}

async function actingAgent(
  context: CliContext,
  kind: NonNullable<ValueOption<unknown>['acts']>,
  value: unknown,
  as: string | undefined,
): Promise<string | undefined> {
  const old = typeof value === 'string' && value !== OMITTED_AGENT ? value : undefined;
  if (as !== undefined && old !== undefined && old !== as)
    throw new SvcError('invalid_request', { message: `Two agents are named: ${as} and ${old}. Omit one.` });
  const named = as ?? old;
  if (kind === 'named') return named;
  if (kind === 'required') return context.localAgent(named);
  return named ?? context.chosen?.aid;
}

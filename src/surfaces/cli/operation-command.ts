/** Commands that call one operation: their arguments and options follow from the input schema of the operation. */
import type { TSchema } from 'typebox';
import { relativeTime } from '../../foundation/display-text.ts';
import { listMember, memberOf } from '../../foundation/json.ts';
import { operations } from '../../operations/index.ts';
import { bodyInputKey, type Declaration } from '../../operations/operation.ts';
import type { AnswerOf, Inputs, OperationName } from './client.ts';
import type { Names } from './names.ts';
import { accessToken, CALLING_AGENT, expiry, integer, nextPageHint, repeatable, type ValueOption } from './options.ts';
import type { OutputFormats } from './output.ts';
import { type Cell, formatTable, type OutputText, type WrappedText } from './text.ts';

/** A list in an answer as a table. A cell is a member of the entry, or made from the entry. Times are relative. */
type Table<A> = {
  readonly [K in keyof A]: A[K] extends readonly (infer E)[] | undefined
    ? {
        readonly of: K;
        readonly columns: Readonly<Record<string, (keyof E & string) | ((entry: E) => Cell)>>;
        /** Replaces a table without rows. */
        readonly none?: string;
      }
    : never;
}[keyof A];

/** The members of `CommandGroup.call` that the declaration of the operation does not have. */
export interface CallSpec<N extends OperationName>
  extends Omit<OutputFormats<AnswerOf<N>, Inputs[N]>, 'text' | 'quiet'> {
  /** Members of the input that the command sets itself. */
  readonly sets?: Partial<Inputs[N]>;
  /** Help texts by member, if the description of the member does not fit. Only these describe arguments. */
  readonly help?: { readonly [K in keyof Inputs[N]]?: string };
  /** The agent must be registered here. If it is not, the error names the command that lists the agents. */
  readonly own?: true;
  readonly text?: string | ((answer: AnswerOf<N>, typed: Inputs[N], names: Names) => OutputText);
  /** In place of `text`. */
  readonly table?: Table<AnswerOf<N>>;
  /**
   * The essential value: a member of the answer, or made from it. Default: the first column of the table, the last
   * argument if the operation returns only `ok`, or else the text.
   */
  readonly quiet?: (keyof AnswerOf<N> & string) | ((answer: AnswerOf<N>, typed: Inputs[N]) => string);
}

type Values = Readonly<Record<string, unknown>>;
/** Functions of answers whose type is known only to the command. */
type Made<A extends readonly unknown[], R> = { make(...from: A): R }['make'];
type Columns = Readonly<Record<string, string | Made<[entry: Values], Cell>>>;

/** `CallSpec` of any operation. */
export interface AnyCallSpec extends Omit<OutputFormats<Values, Values>, 'text' | 'quiet'> {
  readonly sets?: object;
  readonly help?: object;
  readonly own?: true;
  readonly text?: string | Made<[answer: Values, typed: Values, names: Names], OutputText>;
  readonly table?: { readonly of: string; readonly columns: Columns; readonly none?: string };
  readonly quiet?: string | Made<[answer: Values, typed: Values], string>;
}

/** Members whose text on the command line is not their value. */
const READERS: Readonly<Record<string, (about: string) => ValueOption<unknown>>> = {
  access_token: accessToken,
  expires_at: expiry,
};

/** The options of every paged list, unless its usage has its own `--limit`. */
const PAGE_WORDS = ' --limit <count> --cursor <cursor>';

/** `<name>` or `--name <value>`. The member of the input follows the name, as in `<agent=target_aid>`, if it differs. */
const WORD = / (?:--([a-z-]+)(?:=(\w+))?((?: [<[][^ ]+)?)|([<[])([a-z-]+)(?:=(\w+))?((?:\.\.\.)?[>\]]))/g;

/** The members of an input: of path, query and body. */
function inputOf({ params, query, body }: Declaration) {
  const sent = (key: string): string => bodyInputKey(key, params);
  const members: Readonly<Record<string, TSchema>> = {
    ...Object.fromEntries(Object.entries(body.properties).map(([key, member]) => [sent(key), member])),
    ...query.properties,
    ...params.properties,
  };
  const required = [...listMember(params, 'required'), ...listMember(query, 'required')];
  return { members, required: [...required, ...listMember(body, 'required').map(sent)] };
}

/** `after_seq` for `after`, `services` for `service`. @throws Error unless one member fits */
function memberFor(word: string, members: Readonly<Record<string, TSchema>>): string {
  const snake = word.replaceAll('-', '_');
  const fitting = Object.keys(members).filter((key) => key.startsWith(`${snake}_`) || key === `${snake}s`);
  const [only, ...others] = Object.hasOwn(members, snake) ? [snake] : fitting;
  if (only === undefined || others.length > 0) throw new Error(`Not one member of the input fits "${word}".`);
  return only;
}

/** The description of a member in the style of help texts: its first sentence, or its limit. */
function aboutMember(schema: TSchema): string {
  const [description, max] = [memberOf(schema, 'description'), memberOf(schema, 'maximum')];
  const [first = ''] = typeof description === 'string' ? description.split(/\.(?: |$)/) : [];
  if (first === '' && typeof max === 'number') return `maximum ${max}`;
  return first.replaceAll('`', '').replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase());
}

function optionFor(key: string, schema: TSchema, about: string, isVariadic: boolean): ValueOption<unknown> {
  const [read, choices, type] = [READERS[key], memberOf(schema, 'enum'), memberOf(schema, 'type')];
  if (read !== undefined) return read(about);
  if (Array.isArray(choices)) return { about, choices: choices.map(String) };
  if (type === 'integer') return integer(about);
  return type === 'array' && !isVariadic ? repeatable(about) : { about };
}

function tableText(answer: Values, { of, columns, none }: NonNullable<AnyCallSpec['table']>): WrappedText {
  const now = Date.now();
  const cellOf = (entry: Values, column: Columns[string]): Cell => {
    if (typeof column === 'function') return column(entry);
    const value = entry[column];
    return column.endsWith('_at') && typeof value === 'string' ? relativeTime(value, now) : (value as Cell);
  };
  const rows = (answer[of] as readonly Values[]).map((entry) =>
    Object.values(columns).map((column) => cellOf(entry, column)),
  );
  return formatTable(Object.keys(columns), rows, none);
}

function quietText({ quiet, table }: AnyCallSpec, subject: string | undefined): OutputFormats<Values, Values>['quiet'] {
  const [key] = Object.values(table?.columns ?? {});
  if (typeof quiet === 'function') return quiet;
  if (quiet !== undefined) return (answer) => String(answer[quiet]);
  if (table !== undefined && typeof key === 'string')
    return (answer) => (answer[table.of] as readonly Values[]).map((entry) => String(entry[key])).join('\n');
  return subject === undefined ? undefined : (_, typed) => String(typed[subject]);
}

/**
 * A command that calls an operation, in the form of other commands.
 * @param usage command word, arguments, then options: `read <group> --after <seq> --from=hint_aid <aid>`
 * @param acts the command acts for a local agent
 * @throws Error if the operation has no such member, or needs another one
 */
export function operationCommand<T extends AnyCallSpec>(
  operation: OperationName,
  usage: string,
  spec: T,
  acts: boolean,
) {
  const declaration: Declaration = operations[operation];
  const { members, required } = inputOf(declaration);
  const { help = {}, text: output = '', table, quiet: _, ...rest } = spec;
  const options: Record<string, ValueOption<unknown>> = Object.hasOwn(members, 'local_aid') ? { ...CALLING_AGENT } : {};
  const given = [...Object.keys(spec.sets ?? {}), ...(acts ? ['aid'] : [])];
  const isPaged = Object.hasOwn(members, 'cursor') && !usage.includes('--limit');
  let subject = 'aid';
  for (const [
    ,
    option = '',
    optionKey,
    value = '',
    open = '',
    argument = '',
    argumentKey,
    close = '',
  ] of `${usage}${isPaged ? PAGE_WORDS : ''}`.matchAll(WORD)) {
    const key = optionKey ?? argumentKey ?? memberFor(option + argument, members);
    const schema = members[key];
    if (schema === undefined) throw new Error(`${operation} has no input "${key}".`);
    const flags = argument === '' ? `--${option}${value}` : `${open}${argument}${close}`;
    const text = memberOf(help, key);
    const about = typeof text === 'string' ? text : argument === '' ? aboutMember(schema) : '';
    options[flags] = { ...optionFor(key, schema, about, flags.includes('...')), member: key };
    given.push(key);
    if (argument !== '') subject = key;
  }
  const missing = required.filter((key) => !given.includes(key));
  if (missing.length > 0) throw new Error(`${operation} also needs ${missing.join(', ')}.`);
  const isOk = Object.keys(memberOf(declaration.output, 'properties') ?? {}).join(' ') === 'ok';
  const quiet = quietText(spec, isOk ? subject : undefined);
  const shown: Pick<OutputFormats<Values, Values>, 'text' | 'quiet' | 'remark'> = {
    ...(isPaged ? { remark: (page) => nextPageHint(page) } : {}),
    text: typeof output === 'string' ? (answer) => (table === undefined ? output : tableText(answer, table)) : output,
    ...(quiet === undefined ? {} : { quiet }),
  };
  return { name: usage.split(' ', 1)[0] ?? '', command: { ...shown, ...rest, options } };
}

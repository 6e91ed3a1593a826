/** How answers are shown: as JSON, as text for people, or as the one value that a script wants. */
import { EXIT, SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';
import { laidOut, type Shape } from './laid.ts';
import type { Names } from './names.ts';
import { deliver } from './output.ts';
import { safeJson, safeText } from './text.ts';

/** The end of a command that has shown its result, which says that something is wrong. Programs read the result. */
export class Unsuccessful extends Error {
  override readonly name = 'Unsuccessful';
  /** The exit code of the command. */
  readonly exit: number;

  /** @param message why, for people; empty if the program that was run has said it */
  constructor(message: string, exit: number = EXIT.failed) {
    super(message);
    this.exit = exit;
  }
}

/** The forms of an answer `A`; `W` is what was typed. */
export interface Shown<A, W> {
  /** For people: of the answer with the names that they know in the place of AIDs, unless `aids` says otherwise. */
  text(answer: A, typed: W, names: Names): Shape;
  /** `whole`: they are what the command is for, and shown as they are; `told`: the text puts the names in itself. */
  readonly aids?: 'whole' | 'told';
  /** The essential value, in one line or several; the text where it is left out. */
  quiet?(answer: A, typed: W): string;
  /** What programs get in place of the answer. */
  json?(answer: A, typed: W): unknown;
  /** What a pipe gets in place of the text. */
  bytes?(answer: A): Uint8Array;
  /** It is a list, or a state: `--watch` shows it again as it changes. */
  readonly watch?: true;
  /** Colours the text for people, once nothing in it can drive a terminal. */
  paint?(text: string, stream: NodeJS.WritableStream): string;
  /** A remark for people behind the answer, where there is one. */
  remark?(answer: A, typed: W): string | false | undefined;
  /** Why the command fails all the same, where it does. */
  fails?(answer: A, typed: W): string | false | undefined;
  /** The exit code of the program that was run in place of this one. */
  exit?(answer: A): number;
  /** The answer may hold a secret that is shown only this once. */
  once?: Once<A, W>;
}

/** What an answer with a secret needs. */
interface Once<A, W> {
  /** True if this answer holds one. */
  holds(answer: A): boolean;
  /** Takes back what was made with a secret that could not be written. */
  undo?(this: void, context: CliContext, answer: A, typed: W): Promise<unknown>;
}

async function textFor<A, W>(context: CliContext, answer: A, typed: W, shown: Shown<A, W>): Promise<string> {
  const names = await context.names(shown.aids === 'whole' ? null : answer);
  const text = laidOut(shown.text(shown.aids === undefined ? names.in(answer) : answer, typed, names), context.room);
  return shown.paint?.(safeText(text), context.io.stdout) ?? safeText(text);
}

/** An answer in the form that was asked for. */
export async function printed<A, W>(context: CliContext, answer: A, typed: W, shown: Shown<A, W>) {
  const { io, options } = context;
  if (options.json === true) return `${safeJson(shown.json === undefined ? answer : shown.json(answer, typed), 2)}\n`;
  if (shown.bytes !== undefined && io.stdout.isTTY !== true) return shown.bytes(answer);
  const quiet = options.quiet === true && shown.quiet !== undefined;
  const text = quiet
    ? safeText(shown.quiet?.(answer, typed) ?? '')
    : await textFor(context, answer, typed, options.quiet === true ? { ...shown, aids: 'whole' } : shown);
  return text === '' ? '' : `${text}\n`;
}

/**
 * Prints an answer in the form that was asked for; what others wrote cannot drive the terminal.
 * @throws Unsuccessful where the answer says that something is wrong
 */
export async function show<A, W>(context: CliContext, answer: A, typed: W, shown: Shown<A, W>): Promise<void> {
  const text = await printed(context, answer, typed, shown);
  if (context.begun !== undefined) await showRest(context, context.begun, String(text));
  else if (shown.once?.holds(answer) === true) await showOnce(context, text, shown.once, answer, typed);
  else context.io.stdout.write(text);
  const remark = shown.remark?.(answer, typed);
  if (typeof remark === 'string') context.note(remark);
  const failure = shown.fails?.(answer, typed);
  if (typeof failure === 'string') throw new Unsuccessful(failure);
  const exit = shown.exit?.(answer) ?? 0;
  if (exit !== 0) throw new Unsuccessful('', exit);
}

/** End of a JSON document. */
const JSON_END = '\n}\n';

/**
 * Writes the first part of an answer and waits until it is taken: a new key has to be written before anything is made with it.
 * `show` later adds the rest of the answer, which has to begin with the same members.
 * @param made what to say if the rest cannot be written
 * @throws SvcError `not_writable`
 */
export async function showBeginning<A, W>(
  context: CliContext,
  answer: A,
  typed: W,
  shown: Shown<A, W>,
  made: string,
): Promise<void> {
  const whole = String(await printed(context, answer, typed, shown));
  const text = context.options.json === true ? whole.slice(0, -JSON_END.length) : whole;
  await deliver(context.io.stdout, text);
  context.begun = { text, made };
}

/** Ends an answer that has only its first part, so that programs can read it. */
export function endBeginning(context: CliContext): void {
  if (context.begun !== undefined && context.options.json === true) context.io.stdout.write(JSON_END);
}

async function showRest(context: CliContext, { text: begun, made }: { text: string; made: string }, text: string) {
  const rest = text.startsWith(begun) ? text.slice(begun.length) : text;
  await deliver(context.io.stdout, rest).catch((error: unknown) => {
    const message = `${error instanceof Error ? error.message : 'The output cannot be written.'} ${made}`;
    throw new SvcError('not_writable', { message, cause: error });
  });
}

/** @throws SvcError `not_writable` */
async function showOnce<A, W>(
  context: CliContext,
  text: string | Uint8Array,
  { undo }: Once<A, W>,
  answer: A,
  typed: W,
): Promise<void> {
  try {
    await deliver(context.io.stdout, text);
  } catch (error) {
    if (!(error instanceof SvcError) || undo === undefined) throw error;
    const after = await undo(context, answer, typed).then(
      () => 'Nothing was changed.',
      (failure: unknown) =>
        `The change could not be undone: ${failure instanceof Error ? failure.message : 'unknown failure'}`,
    );
    throw new SvcError('not_writable', { message: `${error.message} ${after}`, cause: error });
  }
}

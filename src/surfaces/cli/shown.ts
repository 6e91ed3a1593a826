/** How answers are shown: as JSON, as text for people, or as the one value that a script wants. */
import type { CliContext } from './context.ts';
import { laidOut, type Shape } from './laid.ts';
import type { Names } from './names.ts';
import { safeJson, safeText } from './text.ts';

/** The end of a command that has shown its result, which says that something is wrong: exit code 1. Programs read the result. */
export class Unsuccessful extends Error {
  override readonly name = 'Unsuccessful';
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
  context.io.stdout.write(await printed(context, answer, typed, shown));
  const remark = shown.remark?.(answer, typed);
  if (typeof remark === 'string') context.note(remark);
  const failure = shown.fails?.(answer, typed);
  if (typeof failure === 'string') throw new Unsuccessful(failure);
}

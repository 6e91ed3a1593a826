/** How answers are shown: as JSON, as text for people, or as the one value that a script wants. */
import type { CliContext } from './context.ts';
import { safeJson, safeText } from './text.ts';

/** The end of a command that has shown its result, which says that something is wrong: exit code 1. Programs read the result. */
export class Unsuccessful extends Error {
  override readonly name = 'Unsuccessful';
}

/** The forms of an answer `A`; `W` is what was typed. */
export interface Shown<A, W> {
  /** For people. */
  text(answer: A, typed: W): string;
  /** The essential value, in one line or several; the text where it is left out. */
  quiet?(answer: A, typed: W): string;
  /** What programs get in place of the answer. */
  json?(answer: A, typed: W): unknown;
  /** What a pipe gets in place of the text. */
  bytes?(answer: A): Uint8Array;
  /** Colours the text for people, once nothing in it can drive a terminal. */
  paint?(text: string, stream: NodeJS.WritableStream): string;
  /** A remark for people behind the answer, where there is one. */
  remark?(answer: A, typed: W): string | false | undefined;
  /** Why the command fails all the same, where it does. */
  fails?(answer: A, typed: W): string | false | undefined;
}

function printed<A, W>({ io, options }: CliContext, answer: A, typed: W, shown: Shown<A, W>): string | Uint8Array {
  if (options.json === true) return `${safeJson(shown.json === undefined ? answer : shown.json(answer, typed), 2)}\n`;
  if (shown.bytes !== undefined && io.stdout.isTTY !== true) return shown.bytes(answer);
  const quiet = options.quiet === true;
  const text = safeText(quiet && shown.quiet !== undefined ? shown.quiet(answer, typed) : shown.text(answer, typed));
  const painted = quiet ? text : (shown.paint?.(text, io.stdout) ?? text);
  return painted === '' ? '' : `${painted}\n`;
}

/**
 * Prints an answer in the form that was asked for; what others wrote cannot drive the terminal.
 * @throws Unsuccessful where the answer says that something is wrong
 */
export function show<A, W>(context: CliContext, answer: A, typed: W, shown: Shown<A, W>): void {
  context.io.stdout.write(printed(context, answer, typed, shown));
  const remark = shown.remark?.(answer, typed);
  if (typeof remark === 'string') context.note(remark);
  const failure = shown.fails?.(answer, typed);
  if (typeof failure === 'string') throw new Unsuccessful(failure);
}

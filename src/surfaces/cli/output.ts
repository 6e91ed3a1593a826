/** Standard output and standard error of a command, and what happens if they fail. */
import { fstatSync, fsyncSync, type Stats, statSync, writeSync } from 'node:fs';
import { devNull } from 'node:os';
import { Writable } from 'node:stream';
import { codeOf, EXIT, SvcError } from '../../foundation/errors.ts';
import { lazy } from '../../foundation/lazy.ts';
import type { CliContext } from './context.ts';
import type { CliIo } from './input.ts';
import type { Names } from './names.ts';
import { PipeReader } from './pipe-reader.ts';
import { type OutputText, renderText, safeJson, safeText } from './text.ts';

// How responses are printed: as JSON, as text for people, or as a single value for scripts.

/** Ends a command that printed its result but failed. Programs read the result. */
export class CommandFailure extends Error {
  override readonly name = 'Unsuccessful';
  /** Exit code of the command. */
  readonly exit: number;

  /** @param message the reason for people; empty if the executed program has printed it */
  constructor(message: string, exit: number = EXIT.failed) {
    super(message);
    this.exit = exit;
  }
}

/** The output formats of a response `A`. `W` is the parsed command line. */
export interface OutputFormats<A, W> {
  /** For people. AIDs are replaced by names, unless `aids` says otherwise. */
  text(answer: A, typed: W, names: Names): OutputText;
  /** `whole`: AIDs are the result and are not replaced. `labeled`: `text` inserts the labels itself. */
  readonly aids?: 'whole' | 'labeled';
  /** The essential value, on one or several lines. Default: the text. */
  quiet?(answer: A, typed: W): string;
  /** Replaces the response for programs. */
  json?(answer: A, typed: W): unknown;
  /** Replaces the text in a pipe. */
  bytes?(answer: A): Uint8Array;
  /** A list or a state that `--watch` can refresh. */
  readonly watch?: true;
  /** Colors the text for people, after it was made safe. */
  paint?(text: string, stream: NodeJS.WritableStream): string;
  /** A hint for people after the response. */
  remark?(answer: A, typed: W): string | false | undefined;
  /** Why the command fails in spite of a response. */
  fails?(answer: A, typed: W): string | false | undefined;
  /** Exit code of the executed program. */
  exit?(answer: A): number;
  /** The response may contain a secret that is shown only once. */
  once?: Once<A, W>;
}

/** Handling of a response with a secret. */
interface Once<A, W> {
  /** True if this response contains a secret. */
  holds(answer: A): boolean;
  /** Reverts the operation if the secret could not be printed. */
  undo?(this: void, context: CliContext, answer: A, typed: W): Promise<unknown>;
}

async function textFor<A, W>(context: CliContext, answer: A, typed: W, shown: OutputFormats<A, W>): Promise<string> {
  const names = await context.names(shown.aids === 'whole' ? null : answer);
  const text = renderText(
    shown.text(shown.aids === undefined ? names.in(answer) : answer, typed, names),
    context.width,
  );
  return shown.paint?.(safeText(text), context.io.stdout) ?? safeText(text);
}

/** A response in the requested format. */
export async function render<A, W>(context: CliContext, answer: A, typed: W, shown: OutputFormats<A, W>) {
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
 * Prints a response in the requested format. Foreign text is made safe for the terminal.
 * @throws Unsuccessful if the response reports a failure
 */
export async function show<A, W>(context: CliContext, answer: A, typed: W, shown: OutputFormats<A, W>): Promise<void> {
  const text = await render(context, answer, typed, shown);
  if (context.printedPart !== undefined) await showRest(context, context.printedPart, String(text));
  else if (shown.once?.holds(answer) === true) await showOnce(context, text, shown.once, answer, typed);
  else context.io.stdout.write(text);
  const remark = shown.remark?.(answer, typed);
  if (typeof remark === 'string') context.info(remark);
  const failure = shown.fails?.(answer, typed);
  if (typeof failure === 'string') throw new CommandFailure(failure);
  const exit = shown.exit?.(answer) ?? 0;
  if (exit !== 0) throw new CommandFailure('', exit);
}

/** End of a JSON document. */
const JSON_END = '\n}\n';

/**
 * Prints the first part of a response and waits until it is written: a new key must be printed before it is used.
 * `show` prints the rest, which must begin with the same members.
 * @param made what to report if the rest cannot be printed
 * @throws SvcError `not_writable`
 */
export async function showFirstPart<A, W>(
  context: CliContext,
  answer: A,
  typed: W,
  shown: OutputFormats<A, W>,
  made: string,
): Promise<void> {
  const whole = String(await render(context, answer, typed, shown));
  const text = context.options.json === true ? whole.slice(0, -JSON_END.length) : whole;
  await writeOnce(context.io.stdout, text);
  context.printedPart = { text, made };
}

/** Completes a response after its first part, so that programs can parse it. */
export function closeFirstPart(context: CliContext): void {
  if (context.printedPart !== undefined && context.options.json === true) context.io.stdout.write(JSON_END);
}

async function showRest(context: CliContext, { text: begun, made }: { text: string; made: string }, text: string) {
  const rest = text.startsWith(begun) ? text.slice(begun.length) : text;
  await writeOnce(context.io.stdout, rest).catch((error: unknown) => {
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
    await writeOnce(context.io.stdout, text);
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

/**
 * A regular file or a device as standard output. Node's own stream ignores short writes, so a full disk would truncate
 * the result without an error.
 */
export class FileOutput extends Writable {
  readonly fd: number;

  constructor(fd: number) {
    super({
      write(chunk: Buffer, _encoding, done) {
        try {
          for (let at = 0; at < chunk.length; ) at += writeSync(fd, chunk, at);
          done();
        } catch (error) {
          done(error instanceof Error ? error : new Error('The write failed.'));
        }
      },
    });
    this.fd = fd;
  }

  /** Flushes a regular file to disk. A device has nothing to flush. */
  flush(): void {
    if (examine(this.fd)?.isFile() === true) fsyncSync(this.fd);
  }
}

/** What a descriptor is; null if the system does not tell, such as Windows for some outputs (EINVAL). */
function examine(fd: number): Stats | null {
  try {
    return fstatSync(fd);
  } catch {
    return null;
  }
}

/** True for the null device, which Node also opens in place of a closed standard output. */
function isNullDevice(stream: Writable): boolean {
  const fd = 'fd' in stream ? stream.fd : undefined;
  if (typeof fd !== 'number') return false;
  const [output, nothing] = [examine(fd), statSync(devNull, { throwIfNoEntry: false })];
  return output?.isCharacterDevice() === true && nothing !== undefined && output.rdev === nothing.rdev;
}

/** Waits until all earlier writes are accepted, or the stream failed. */
function written(stream: Writable, text: string | Uint8Array): Promise<Error | undefined> {
  return new Promise((resolve) => {
    if (stream.errored !== null) return resolve(stream.errored);
    stream.write(text, (error) => resolve(error ?? undefined));
  });
}

/**
 * Writes what cannot be shown again, and waits until the system accepted it.
 * @throws SvcError `not_writable`, also if the output is a closed pipe or the null device
 */
export async function writeOnce(stream: Writable, text: string | Uint8Array): Promise<void> {
  if (isNullDevice(stream))
    throw new SvcError('not_writable', {
      message: 'The output is closed or the null device, so the secret would be lost.',
    });
  const error = await written(stream, text);
  if (error !== undefined)
    throw new SvcError('not_writable', {
      message: `The output cannot be written (${codeOf(error)}).`,
      cause: error,
    });
  if (stream instanceof FileOutput) stream.flush();
}

/** Interval of the question whether the output still has a reader, milliseconds. */
const READER_MS = 1000;

/** Detects that the output of a command failed, or that nothing reads it. */
export class OutputWatch {
  readonly #io: CliIo;
  readonly #gone = new AbortController();
  #failure: Error | undefined;

  constructor(io: CliIo) {
    this.#io = io;
    io.stdout.on('error', (error: Error) => {
      this.#failure ??= error;
      this.#gone.abort();
    });
    // Without a listener a failed write to stderr would end the command.
    io.stderr.on('error', () => {});
  }

  /** Stops commands that follow something when the reader of their output, such as `head`, has ended. */
  #watchReader(): void {
    const { stdout } = this.#io;
    if (!('fd' in stdout) || typeof stdout.fd !== 'number' || stdout instanceof FileOutput) return;
    // Now, because a reader that has never been seen may be in another container.
    const reader = PipeReader.of(stdout.fd);
    if (reader === null) return;
    const timer = setInterval(() => {
      if (!reader.isGone()) return;
      clearInterval(timer);
      this.#gone.abort();
    }, READER_MS).unref();
  }

  /**
   * The input and output for the command, with this environment. Its signal also stops commands that would run forever
   * without an output.
   */
  ioWith(env: CliIo['env']): CliIo {
    const io = this.#io;
    const { stdout, stderr } = io;
    const signal = lazy(() => {
      this.#watchReader();
      return io.signal === undefined ? this.#gone.signal : AbortSignal.any([io.signal, this.#gone.signal]);
    });
    return {
      // Creating it takes time that most commands do not need.
      get stdin() {
        return io.stdin;
      },
      stdout,
      stderr,
      env,
      // Only commands that run until interrupted use it.
      get signal() {
        return signal();
      },
    };
  }

  /**
   * Waits until the output is written.
   * @returns the error `not_writable` if the result is lost; undefined if it is written, or its reader stopped early
   *   like `head`
   */
  async failure(): Promise<SvcError | undefined> {
    const failure = this.#failure ?? (await written(this.#io.stdout, ''));
    if (failure === undefined || codeOf(failure) === 'EPIPE') return undefined;
    return new SvcError('not_writable', {
      message: `The output cannot be written (${codeOf(failure)}). The command may have completed, but its result is lost.`,
      cause: failure,
    });
  }

  /** True if the output failed. */
  get isGone(): boolean {
    return this.#gone.signal.aborted;
  }
}

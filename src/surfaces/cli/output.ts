/** Standard output and standard error of a command, and what happens if they fail. */
import { fstatSync, fsyncSync, statSync, writeSync } from 'node:fs';
import { devNull } from 'node:os';
import { Writable } from 'node:stream';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import type { CliIo } from './io.ts';

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
    if (fstatSync(this.fd).isFile()) fsyncSync(this.fd);
  }
}

/** True for the null device, which Node also opens in place of a closed standard output. */
function isNullDevice(stream: Writable): boolean {
  const fd = 'fd' in stream ? stream.fd : undefined;
  if (typeof fd !== 'number') return false;
  const [output, nothing] = [fstatSync(fd), statSync(devNull, { throwIfNoEntry: false })];
  return output.isCharacterDevice() && nothing !== undefined && output.rdev === nothing.rdev;
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

/** Detects that the output of a command failed. */
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

  /** The input and output for the command. Its signal also stops commands that would run forever without an output. */
  get io(): CliIo {
    const io = this.#io;
    const { stdout, stderr, env } = io;
    const signal = io.signal === undefined ? this.#gone.signal : AbortSignal.any([io.signal, this.#gone.signal]);
    return {
      // Creating it takes time that most commands do not need.
      get stdin() {
        return io.stdin;
      },
      stdout,
      stderr,
      env,
      signal,
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
    return this.#failure !== undefined;
  }
}

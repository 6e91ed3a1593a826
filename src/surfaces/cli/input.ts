/** Standard input and output of a command, and prompts. */
import { once } from 'node:events';
import { type Readable, Writable } from 'node:stream';
import { SvcError } from '../../foundation/errors.ts';

/** Input and output of a command: the terminal, or a test's streams. */
export interface CliIo {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Stops a command that runs until interrupted. Default: signals of the process. */
  readonly signal?: AbortSignal;
}

/** All bytes of a source. @throws `tooLarge` once there are more, and errors of the source */
export async function readAll(
  source: AsyncIterable<unknown> | Iterable<unknown>,
  maxBytes: number,
  tooLarge: SvcError,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source) {
    const bytes = Buffer.from(chunk instanceof Uint8Array ? chunk : String(chunk));
    size += bytes.length;
    if (size > maxBytes) throw tooLarge;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

/** @throws SvcError `too_large` */
export async function readStandardInput({ stdin }: CliIo, maxBytes: number): Promise<Buffer> {
  const message = `Standard input has more than ${maxBytes} bytes.`;
  return readAll(stdin, maxBytes, new SvcError('too_large', { message }));
}

// Prompts on a terminal. Prompts go to stderr, because stdout contains only results.

/**
 * The typed line.
 * @param hidden do not echo it
 * @throws SvcError `cancelled` if the input ends or the user interrupts
 */
export async function prompt(io: CliIo, question: string, hidden: boolean): Promise<string> {
  // Loaded only for prompts.
  const { createInterface } = await import('node:readline/promises');
  const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: io.stdin, output: hidden ? nothing : io.stderr, terminal: true });
  if (hidden) io.stderr.write(question);
  // Without this the end of the input would leave the prompt pending forever.
  const closed = once(lines, 'close').then(() => Promise.reject(new SvcError('cancelled')));
  try {
    return await Promise.race([lines.question(hidden ? '' : question), closed]);
  } catch {
    throw new SvcError('cancelled', { message: 'No answer was given.' });
  } finally {
    closed.catch(() => {});
    lines.close();
    if (hidden) io.stderr.write('\n');
  }
}

/** True if the answer is yes. Everything else means no. @throws SvcError `cancelled` */
export async function promptYes(io: CliIo, question: string): Promise<boolean> {
  return /^y(es)?$/i.test((await prompt(io, `${question} [y/N] `, false)).trim());
}

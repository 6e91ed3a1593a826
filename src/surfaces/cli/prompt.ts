/** Prompts on a terminal. Prompts go to stderr, because stdout contains only results. */
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { SvcError } from '../../foundation/errors.ts';
import type { CliIo } from './io.ts';

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

/** Asks a person on a terminal. Questions stand on stderr: stdout holds results alone. */
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { SvcError } from '../../foundation/errors.ts';
import type { CliIo } from './io.ts';

/**
 * The line that is typed.
 * @param hidden does not show it: for secrets
 * @throws SvcError `cancelled` where the input ends, or the person interrupts
 */
export async function ask(io: CliIo, question: string, hidden: boolean): Promise<string> {
  // Only who asks loads it.
  const { createInterface } = await import('node:readline/promises');
  const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: io.stdin, output: hidden ? nothing : io.stderr, terminal: true });
  if (hidden) io.stderr.write(question);
  // Without this the end of the input would leave the question open for ever.
  const closed = once(lines, 'close').then(() => Promise.reject(new SvcError('cancelled')));
  try {
    return await Promise.race([lines.question(hidden ? '' : question), closed]);
  } catch {
    throw new SvcError('cancelled', { message: 'Nothing was answered.' });
  } finally {
    closed.catch(() => {});
    lines.close();
    if (hidden) io.stderr.write('\n');
  }
}

/** True where the answer is yes; everything else is no. @throws SvcError `cancelled` */
export async function confirmed(io: CliIo, question: string): Promise<boolean> {
  return /^y(es)?$/i.test((await ask(io, `${question} [y/N] `, false)).trim());
}

/** What a command takes away for good, and that somebody agrees to it first. */
import { SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';
import { confirmed } from './prompt.ts';
import { safeText } from './text.ts';

export interface Loss {
  /** What is about to happen, as a question: `Delete the agent …?`. */
  readonly question: string;
  /** What is needed to come back, or that nothing brings it back. */
  readonly back: string;
}

/** The option that answers the question. */
export const YES = { '-y, --yes': 'do not ask' } as const;

/**
 * Waits until a person has agreed; `-y` on the command line has agreed already.
 * @throws SvcError `invalid_request` where nobody can be asked, `cancelled` where the answer is no
 */
export async function agree(context: CliContext, { question, back }: Loss, agreed: boolean): Promise<void> {
  if (agreed) return;
  if (!context.interactive)
    throw new SvcError('invalid_request', {
      message: `Nothing was done: this cannot be undone, and nobody is there to ask. ${back} Say -y if you mean it.`,
    });
  context.note(back);
  if (!(await confirmed(context.io, safeText(question))))
    throw new SvcError('cancelled', { message: 'Nothing was done.' });
}

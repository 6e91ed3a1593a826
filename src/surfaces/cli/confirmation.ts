/** Confirmation of destructive commands. */
import { SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';
import { promptYes } from './prompt.ts';
import { safeText } from './text.ts';

export interface Confirmation {
  /** The question, such as `Delete the agent …?`. */
  readonly question: string;
  /** How to restore what is destroyed, or that it cannot be restored. */
  readonly consequence: string;
}

/** The option that answers yes. */
export const YES_OPTION = { '-y, --yes': 'do not ask' } as const;

/**
 * Waits until the user agrees. `-y` agrees in advance.
 * @throws SvcError `invalid_request` without a terminal, `cancelled` if the answer is no
 */
export async function confirmOrThrow(
  context: CliContext,
  { question, consequence: back }: Confirmation,
  agreed: boolean,
): Promise<void> {
  if (agreed) return;
  if (!context.interactive)
    throw new SvcError('invalid_request', {
      message: `Nothing was done: this cannot be undone, and there is no terminal to ask. ${back} Use -y to confirm.`,
    });
  context.info(back);
  if (!(await promptYes(context.io, safeText(question))))
    throw new SvcError('cancelled', { message: 'Nothing was done.' });
}

/** Why a card is refused. */
import { type ErrorDetails, SvcError } from '../errors.ts';

/**
 * `not_a_card`, `not_canonical`, `too_large`: what it is. `foreign_address`, `special_address`: where it leads.
 * `foreign_root`, `unsigned`, `bad_signature`: who vouches for it. `swapped`: it is another agent's. `replayed`,
 * `expired`: when it was signed.
 */
export type CardFault =
  | 'not_a_card'
  | 'not_canonical'
  | 'too_large'
  | 'foreign_address'
  | 'special_address'
  | 'foreign_root'
  | 'unsigned'
  | 'bad_signature'
  | 'swapped'
  | 'replayed'
  | 'expired';

/** @param why goes on after "The card is refused:" */
export function badCard(
  reason: CardFault,
  why: string,
  { details = {}, cause }: { readonly details?: ErrorDetails; readonly cause?: unknown } = {},
): SvcError {
  return new SvcError('bad_card', {
    message: `The card is refused: ${why}.`,
    details: { reason, ...details },
    ...(cause === undefined ? {} : { cause }),
  });
}

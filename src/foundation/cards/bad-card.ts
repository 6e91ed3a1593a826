/** The error for an invalid card. */
import { type ErrorDetails, SvcError } from '../errors.ts';

/**
 * Format: `not_a_card`, `not_canonical`, `too_large`. Addresses: `foreign_address`, `special_address`. Signature:
 * `foreign_root`, `unsigned`, `bad_signature`. Another agent's card: `swapped`. Age: `replayed`, `expired`.
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

/** @param why completes the sentence "The card is invalid: …" */
export function badCard(
  reason: CardFault,
  why: string,
  { details = {}, cause }: { readonly details?: ErrorDetails; readonly cause?: unknown } = {},
): SvcError {
  return new SvcError('bad_card', {
    message: `The card is invalid: ${why}.`,
    details: { reason, ...details },
    ...(cause === undefined ? {} : { cause }),
  });
}

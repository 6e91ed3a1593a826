/** The one rule of secrets that are piped in. */
import { SvcError } from '../../foundation/errors.ts';

/** The rule, as help says it. */
export const PIPED_SECRETS =
  'Secrets from standard input: the first line is the secret; a second one has to repeat it, as at a prompt.';

/**
 * The secret in what was piped in.
 * @throws SvcError `invalid_request` where anything but a repetition stands behind it: it would be sealed with what its owner does not know
 */
export function pipedSecret(text: string): string {
  const [secret = '', ...others] = text.split(/\r?\n/);
  if (others.every((line) => line === '' || line === secret)) return secret;
  throw new SvcError('invalid_request', { message: `Nothing was done: the lines are not the same. ${PIPED_SECRETS}` });
}

/** The rule for secrets on standard input. */
import { SvcError } from '../../foundation/errors.ts';

/** The rule, as help shows it. */
export const PIPED_SECRETS = 'Secrets from standard input: the first line is the secret. A second line must repeat it.';

/**
 * The secret in piped text.
 * @throws SvcError `invalid_request` if anything but a repetition follows: its owner would not know the actual secret
 */
export function pipedSecret(text: string): string {
  const [secret = '', ...others] = text.split(/\r?\n/);
  if (others.every((line) => line === '' || line === secret)) return secret;
  throw new SvcError('invalid_request', { message: `Nothing was done: the lines differ. ${PIPED_SECRETS}` });
}

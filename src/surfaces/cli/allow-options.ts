/** Options of the commands that grant access. */
import { InvalidArgumentError } from 'commander';
import { SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';
import type { ParsedOptions, ValueOption } from './options.ts';

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Converts `30m`, `12h`, `7d` or a date to ISO 8601. */
function parseExpiry(text: string): string {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const at = unit === undefined ? Date.parse(text) : Date.now() + Number(count) * (UNIT_MS[unit] ?? 0);
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) throw new InvalidArgumentError('Use 30m, 12h, 7d, or a date such as 2030-01-31.');
  return time.toISOString();
}

/** An expiry time. The command receives it in ISO 8601. */
export function expiry(about: string): ValueOption<string | undefined> {
  return { about, read: parseExpiry };
}

export const ALLOW = {
  '--secret [secret]': 'allow callers that present this secret; prompts if no value follows',
  '--generate': 'generate a random secret and show it once',
  '--label <text>': 'a comment for yourself',
  '--expires <time>': expiry('expiry: 30m, 12h, 7d, or a date'),
} as const;

/**
 * The request body for the options, without the AID. @throws SvcError `invalid_request` unless exactly one kind is
 * given
 */
export async function allowInput(
  context: CliContext,
  aid: string | undefined,
  { secret, generate, label, expires }: ParsedOptions<'', typeof ALLOW>,
) {
  if ([aid, secret, generate].filter((way) => way !== undefined).length !== 1)
    throw new SvcError('invalid_request', { message: 'Choose whom to allow: an AID, --secret or --generate.' });
  return {
    secret: secret === true ? await context.readSecret('secret: ') : secret,
    generate_secret: generate,
    label,
    expires_at: expires,
  };
}

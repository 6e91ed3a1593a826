/** Options of the commands that let somebody in: whom, and for how long. */
import { InvalidArgumentError } from 'commander';
import { SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';
import type { Taken, Typed } from './takes.ts';

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time as people give it, `30m`, `12h`, `7d` or a date, in ISO 8601. */
function parseExpiry(text: string): string {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const at = unit === undefined ? Date.parse(text) : Date.now() + Number(count) * (UNIT_MS[unit] ?? 0);
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) throw new InvalidArgumentError('Write 30m, 12h, 7d, or a date such as 2030-01-31.');
  return time.toISOString();
}

/** A time until which something holds; the command gets it in ISO 8601. */
export function expiry(about: string): Taken<string | undefined> {
  return { about, read: parseExpiry };
}

export const ALLOW = {
  '--secret [secret]': 'let in who presents this secret; asked for where only the option stands',
  '--generate': 'make a secret that nobody can guess, and show it this once',
  '--label <text>': 'a remark for yourself',
  '--expires <time>': expiry('until when: 30m, 12h, 7d, or a date'),
} as const;

/** What the API takes for the options beside the AID. @throws SvcError `invalid_request` unless one way is given */
export async function allowInput(
  context: CliContext,
  aid: string | undefined,
  { secret, generate, label, expires }: Typed<'', typeof ALLOW>,
) {
  if ([aid, secret, generate].filter((way) => way !== undefined).length !== 1)
    throw new SvcError('invalid_request', { message: 'Say whom to let in: one of an AID, --secret and --generate.' });
  return {
    secret: secret === true ? await context.readSecret('secret: ') : secret,
    generate_secret: generate,
    label,
    expires_at: expires,
  };
}

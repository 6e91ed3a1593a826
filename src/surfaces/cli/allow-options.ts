/** Options of the commands that let somebody in: whom, and for how long. */
import { type Command, InvalidArgumentError } from 'commander';
import { SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

export interface AllowOptions {
  readonly secret?: string | true;
  readonly generate?: boolean;
  readonly label?: string;
  /** ISO 8601. */
  readonly expires?: string;
}

/** A time as people give it, `30m`, `12h`, `7d` or a date, in ISO 8601. */
export function parseExpiry(text: string): string {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const at = unit === undefined ? Date.parse(text) : Date.now() + Number(count) * (UNIT_MS[unit] ?? 0);
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) throw new InvalidArgumentError('Write 30m, 12h, 7d, or a date such as 2030-01-31.');
  return time.toISOString();
}

export function addAllowOptions(command: Command): Command {
  return command
    .option('--secret [secret]', 'let in who presents this secret; asked for where only the option stands')
    .option('--generate', 'make a secret that nobody can guess, and show it this once')
    .option('--label <text>', 'a remark for yourself')
    .option('--expires <time>', 'until when: 30m, 12h, 7d, or a date', parseExpiry);
}

/** What the API takes for the options: an AID, or a secret. */
export async function allowInput(context: CliContext, aid: string | undefined, options: AllowOptions) {
  const { secret, generate, label, expires } = options;
  const ways = [aid, secret, generate].filter((way) => way !== undefined && way !== false);
  if (ways.length !== 1)
    throw new SvcError('invalid_request', { message: 'Say whom to let in: one of an AID, --secret and --generate.' });
  const presented = secret === true ? await context.readSecret('secret: ') : secret;
  return {
    ...(presented === undefined ? {} : { secret: presented }),
    ...(generate === true ? { generate_secret: true as const } : {}),
    ...(label === undefined ? {} : { label }),
    ...(expires === undefined ? {} : { expires_at: expires }),
  };
}

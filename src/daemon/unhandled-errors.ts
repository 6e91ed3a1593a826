/** Handles errors without a caller: from timers and background work. */
import { onDetachedError } from '../foundation/detached.ts';
import { SvcError } from '../foundation/errors.ts';
import type { Log } from '../foundation/log.ts';
import { safeText } from '../surfaces/cli/text.ts';

/**
 * Keeps the process running after SvcErrors, such as a failed disk write, because the transaction was rolled back. The
 * same applies to all failures of detached work, which belongs to one request. Any other error is a bug that leaves the
 * state undefined: it is written to stderr, and the process exits with code 1, as Node does by default.
 */
export function handleUnhandledErrors(process: NodeJS.Process, log: Pick<Log, 'error'>): void {
  onDetachedError((error) => log.error({ error }, 'background work failed'));
  process.on('uncaughtException', (error: unknown) => {
    if (error instanceof SvcError) return log.error({ error }, 'background work failed');
    const text = error instanceof Error ? (error.stack ?? error.message) : 'unknown error';
    process.stderr.write(`svcd: ${safeText(text)}\n`);
    process.exit(1);
  });
}

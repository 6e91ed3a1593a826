/** What becomes of an error that nobody waited for: a timer's, or that of work in the background. */
import { onDetachedError } from '../foundation/detached.ts';
import { SvcError } from '../foundation/errors.ts';
import type { Log } from '../foundation/log.ts';
import { safeText } from '../surfaces/cli/text.ts';

/**
 * Keeps the process going after failures of the catalogue, a disk that refuses to write for example: what was under way
 * was undone with its transaction. So it does after any failure of work that was detached: that is somebody's request,
 * and ends with it. Any other error is a bug after which nothing is certain: it is written to stderr and the process
 * ends with code 1, as without us.
 */
export function surviveKnownFailures(process: NodeJS.Process, log: Pick<Log, 'error'>): void {
  onDetachedError((error) => log.error({ error }, 'work in the background failed'));
  process.on('uncaughtException', (error: unknown) => {
    if (error instanceof SvcError) return log.error({ error }, 'work in the background failed');
    const text = error instanceof Error ? (error.stack ?? error.message) : 'unknown failure';
    process.stderr.write(`svcd: ${safeText(text)}\n`);
    process.exit(1);
  });
}

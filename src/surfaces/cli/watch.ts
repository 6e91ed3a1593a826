/** Refreshes a response until interrupted: `--watch`. */
import { setTimeout as pause } from 'node:timers/promises';
import { SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';
import { seconds } from './options.ts';

/** Default refresh interval, milliseconds. */
const EVERY_MS = 2000;

/** Moves the cursor to the top left and clears the screen. */
const CLEAR = '\u001b[H\u001b[2J';

export const WATCH_OPTIONS = {
  '--watch': 'refresh until interrupted',
  '--every <seconds>': seconds(`refresh interval with --watch; default ${EVERY_MS / 1000}`, {
    minMs: 100,
    maxMs: 3_600_000,
  }),
} as const;

/**
 * Refreshes until the command is interrupted. A terminal shows the latest response, a pipe receives each change. Waits
 * for a daemon that goes away.
 * @throws errors of the first request, and later ones unless the daemon is unreachable
 */
export async function refreshUntilInterrupted(
  context: CliContext,
  look: () => Promise<string | Uint8Array>,
  everyMs: number = EVERY_MS,
): Promise<void> {
  const { stdout, signal } = context.io;
  const isOver = (): boolean => signal?.aborted === true;
  let before: string | undefined;
  while (!isOver()) {
    const text = await look().catch((error: unknown) => {
      if (before === undefined || !(error instanceof SvcError) || error.code !== 'daemon_unreachable') throw error;
      return `${error.message} Retrying.\n`;
    });
    if (stdout.isTTY === true) stdout.write(`${CLEAR}${String(text)}`);
    else if (String(text) !== before) stdout.write(text);
    before = String(text);
    await pause(everyMs, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
}

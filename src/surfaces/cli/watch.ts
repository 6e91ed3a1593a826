/** Shows an answer again and again, until somebody interrupts: `--watch`. */
import { setTimeout as pause } from 'node:timers/promises';
import { SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';
import { seconds } from './takes.ts';

/** From one look to the next, milliseconds. */
const EVERY_MS = 2000;

/** Top left of a terminal, with nothing below. */
const CLEAR = '\u001b[H\u001b[2J';

export const WATCH = {
  '--watch': 'show it again as it changes, until interrupted',
  '--every <seconds>': seconds(`with --watch, look so often; ${EVERY_MS / 1000} where it is left out`, {
    minMs: 100,
    maxMs: 3_600_000,
  }),
} as const;

/**
 * Looks until the command is interrupted. A terminal shows the last look, a pipe gets what is another than before;
 * a daemon that goes away meanwhile is waited for.
 * @throws what the first look throws, and later ones unless they say that the daemon is not there
 */
export async function watched(
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
      return `${error.message} Trying again.\n`;
    });
    if (stdout.isTTY === true) stdout.write(`${CLEAR}${String(text)}`);
    else if (String(text) !== before) stdout.write(text);
    before = String(text);
    await pause(everyMs, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
}

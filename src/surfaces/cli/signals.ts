/** Stops commands that run until interrupted. */
import { constants } from 'node:os';
import { SvcError } from '../../foundation/errors.ts';

export const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A shell adds this to the number of the signal that ended a program. */
const SIGNALLED = 128;

/** The exit code of a program that a signal ended, as a shell reports it. */
export function signalExitCode(signal: unknown): number {
  return SIGNALLED + (Object.entries(constants.signals).find(([name]) => name === signal)?.[1] ?? 0);
}

let isInterrupted = false;

/** True after `untilSignal` has seen a signal. Then the process exits without waiting for abandoned work. */
export function wasInterrupted(): boolean {
  return isInterrupted;
}

/**
 * Resolves when the process receives a signal. The first signal no longer kills the process. A second one ends it at
 * once, with the child processes that its exit handlers stop.
 */
export function untilSignal(signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const quit = (name: NodeJS.Signals): void => process.exit(signalExitCode(name));
    const end = (): void => {
      for (const one of SIGNALS) process.off(one, interrupted);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const interrupted = (): void => {
      isInterrupted = true;
      end();
      for (const one of SIGNALS) process.once(one, quit);
    };
    if (signal?.aborted === true) return resolve();
    signal?.addEventListener('abort', end, { once: true });
    for (const one of SIGNALS) process.on(one, interrupted);
  });
}

/** The end of a command that waits for work, and for a signal at the same time. */
export interface Interruption {
  /** Aborts with `cancelled` at the first signal. */
  readonly signal: AbortSignal;
  /** Resolves then. */
  readonly ended: Promise<void>;
}

/** Starts to listen for signals. Signals never wait for work: race all work with the result. */
export function interruption(signal?: AbortSignal): Interruption {
  const controller = new AbortController();
  const ended = untilSignal(signal).then(() => controller.abort(new SvcError('cancelled')));
  return { signal: controller.signal, ended };
}

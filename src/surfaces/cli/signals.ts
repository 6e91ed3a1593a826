/** Stops commands that run until interrupted. */

export const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Resolves when the process receives a signal. The first signal no longer kills the process, a second one does. */
export function untilSignal(signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      for (const one of SIGNALS) process.off(one, end);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    if (signal?.aborted === true) return resolve();
    signal?.addEventListener('abort', end, { once: true });
    for (const one of SIGNALS) process.on(one, end);
  });
}

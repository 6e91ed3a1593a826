/** When a command ends that would go on for ever. */

export const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Settles when the process is asked to end; from the call on a signal does not end it by itself. A second one does. */
export function askedToEnd(signal?: AbortSignal): Promise<void> {
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

/** When a command ends that would go on for ever. */

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Settles when the process is asked to end; from the call on a signal does not end it by itself. A second one does. */
export function askedToEnd(signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal !== undefined) {
      if (signal.aborted) return resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
      return;
    }
    for (const one of SIGNALS) process.once(one, () => resolve());
  });
}

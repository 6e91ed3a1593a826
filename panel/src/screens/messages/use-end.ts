/** Reads the end of a conversation, and again when an event says that something came. */
import { useEffect, useState } from 'preact/hooks';
import type { Known } from '../../lib/cache.ts';
import { asFailure } from '../../lib/failure.ts';
import { onEvent } from '../../lib/live.ts';

/** @param key which conversation: another one is read anew */
export function useEnd<T>(key: string, read: () => Promise<T>): Known<T> {
  const [known, setKnown] = useState<Known<T>>({ value: undefined, failure: undefined, at: 0 });
  useEffect(() => {
    let isCurrent = true;
    const look = (): void => {
      read().then(
        (value) => {
          if (isCurrent) setKnown({ value, failure: undefined, at: Date.now() });
        },
        (error: unknown) => {
          if (isCurrent) setKnown((before) => ({ ...before, failure: asFailure(error) }));
        },
      );
    };
    look();
    const end = onEvent(look);
    addEventListener(WROTE, look);
    return () => {
      isCurrent = false;
      end();
      removeEventListener(WROTE, look);
    };
  }, [key]);
  return known;
}

const WROTE = 'svcd-wrote';

/** Says that something was written here, so that it is shown. */
export function wrote(): void {
  dispatchEvent(new Event(WROTE));
}

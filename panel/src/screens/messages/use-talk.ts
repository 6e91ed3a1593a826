/** Follows a chat or a group: reads its end again after an event, and older pages on demand. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { LOG_TRUNCATED } from '../../../../src/foundation/domain/events.ts';
import type { Known } from '../../lib/cache.ts';
import { asFailure } from '../../lib/failure.ts';
import { type LiveEvent, onEvent } from '../../lib/live.ts';
import { type Page, withEnd, withOlder } from '../../lib/pages.ts';

const WROTE = 'svcd-wrote';
/** Interval of the query, milliseconds. No event reports that an entry was delivered or that a member left. */
const AGAIN_MS = 30_000;
const WAITING_MS = 5_000;

/** Reports that something was written here, so that it appears. */
export function notifyWritten(): void {
  dispatchEvent(new Event(WROTE));
}

interface Source<E> {
  /** The agent of this node. Another agent or conversation starts a new list. */
  readonly aid: string;
  readonly id: string;
  /** Reads the page before a position, or the newest page. */
  readonly read: (before?: number) => Promise<Page<E>>;
  readonly concerns: (event: LiveEvent) => boolean;
  /** The entry is not delivered yet. */
  readonly waits?: (entry: E) => boolean;
}

interface Talk<E> {
  readonly known: Known<Page<E>>;
  /** Loads the entries before the loaded ones. */
  readonly older: () => void;
}

export function useTalk<E extends { readonly seq: number }>({
  aid,
  id,
  read,
  concerns,
  waits = () => false,
}: Source<E>): Talk<E> {
  const [known, setKnown] = useState<Known<Page<E>>>({ value: undefined, failure: undefined, at: 0 });
  const busy = useRef(false);
  const fail = (error: unknown): void => setKnown((before) => ({ ...before, failure: asFailure(error) }));
  useEffect(() => {
    let isCurrent = true;
    const look = (): void => {
      read().then(
        (end) => {
          if (isCurrent) setKnown(({ value }) => ({ value: withEnd(value, end), failure: undefined, at: Date.now() }));
        },
        (error: unknown) => {
          if (isCurrent) fail(error);
        },
      );
    };
    look();
    const end = onEvent((event) => {
      if (event.type === LOG_TRUNCATED || (event.aid === aid && concerns(event))) look();
    });
    addEventListener(WROTE, look);
    return () => {
      isCurrent = false;
      end();
      removeEventListener(WROTE, look);
    };
  }, [aid, id]);
  const everyMs = known.value?.entries.some(waits) === true ? WAITING_MS : AGAIN_MS;
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') notifyWritten();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  const older = (): void => {
    const first = known.value?.entries[0]?.seq;
    if (busy.current || first === undefined || known.value?.hasOlder !== true) return;
    busy.current = true;
    read(first)
      .then(
        (page) =>
          setKnown((before) =>
            before.value === undefined ? before : { ...before, value: withOlder(before.value, page) },
          ),
        fail,
      )
      .finally(() => {
        busy.current = false;
      });
  };
  return { known, older };
}

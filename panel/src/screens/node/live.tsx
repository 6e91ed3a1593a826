/** A live list with a filter, which is in the address, and a pause button. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Known } from '../../lib/cache.ts';
import { t } from '../../lib/i18n.ts';
import { keep } from '../../lib/place.ts';

interface Held<T> {
  /** The current value, or the value at the time of the pause. */
  readonly shown: Known<T>;
  readonly tools: ComponentChildren;
}

/**
 * @param q the text of the filter
 * @param more further controls
 */
export function useHeld<T>(known: Known<T>, q: string, more: ComponentChildren = null): Held<T> {
  const [held, setHeld] = useState<Known<T>>();
  return {
    shown: held ?? known,
    tools: (
      <div class="acts">
        <input
          type="search"
          aria-label={t('filter')}
          placeholder={t('filter')}
          value={q}
          onInput={(event) => keep({ q: event.currentTarget.value })}
        />
        {more}
        <button
          type="button"
          aria-pressed={held !== undefined}
          onClick={() => setHeld(held === undefined ? known : undefined)}
        >
          {t(held === undefined ? 'live.pause' : 'live.resume')}
        </button>
      </div>
    ),
  };
}

/** What goes on while it is read: a filter, which is kept in the address, and a pause. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Known } from '../../lib/cache.ts';
import { t } from '../../lib/i18n.ts';
import { keep } from '../../lib/place.ts';

interface Held<T> {
  /** What is shown: what is known, or what was known when it was paused. */
  readonly shown: Known<T>;
  readonly tools: ComponentChildren;
}

/** @param q what the filter has in it. @param more further tools */
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

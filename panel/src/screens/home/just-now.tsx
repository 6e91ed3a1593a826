/** What happened lately, as it happens. */
import { useEffect, useState } from 'preact/hooks';
import { isKey, t } from '../../lib/i18n.ts';
import { type LiveEvent, onEvent } from '../../lib/live.ts';
import { Called } from '../../parts/agent.tsx';
import { Empty, When } from '../../parts/basics.tsx';

/** Events that are shown. */
const SHOWN = 6;

let recent: readonly LiveEvent[] = [];

export function JustNow() {
  const [events, setEvents] = useState(recent);
  useEffect(
    () =>
      onEvent((event) => {
        recent = [event, ...recent].slice(0, SHOWN);
        setEvents(recent);
      }),
    [],
  );
  if (events.length === 0) return <Empty text={t('events.none')} />;
  return (
    <ul class="rows">
      {events.map(({ at, aid, type }, i) => {
        const key = `event.${type}`;
        return (
          <li key={i}>
            <span class="mono soft">
              <When at={at} />
            </span>
            <span class="grow">
              <Called aid={aid} /> {isKey(key) ? t(key) : type}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

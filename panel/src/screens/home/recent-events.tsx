/** Recent events of the agents and of the node. */

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { isKey, t } from '../../lib/i18n.ts';
import { type LiveEvent, onEvent } from '../../lib/live.ts';
import { useQuery } from '../../lib/query.ts';
import { Called } from '../../parts/agent.tsx';
import { Empty, When } from '../../parts/basics.tsx';
import { NodeEventView } from '../../parts/node-event.tsx';

/** Most events to show. */
const SHOWN = 6;
const LOOK_MS = 30_000;
/** Events to request each time. */
const ASKED = 50;

let recent: readonly LiveEvent[] = [];
let from = 0;

function useLive(): readonly LiveEvent[] {
  const [events, setEvents] = useState(recent);
  useEffect(
    () =>
      onEvent((event) => {
        recent = [event, ...recent].slice(0, SHOWN);
        setEvents(recent);
      }),
    [],
  );
  return events;
}

interface Row {
  readonly at: string;
  readonly key: string;
  readonly text: ComponentChildren;
}

function liveRow({ at, aid, type }: LiveEvent, i: number): Row {
  const key = `event.${type}`;
  const text = (
    <>
      <Called aid={aid} /> {isKey(key) ? t(key) : type}
    </>
  );
  return { at, key: `${at} ${i}`, text };
}

export function RecentEvents() {
  const live = useLive();
  const { value } = useQuery('nodeEventsRecent', { after_seq: from }, LOOK_MS);
  useEffect(() => {
    if (value !== undefined && value.last_seq - from > 2 * ASKED) from = value.last_seq - ASKED;
  }, [value]);
  const happened = (value?.events ?? [])
    .slice(-SHOWN)
    .map((event): Row => ({ at: event.at, key: String(event.seq), text: <NodeEventView event={event} /> }));
  const rows = [...live.map(liveRow), ...happened].sort((a, b) => b.at.localeCompare(a.at)).slice(0, SHOWN);
  if (rows.length === 0) return <Empty text={t('events.none')} />;
  return (
    <ul class="rows">
      {rows.map(({ at, key, text }) => (
        <li key={key}>
          <span class="mono soft">
            <When at={at} />
          </span>
          <span class="grow">{text}</span>
        </li>
      ))}
    </ul>
  );
}

/** The events of the node, live, with a filter and a pause button. */
import { t } from '../../lib/i18n.ts';
import { useQuery } from '../../lib/query.ts';
import { Answer, Copy, Empty, When } from '../../parts/basics.tsx';
import { type NodeEvent, NodeEventView, remoteAidOf, textKeyOf } from '../../parts/node-event.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { useHeld } from './live.tsx';

const LOOK_MS = 10_000;

const columns = (): readonly Column<NodeEvent>[] => [
  { title: t('admin.when'), cell: ({ at }) => <When at={at} /> },
  { title: t('happened.what'), cell: (event) => <NodeEventView event={event} /> },
  {
    title: t('details'),
    cell: ({ type }) => <code class="soft">{type}</code>,
  },
];

/** The text that the filter searches. */
function textOf(event: NodeEvent): string {
  return `${event.type} ${event.aid} ${remoteAidOf(event) ?? ''} ${t(textKeyOf(event))}`.toLowerCase();
}

export function Happenings({ q = '' }: { readonly q?: string | undefined }) {
  const known = useQuery('nodeEventsRecent', {}, LOOK_MS);
  const { shown, tools } = useHeld(known, q);
  return (
    <>
      {tools}
      <Answer of={shown}>
        {({ events }) => {
          const found = events.filter((event) => textOf(event).includes(q.toLowerCase())).toReversed();
          if (found.length === 0) return <Empty text={t('happened.none')} />;
          return (
            <>
              <Table label={t('node.events')} rows={found} columns={columns()} keyOf={({ seq }) => String(seq)} />
              <div class="acts">
                <Copy text={found.map((event) => JSON.stringify(event)).join('\n')} />
              </div>
            </>
          );
        }}
      </Answer>
    </>
  );
}

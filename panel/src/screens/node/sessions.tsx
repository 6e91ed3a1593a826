/** The logins to the panel. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Answer, Empty, State, When } from '../../parts/basics.tsx';
import { confirm } from '../../parts/overlay.tsx';
import { type Column, Table } from '../../parts/table.tsx';

type Session = Output<'panelSessions'>['sessions'][number];

const columns = (): readonly Column<Session>[] => [
  {
    title: t('node.since'),
    cell: ({ created_at, current }) => (
      <>
        <When at={created_at} /> {current && <State tone="good">{t('sessions.this')}</State>}
      </>
    ),
  },
  { title: t('node.seen'), cell: ({ last_seen_at }) => <When at={last_seen_at} ago /> },
  { title: t('key.end'), cell: ({ expires_at }) => <When at={expires_at} /> },
  {
    title: '',
    isNumber: true,
    cell: ({ id }) => (
      <button
        type="button"
        class="danger"
        onClick={() =>
          confirm({
            title: t('sessions.end'),
            text: t('sessions.end.what'),
            verb: t('sessions.end'),
            run: () => perform('panelSessionEnd', { id }),
          })
        }
      >
        {t('sessions.end')}
      </button>
    ),
  },
];

export function Sessions() {
  const known = useQuery('panelSessions', {});
  return (
    <Answer of={known}>
      {({ sessions }) =>
        sessions.length === 0 ? (
          <Empty text={t('sessions.none')} />
        ) : (
          <Table label={t('node.sessions')} rows={sessions} columns={columns()} keyOf={({ id }) => id} />
        )
      }
    </Answer>
  );
}

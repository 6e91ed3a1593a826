/** Local addresses of remote agents. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { here } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Answer, Copy, Empty, Section, State, When } from '../../parts/basics.tsx';
import { confirm } from '../../parts/overlay.tsx';
import { type Column, Table } from '../../parts/table.tsx';

type Origin = Output<'originList'>['origins'][number];

const ORIGINS_MS = 20_000;

function close(id: string): void {
  confirm({
    title: t('origin.close'),
    text: t('origin.close.what'),
    verb: t('origin.close'),
    run: () => perform('originClose', { id }),
  });
}

function columns(): readonly Column<Origin>[] {
  const isHere = here().node === null;
  return [
    { title: t('tunnel.to'), cell: ({ remote_aid }) => <Who aid={remote_aid} /> },
    {
      title: t('tunnel.listen'),
      cell: ({ url, is_served }) => (
        <>
          {isHere && is_served ? (
            <a href={url} target="_blank" rel="noopener noreferrer">
              <code>{url}</code>
            </a>
          ) : (
            <code>{url}</code>
          )}
          {!is_served && (
            <small>
              <State tone="bad">{t('origin.busy')}</State>
            </small>
          )}
        </>
      ),
    },
    { title: t('key.issued'), cell: ({ opened_at }) => <When at={opened_at} /> },
    { title: t('origin.served'), isNumber: true, cell: ({ served }) => served },
    {
      title: '',
      cell: ({ id, url }) => (
        <>
          <Copy text={url} />{' '}
          <button type="button" class="danger" onClick={() => close(id)}>
            {t('origin.close')}
          </button>
        </>
      ),
    },
  ];
}

export function Origins({ aid }: { readonly aid: string }) {
  const known = useQuery('originList', {}, ORIGINS_MS);
  return (
    <Section title={t('origin.title')}>
      <Answer of={known}>
        {({ origins }) => {
          const own = origins.filter(({ local_aid }) => local_aid === aid);
          if (own.length === 0) return <Empty text={t('origin.none')} />;
          return <Table label={t('origin.title')} rows={own} columns={columns()} keyOf={({ id }) => id} />;
        }}
      </Answer>
    </Section>
  );
}

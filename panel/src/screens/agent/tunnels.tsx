/** The TCP tunnels of an agent, its local addresses of other agents, and the webhooks that use them. */
import type { Output } from '../../lib/api.ts';
import * as format from '../../lib/format.ts';
import { language, t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Answer, Bytes, Empty, Section, State, When } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Origins } from './origins.tsx';
import { Webhooks } from './webhooks.tsx';

type Tunnel = Output<'tunnelList'>['tunnels'][number];

const TUNNELS_MS = 10_000;

function columns(): readonly Column<Tunnel>[] {
  return [
    { title: t('tunnel.to'), cell: ({ remote_aid }) => <Who aid={remote_aid} /> },
    { title: t('tunnel.listen'), cell: ({ listen }) => <code>{listen}</code> },
    {
      title: t('tunnel.path'),
      cell: ({ path, is_relayed, rtt_ms, remote_addr }) => (
        <>
          <State tone={is_relayed ? 'warn' : 'good'}>{t(`path.${path}`)}</State>
          <small>
            {format.ms(rtt_ms, language)} · <code>{remote_addr}</code>
          </small>
        </>
      ),
    },
    {
      title: t('tunnel.bytes'),
      cell: ({ bytes_up, bytes_down }) => (
        <>
          ↑ <Bytes count={bytes_up} /> ↓ <Bytes count={bytes_down} />
        </>
      ),
    },
    {
      title: t('tunnel.active'),
      cell: ({ active_conns, last_activity_at }) => (
        <>
          {active_conns}
          <small>
            <When at={last_activity_at} ago />
          </small>
        </>
      ),
    },
    {
      title: '',
      cell: ({ id }) => (
        <>
          <button type="button" onClick={() => act(() => perform('tunnelReset', { id }), t('saved'))}>
            {t('tunnel.reset')}
          </button>{' '}
          <button
            type="button"
            class="danger"
            onClick={() =>
              confirm({
                title: t('tunnel.close'),
                text: t('tunnel.close.what'),
                verb: t('tunnel.close'),
                run: () => perform('tunnelClose', { id }),
              })
            }
          >
            {t('tunnel.close')}
          </button>
        </>
      ),
    },
  ];
}

export function Tunnels({ aid }: { readonly aid: string }) {
  const tunnels = useQuery('tunnelList', {}, TUNNELS_MS);
  return (
    <>
      <Section title={t('tab.tunnels')}>
        <Answer of={tunnels}>
          {({ tunnels: all }) => {
            const own = all.filter(({ local_aid }) => local_aid === aid);
            if (own.length === 0) return <Empty text={t('tunnel.none')} />;
            return <Table label={t('tab.tunnels')} rows={own} columns={columns()} keyOf={({ id }) => id} />;
          }}
        </Answer>
      </Section>
      <Origins aid={aid} />
      <Webhooks aid={aid} />
    </>
  );
}
